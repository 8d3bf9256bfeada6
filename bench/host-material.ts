import { LockingScript, P2PKH, PrivateKey, Transaction } from '@bsv/sdk'
import { concatBytes, joinBytes } from '../backend/src/protocol/bytes.js'
import { encodePush } from '../backend/src/protocol/script-walk.js'
import { readTransaction, type TransactionView } from '../backend/src/protocol/transaction.js'
import { covenantParts } from '../src/mining/covenant.js'
import {
  beefOf,
  FakeChain,
  type FakeNode,
  type FakeTransaction,
  inscriptionScript,
} from '../test/support/protocol/fake-chain.js'
import { LIVE_CODE_SIZE } from './support.js'

/** A topic of the host's own. */
export const OTHER = 'tm_other'

export type Kind = 'mint' | 'inscription'

/** A transaction as a wallet submits it: signed, not mined, and with the mined transactions that it spends. */
export interface Submission {
  beef: Uint8Array
  /** The query that finds it. */
  query: { outpoint: string }
}

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz']
const KEY = new PrivateKey(5)
const LOCK = Uint8Array.from(new P2PKH().lock(KEY.toAddress()).toBinary())
const INSCRIBED = 4096
const TERMS = { covenantVersion: 1, difficulty: 1, nameContentType: 'application/name-claim' } as const
const MARKER = 'bench'

/**
 * Submissions whose scripts an engine can verify: mints under our own covenant, made as long as the live one, and inscriptions of
 * 4 KiB, each paid for by a signed coin.
 */
export class HostMaterial {
  readonly chain = new FakeChain({ ...TERMS, nameMarker: MARKER, root: { code: liveSizedCode() } })
  private readonly nodes = new Map<string, FakeNode & { holder: FakeTransaction }>()
  private readonly parents: string[] = []
  private nextParent = 0
  private inscribed = 0

  constructor() {
    this.nodes.set('', { ...this.chain.node(''), holder: this.chain.genesis })
  }

  /** The mined names below which mints are made. */
  async *tree(): AsyncGenerator<Uint8Array> {
    yield beefOf(this.chain.genesis)
    for (const first of LETTERS) yield beefOf((await this.mintOf(first)).mint)
    for (const first of LETTERS)
      for (const second of LETTERS.slice(0, 4)) {
        this.parents.push(first + second)
        yield beefOf((await this.mintOf(first + second)).mint)
      }
  }

  async next(kind: Kind): Promise<Submission> {
    return kind === 'mint' ? await this.nextMint() : await this.nextInscription()
  }

  private async nextMint(): Promise<Submission> {
    const at = this.nextParent++
    const parent = this.parents[at % this.parents.length] ?? ''
    const letter = LETTERS[Math.floor(at / this.parents.length)]
    if (letter === undefined) throw new Error('the tree has no more nodes for the bench')
    const { mint, sources } = await this.mintOf(parent + letter)
    return { beef: beefOf(mint, { proven: false, with: sources }), query: { outpoint: mint.outpoint(2) } }
  }

  private async nextInscription(): Promise<Submission> {
    const body = Buffer.alloc(INSCRIBED, `${this.inscribed++} `)
    const coin = this.coin()
    const unsigned = this.chain.spend({
      inputs: [{ transaction: coin, vout: 0 }],
      outputs: [
        { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body, lock: LOCK }) },
        { satoshis: 900, lockingScript: LOCK },
      ],
    })
    const inscription = await this.signed(unsigned, { coin, input: 0 })
    const beef = beefOf(inscription, { proven: false, with: [coin] })
    return { beef, query: { outpoint: inscription.outpoint(0) } }
  }

  private async mintOf(name: string): Promise<{ mint: FakeTransaction; sources: FakeTransaction[] }> {
    const parent = name.slice(0, -1)
    const from = this.nodes.get(parent)
    if (from === undefined) throw new Error(`no node of ${parent}`)
    const coin = this.coin()
    const unsigned = this.chain.mint(name, {
      from,
      funding: [{ transaction: coin, vout: 0 }],
      ownerLock: LOCK,
    })
    const mint = await this.signed(unsigned, { coin, input: 1 })
    for (const [vout, domain] of [parent, name].entries()) {
      const { lockingScript } = mint.transaction.outputs[vout] as TransactionView['outputs'][number]
      const outpoint = { txid: mint.txid, vout }
      this.nodes.set(domain, { satoshis: 1, lockingScript, outpoint, holder: mint })
    }
    return { mint, sources: [from.holder, coin] }
  }

  private coin(): FakeTransaction {
    return this.chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: LOCK }] })
  }

  /** Signs the input that spends a coin; no other input depends on that. */
  private async signed(
    unsigned: FakeTransaction,
    { coin, input }: { coin: FakeTransaction; input: number },
  ): Promise<FakeTransaction> {
    const { version, inputs, outputs } = Transaction.fromBinary(unsigned.raw)
    // A parsed transaction keeps the bytes that it was parsed from.
    const transaction = new Transaction(version, inputs, outputs)
    const template = new P2PKH().unlock(KEY, 'all', false, 1000, LockingScript.fromBinary([...LOCK]))
    const spending = inputs[input]
    if (spending === undefined) throw new Error(`no input ${input}`)
    spending.sourceTransaction = Transaction.fromBinary(coin.raw)
    spending.unlockingScript = await template.sign(transaction, input)
    const raw = Uint8Array.from(transaction.toBinary())
    const view = readTransaction(raw)
    const { txid } = view
    return { ...unsigned, txid, raw, transaction: view, outpoint: (vout) => `${txid}_${vout}` }
  }
}

/** Our covenant behind as many opcodes that do nothing as the live one is longer. Its code contains its own end. */
function liveSizedCode(): Uint8Array {
  const { split, ...others } = covenantParts({ ...TERMS, marker: Buffer.from(MARKER) })
  const { preimage, ...rest } = others
  const length = joinBytes([split, ...Object.values(others)]).length
  const [end, longer] = [length, LIVE_CODE_SIZE].map((each) => encodePush(twoBytes(each + STATE_START)))
  const at = Buffer.from(split).indexOf(end as Uint8Array)
  if (at < 0) throw new Error('the covenant does not say where it ends')
  const moved = Uint8Array.from(split)
  moved.set(longer as Uint8Array, at)
  const filler = new Uint8Array(LIVE_CODE_SIZE - length).fill(OP_NOP)
  return concatBytes(filler, preimage, moved, ...Object.values(rest))
}

const OP_NOP = 0x61
/** The OP_RETURN after the code, and the first field of the state. */
const STATE_START = 2

function twoBytes(value: number): Uint8Array {
  return Uint8Array.of(value & 0xff, value >> 8)
}
