import { MerklePath } from '@bsv/sdk'
import { nativeHash256 as hash } from '../../../backend/src/graph/native-hash.js'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, fromHex, joinBytes, reversed, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope } from '../../../backend/src/protocol/inscription.js'
import {
  claim,
  decodeMineNode,
  encodeMineNode,
  type MineNode,
  UNCLAIMED,
} from '../../../backend/src/protocol/mine-node.js'
import {
  type CovenantLimits,
  type CovenantVersion,
  type Deployment,
  encodeMintUnlocking,
  encodeNameOutput,
  meetsDifficulty,
  mintPreimage,
  ownerCommitment,
  proofOfWork,
} from '../../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodePush, OP } from '../../../backend/src/protocol/script-walk.js'
import { readTransaction, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import { encodeTransaction, type FakeInput, type FakeOutput, varint } from './raw-transaction.js'

export type { FakeOutput } from './raw-transaction.js'

/** A transaction of a fake chain, and the height of the block that would hold it alone. */
export interface FakeTransaction {
  txid: string
  raw: Uint8Array
  transaction: TransactionView
  height: number
  /** `<txid>_<vout>`. */
  outpoint(vout: number): string
}

/** A coin to spend: by its outpoint, or as an output of a fake transaction. */
export type FakeCoin = Outpoint | { transaction: FakeTransaction; vout: number }

/** A live node: where it is, and what the spending input's preimage has to state. */
export interface FakeNode extends FakeOutput {
  outpoint: Outpoint
}

/** The five pushes of a mint before they are encoded. */
type FakeUnlocking = Parameters<typeof encodeMintUnlocking>[0]

/**
 * What a test changes about a mint. The first group leaves it valid; each of the second breaks one thing, and all that
 * depends on it still fits (the preimage commits to the outputs as they end up, and so on).
 */
export interface MintOverrides {
  /** Used as it is, whatever its work; without it one is searched. */
  nonce?: Uint8Array
  ownerLock?: Uint8Array
  /** Coins beside the node; by default one fake coin. */
  funding?: (FakeCoin | FakeTransaction)[]
  /** Where the node stands among the inputs; by default first. */
  nodeInputPosition?: number
  /** Outputs after index 2; by default one of change. */
  trailing?: FakeOutput[]
  version?: number
  lockTime?: number
  /** Of the node's input; by default final. */
  sequence?: number
  /** The node to spend; by default the live one of the name's parent. With it, the chain's live nodes stay. */
  from?: FakeNode
  /** The tree that the mint belongs to, if it is another one than the chain's. */
  genesis?: Outpoint
  /** The tree that the nonce is for, if it is another one than the mint's. */
  nonceFor?: Outpoint

  character?: string
  badWork?: boolean
  outputs?: (outputs: FakeOutput[]) => FakeOutput[]
  unlocking?: (unlocking: FakeUnlocking) => FakeUnlocking
  /** The whole unlocking script, made from the right one. */
  unlockingScript?: (script: Uint8Array) => Uint8Array
}

const BREAKING = ['from', 'character', 'badWork', 'outputs', 'unlocking', 'unlockingScript'] as const

/** A pay-to-public-key-hash lock of an owner that a number tells apart. */
export function p2pkh(seed: number): Uint8Array {
  const hash = new Uint8Array(20)
  new DataView(hash.buffer).setUint32(16, seed)
  return concatBytes(fromHex('76a914'), hash, fromHex('88ac'))
}

/** An OP_RETURN with protocols: their pushes, `|` between them. */
export function bitcomTail(...protocols: ReadonlyArray<ReadonlyArray<string | Uint8Array>>): Uint8Array {
  const pushes = protocols.flatMap((protocol, i) => (i === 0 ? protocol : ['|', ...protocol]))
  const encoded = pushes.map((push) => encodePush(typeof push === 'string' ? utf8(push) : push))
  return joinBytes([Uint8Array.of(OP.RETURN), ...encoded])
}

/** An OP_RETURN with a MAP SET of these entries. */
export function mapTail(entries: Readonly<Record<string, string>>): Uint8Array {
  return bitcomTail([MAP_MARKER, 'SET', ...Object.entries(entries).flat()])
}

/** A lock with an inscription after it, and whatever is to follow. */
export function inscriptionScript(inscription: {
  contentType?: string
  body?: Uint8Array
  parent?: Outpoint
  lock?: Uint8Array
  suffix?: Uint8Array
}): Uint8Array {
  const { lock = p2pkh(1), suffix = new Uint8Array(), ...envelope } = inscription
  return concatBytes(lock, encodeEnvelope(envelope), suffix)
}

/**
 * A chain without work, scripts or signatures, for tests: transactions with the bytes that the service reads, built in
 * order and always the same. Coins that no transaction here created are fake, each used once.
 */
export class FakeChain {
  readonly deployment: Deployment
  /** Output 0 is the root of the tree as deployed. */
  readonly genesis: FakeTransaction
  /** That of the mint made last. */
  lastNonce: Uint8Array = new Uint8Array()
  private readonly nodes = new Map<string, FakeNode>()
  private coins = 0
  private height = 800_000

  constructor(
    options: {
      /** Zero bits of a solution. */
      difficulty?: number
      /** Bytes of the covenant: filler that from 2 bytes on lets every spend through. */
      codeSize?: number
      /** Satoshis of the output beside the root: another value is another genesis. */
      change?: number
      /** Parts of the root as deployed; its code is the covenant, instead of filler. */
      root?: Partial<MineNode>
      limits?: CovenantLimits
      covenantVersion?: CovenantVersion
      nameMarker?: string
      nameContentType?: string
      tld?: string
    } = {},
  ) {
    const { difficulty = 4, codeSize = 64, nameMarker = 'fake marker', tld, limits } = options
    const { nameContentType = 'application/name-claim', covenantVersion = 2, change = 1000 } = options
    const filler = new Uint8Array(codeSize).fill(OP_NOP)
    filler.set(DROP_FOUR.slice(0, codeSize))
    const plain: MineNode = { code: filler, claimed: UNCLAIMED, domain: '', seed: new Uint8Array() }
    const output = { satoshis: 1, lockingScript: encodeMineNode({ ...plain, ...options.root }) }
    this.genesis = this.spend({
      inputs: [],
      outputs: [output, { satoshis: change, lockingScript: p2pkh(0) }],
    })
    const outpoint = { txid: this.genesis.txid, vout: 0 }
    const marker = utf8(nameMarker)
    this.deployment = { genesis: outpoint, covenantVersion, difficulty, nameContentType, marker, tld, limits }
    this.nodes.set('', { ...output, outpoint })
  }

  /** The live node of a domain. Throws where there is none. */
  node(domain: string): FakeNode {
    const node = this.nodes.get(domain)
    if (node === undefined) throw new Error(`no live node for ${JSON.stringify(domain)}: mint it first`)
    return node
  }

  /**
   * Mints a name from the live node of its parent, which must have been minted. A mint that was not broken moves the
   * live nodes on.
   */
  mint(name: string, overrides: MintOverrides = {}): FakeTransaction {
    const from = overrides.from ?? this.node(name.slice(0, -1))
    const character = overrides.character ?? name.slice(-1)
    const { ownerLock = p2pkh(1), trailing = [{ satoshis: 990, lockingScript: p2pkh(0) }] } = overrides
    const parent = decodeMineNode(from.lockingScript)
    const deployment = { ...this.deployment, genesis: overrides.genesis ?? this.deployment.genesis }
    const commitment = ownerCommitment({
      domain: parent.domain,
      ownerLock,
      deployment: { ...deployment, genesis: overrides.nonceFor ?? deployment.genesis },
    })
    const { badWork: bad = false } = overrides
    const nonce = overrides.nonce ?? this.findNonce({ seed: parent.seed, character, commitment, bad })
    const seed = proofOfWork({ seed: parent.seed, character, nonce })
    this.lastNonce = nonce

    const claimed = claim(parent.claimed, character.charCodeAt(0))
    const restated: MineNode = { ...parent, genesis: deployment.genesis, claimed, seed }
    const child: MineNode = { ...restated, claimed: UNCLAIMED, domain: parent.domain + character }
    const nameOutput = encodeNameOutput({ ownerLock, name: child.domain, deployment })
    const scripts = [encodeMineNode(restated), encodeMineNode(child), nameOutput]
    const bound = scripts.map((lockingScript) => ({ satoshis: 1, lockingScript }))
    const outputs = overrides.outputs?.([...bound, ...trailing]) ?? [...bound, ...trailing]

    const inputs = (overrides.funding ?? [this.madeUpCoin()]).map((coin) => unsigned(coin))
    const { nodeInputPosition: input = 0, version, lockTime, sequence } = overrides
    inputs.splice(input, 0, { outpoint: from.outpoint, unlockingScript: new Uint8Array(), sequence })
    const draft = readTransaction(encodeTransaction({ inputs, outputs, version, lockTime }), { hash })
    const unlocking: FakeUnlocking = {
      character,
      nonce,
      ownerLock,
      trailing: joinBytes(draft.outputs.slice(3).map(({ bytes }) => bytes)),
      preimage: mintPreimage({ transaction: draft, input, spent: from }),
    }
    const right = encodeMintUnlocking(overrides.unlocking?.(unlocking) ?? unlocking)
    const unlockingScript = overrides.unlockingScript?.(right) ?? right
    inputs.splice(input, 1, { outpoint: from.outpoint, unlockingScript, sequence })
    const mint = this.add(encodeTransaction({ inputs, outputs, version, lockTime }))

    if (BREAKING.every((override) => overrides[override] === undefined)) {
      for (const [vout, domain] of [parent.domain, child.domain].entries()) {
        const lockingScript = scripts[vout] ?? new Uint8Array()
        this.nodes.set(domain, { satoshis: 1, lockingScript, outpoint: { txid: mint.txid, vout } })
      }
    }
    return mint
  }

  /** Mints every prefix of a name that has no live node yet, and then the name; all of them in order. */
  mintAll(name: string): FakeTransaction[] {
    const prefixes = Array.from(name, (_, i) => name.slice(0, i + 1))
    return prefixes.filter((prefix) => !this.nodes.has(prefix)).map((prefix) => this.mint(prefix))
  }

  /** An inscription in output 0, paid for by a fake coin. */
  inscribe(inscription: { satoshis?: number } & Parameters<typeof inscriptionScript>[0]): FakeTransaction {
    const { satoshis = 1, ...script } = inscription
    return this.spend({ inputs: [], outputs: [{ satoshis, lockingScript: inscriptionScript(script) }] })
  }

  /** Moves an ordinal into another lock. */
  move(transaction: FakeTransaction, vout: number, lockingScript: Uint8Array): FakeTransaction {
    return this.spend({ inputs: [{ transaction, vout }], outputs: [lockingScript] })
  }

  /**
   * A transaction with these coins in and these outputs out; a fake coin where there are none. A transaction alone stands for its
   * output 0, and a script alone for an output of one satoshi.
   */
  spend(transaction: {
    inputs?: readonly (FakeCoin | FakeTransaction)[]
    outputs: readonly (FakeOutput | Uint8Array)[]
    lockTime?: number
    /** Of all inputs; by default final. */
    sequence?: number
  }): FakeTransaction {
    const { inputs: given = [], lockTime, sequence } = transaction
    const coins = given.length > 0 ? given : [this.madeUpCoin()]
    const inputs = coins.map((coin) => ({ ...unsigned(coin), sequence }))
    const outputs = transaction.outputs.map((output) =>
      'satoshis' in output ? output : { satoshis: 1, lockingScript: output },
    )
    return this.add(encodeTransaction({ inputs, outputs, lockTime }))
  }

  /** A coin that no transaction here made, and another one each time. */
  madeUpCoin(): Outpoint {
    this.coins++
    return { txid: this.coins.toString(16).padStart(16, '0').padStart(64, 'c'), vout: 0 }
  }

  private add(raw: Uint8Array): FakeTransaction {
    const transaction = readTransaction(raw, { hash })
    const { txid } = transaction
    this.height++
    return { txid, raw, transaction, height: this.height, outpoint: (vout) => formatOutpoint({ txid, vout }) }
  }

  private findNonce(search: {
    seed: Uint8Array
    character: string
    commitment: Uint8Array
    bad: boolean
  }): Uint8Array {
    const nonce = concatBytes(search.commitment, new Uint8Array(4))
    for (let tried = 0; ; tried++) {
      new DataView(nonce.buffer).setUint32(search.commitment.length, tried)
      const good = meetsDifficulty(proofOfWork({ ...search, nonce, hash }), this.deployment.difficulty)
      if (good !== search.bad) return nonce
    }
  }
}

/**
 * A BEEF (BRC-62) with the subject last, so that readers take it for the subject.
 *
 * @param options.proven Whether the subject has a merkle path: that of a block which holds nothing else.
 * @param options.height The height of that block; by default the subject's own.
 * @param options.with Ancestors in the order in which they are to stand, parents first.
 * @param options.unproven Those of them that have no merkle path.
 */
export function beefOf(
  subject: FakeTransaction,
  options: {
    proven?: boolean
    height?: number
    with?: readonly FakeTransaction[]
    unproven?: readonly FakeTransaction[]
  } = {},
): Uint8Array {
  const { proven = true, height = subject.height, unproven = [] } = options
  const paths: Uint8Array[] = []
  const transactions: Uint8Array[] = []
  const put = (member: FakeTransaction, at: number | undefined): void => {
    if (at === undefined) {
      transactions.push(member.raw, Uint8Array.of(0))
      return
    }
    transactions.push(member.raw, Uint8Array.of(1), varint(paths.length))
    const path = new MerklePath(at, [[{ offset: 0, hash: member.txid, txid: true }]])
    paths.push(Uint8Array.from(path.toBinary()))
  }
  const ancestors = options.with ?? []
  for (const ancestor of ancestors) put(ancestor, unproven.includes(ancestor) ? undefined : ancestor.height)
  put(subject, proven ? height : undefined)
  const counts = [varint(paths.length), varint(ancestors.length + 1)] as const
  return joinBytes([BEEF_V1, counts[0], ...paths, counts[1], ...transactions])
}

/** A BEEF that says which transaction it is about (BRC-95). */
export function atomicOf(txid: string, beef: Uint8Array): Uint8Array {
  return concatBytes(ATOMIC, reversed(fromHex(txid)), beef)
}

const ATOMIC = fromHex('01010101')
const BEEF_V1 = fromHex('0100beef')
const OP_NOP = 0x61
/** OP_2DROP twice: of a mint's five pushes the first is left, so that an interpreter lets the spend through. */
const DROP_FOUR = [0x6d, 0x6d]
/** OP_DROP OP_1: a lock that any one push opens. */
export const OPEN_LOCK = Uint8Array.of(0x75, 0x51)
/** The length of a signature and a public key; what is in them, nobody here checks. */
const UNSIGNED = new Uint8Array(106)

function unsigned(coin: FakeCoin | FakeTransaction): FakeInput {
  const unlockingScript = encodePush(UNSIGNED)
  if ('raw' in coin) return { outpoint: { txid: coin.txid, vout: 0 }, unlockingScript }
  if ('txid' in coin) return { outpoint: coin, unlockingScript }
  return { outpoint: { txid: coin.transaction.txid, vout: coin.vout }, unlockingScript }
}
