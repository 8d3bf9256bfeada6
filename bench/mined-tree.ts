import type { TransactionRecord } from '../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../backend/src/protocol/outpoint.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../test/support/protocol/fake-chain.js'
import { type Block, HeaderChain } from '../test/support/server/header-chain.js'
import { LIVE_CODE_SIZE } from './support.js'

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
/** Mints per block. */
const A_BLOCK = 50
/** How many mints one coin pays for. */
const A_PURSE = 500

/**
 * A tree of names whose mints have the live size (18 KB), mined in blocks with real merkle paths, as an honest chain source has
 * it. Names are minted shortest first: 26 of one letter, 676 of two, then those of three. It only keeps the bytes of each
 * transaction, once.
 */
export class MinedTree {
  readonly chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  readonly headers = new HeaderChain(0)
  /** All minted names, in order. */
  readonly names: string[] = []
  /** The txids of their mints. */
  readonly mints: string[] = []
  private readonly raws = new Map<string, Uint8Array>()
  private readonly spenders = new Map<string, string>()
  private readonly blocks = new Map<string, Block>()
  private readonly upcoming = shortestFirst()
  private purse: FakeTransaction | undefined
  private paid = 0
  private waiting: { txid: string; raw: Uint8Array }[] = []

  constructor() {
    this.add(this.chain.genesis)
    this.mineBlock()
  }

  /** Mints this many further names, and mines the mints. */
  grow(count: number): void {
    for (let left = count; left > 0; left--) {
      this.mint(this.upcoming.next().value)
      if (this.waiting.length >= A_BLOCK) this.mineBlock()
    }
    if (this.waiting.length > 0) this.mineBlock()
  }

  /** Mints a name out of order, in a block of its own. */
  mintAlone(name: string): void {
    this.mint(name)
    this.mineBlock()
  }

  /** A transaction with its proof; undefined if there is none. */
  record(txid: string): TransactionRecord | undefined {
    const raw = this.raws.get(txid)
    const proof = this.blocks.get(txid)?.proof(txid)
    return raw && { txid, raw, ...(proof && { proof }) }
  }

  spenderOf(outpoint: Outpoint | string): string | undefined {
    return this.spenders.get(typeof outpoint === 'string' ? outpoint : formatOutpoint(outpoint))
  }

  get transactions(): { txid: string; raw: Uint8Array }[] {
    return [...this.raws].map(([txid, raw]) => ({ txid, raw }))
  }

  /** The size of all transactions, in bytes. */
  get bytes(): number {
    return [...this.raws.values()].reduce((sum, { length }) => sum + length, 0)
  }

  private mint(name: string): void {
    const funding = [this.coin()]
    const mint = this.chain.mint(name, { funding })
    this.names.push(name)
    this.mints.push(mint.txid)
    this.add(mint)
  }

  private coin(): { transaction: FakeTransaction; vout: number } {
    if (this.purse === undefined || this.paid === A_PURSE) {
      const outputs = Array.from({ length: A_PURSE }, () => ({ satoshis: 5000, lockingScript: p2pkh(0) }))
      this.purse = this.chain.spend({ inputs: [], outputs })
      this.paid = 0
      this.add(this.purse)
    }
    return { transaction: this.purse, vout: this.paid++ }
  }

  private add({ txid, raw, transaction }: FakeTransaction): void {
    this.raws.set(txid, raw)
    for (const input of transaction.inputs) this.spenders.set(formatOutpoint(input), txid)
    this.waiting.push({ txid, raw })
  }

  private mineBlock(): void {
    const block = this.headers.mine(this.waiting)
    for (const { txid } of this.waiting) this.blocks.set(txid, block)
    this.waiting = []
  }
}

/** All names, the shortest first. */
function* shortestFirst(): Generator<string, never> {
  for (let shorter = ['']; ; ) {
    const longer: string[] = []
    for (const name of shorter) {
      for (const letter of LETTERS) {
        longer.push(name + letter)
        yield name + letter
      }
    }
    shorter = longer
  }
}
