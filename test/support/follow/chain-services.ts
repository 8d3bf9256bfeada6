import type { RequestListener } from 'node:http'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { FakeChain, type FakeCoin, type FakeTransaction, p2pkh } from '../protocol/fake-chain.js'
import { type Block, HeaderChain } from '../server/header-chain.js'
import { HeaderService } from '../server/header-service.js'
import { answerAsArc } from './arc-protocol.js'
import { type ChainView, FakeService, json, type Reply } from './fake-service.js'
import { answerAsJungleBus } from './junglebus-protocol.js'
import { answerAsWhatsOnChain } from './whatsonchain-protocol.js'

export type ServiceKind = 'junglebus' | 'whatsonchain' | 'arc'

const PROTOCOLS = { junglebus: answerAsJungleBus, whatsonchain: answerAsWhatsOnChain, arc: answerAsArc }

type Known = Pick<FakeTransaction, 'txid' | 'raw'>

/** A transaction at its place in the chain. */
export interface Placed {
  txid: string
  raw: Uint8Array
  block: Block
  index: number
}

/**
 * Services that know one growing and forking chain. Those that are told of a transaction have it in their mempool, and which are
 * mined, the branch of the chain that counts says. Of transactions that spend the same coin, the mined one counts, and of
 * unmined ones the first.
 */
export class ChainServices {
  readonly facts: ChainFacts
  /** The one of each kind that {@link listener} answers as. */
  readonly junglebus: ChainService
  readonly whatsonchain: ChainService
  readonly arc: ChainService

  constructor(chain: HeaderChain) {
    this.facts = new ChainFacts(chain)
    this.junglebus = this.service('junglebus')
    this.whatsonchain = this.service('whatsonchain')
    this.arc = this.service('arc')
  }

  /** Tells all services of transactions. They are unmined as long as the chain has them in no block. */
  know(...transactions: Known[]): void {
    this.facts.know(transactions)
  }

  listener(kind: ServiceKind): RequestListener {
    return this[kind].listener
  }

  /** One more service of a kind, with faults and lies of its own. */
  service(kind: ServiceKind): ChainService {
    return new ChainService(kind, this.facts)
  }

  /** Lets a subscription of the JungleBuses choose transactions; without this they do not know its id. */
  subscribe(id: string, chooses: (transaction: Known) => boolean): void {
    this.facts.subscriptions.set(id, chooses)
  }
}

/** A chain that holds a coin in a block, services that know it, and payments from coins. */
export function paidChain(): {
  chain: HeaderChain
  services: ChainServices
  /** A transaction that is in a block, whose output 0 can be paid on. */
  coin: FakeTransaction
  pay(from: FakeCoin, satoshis?: number): FakeTransaction
} {
  const transactions = new FakeChain()
  const pay = (from: FakeCoin, satoshis = 1): FakeTransaction =>
    transactions.spend({ inputs: [from], outputs: [{ satoshis, lockingScript: p2pkh(1) }] })
  const coin = transactions.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
  const chain = new HeaderChain()
  const services = new ChainServices(chain)
  services.know(coin)
  chain.mine([coin])
  return { chain, services, coin, pay }
}

/** One service, which may lie about what all know. */
export class ChainService extends FakeService<LyingView> {
  constructor(kind: ServiceKind, facts: ChainFacts) {
    super(PROTOCOLS[kind], new LyingView(facts))
  }

  /** Names a spender, whether it spends or not; undefined: it says that the output is unspent. */
  say(outpoint: Outpoint, spender: string | undefined): void {
    this.view.said.set(formatOutpoint(outpoint), spender)
  }

  /** Does not know a transaction, nor that it spends anything. */
  forget(txid: string): void {
    this.view.forgotten.add(txid)
  }

  /** Says what became of a transaction, as ARC does, whether it knows it or not. */
  sayStatus(txid: string, status: string): void {
    this.view.statuses.set(txid, status)
  }

  /** Shows another proof, or none, of a transaction. */
  misplace(txid: string, proof: TransactionRecord['proof']): void {
    this.view.misplaced.set(txid, proof)
  }

  /** Tells the truth again. */
  repent(): void {
    this.view.said.clear()
    this.view.forgotten.clear()
    this.view.misplaced.clear()
    this.view.statuses.clear()
  }

  /** How the feed pages: how many transactions at once, of one block or of all from it on, and which arrive without bytes. */
  get feed(): LyingView['feed'] {
    return this.view.feed
  }
}

/** What a service says. */
export class LyingView implements ChainView {
  readonly said = new Map<string, string | undefined>()
  readonly forgotten = new Set<string>()
  readonly misplaced = new Map<string, TransactionRecord['proof']>()
  /** Of ARC. */
  readonly statuses = new Map<string, string>()
  readonly feed = { page: 100, spansBlocks: false, isEmpty: (_: Known): boolean => false }

  constructor(readonly facts: ChainFacts) {}

  transaction(txid: string): TransactionRecord | undefined {
    if (this.forgotten.has(txid)) return undefined
    const record = this.facts.transaction(txid)
    if (record === undefined || !this.misplaced.has(txid)) return record
    const proof = this.misplaced.get(txid)
    return { txid, raw: record.raw, ...(proof && { proof }) }
  }

  spenderOf(outpoint: Outpoint): string | undefined {
    const shown = formatOutpoint(outpoint)
    if (this.said.has(shown)) return this.said.get(shown)
    const spender = this.facts.spenderOf(outpoint)
    return spender !== undefined && this.forgotten.has(spender) ? undefined : spender
  }

  *transactions(): Generator<TransactionRecord> {
    for (const record of this.facts.transactions()) {
      const known = this.transaction(record.txid)
      if (known !== undefined) yield known
    }
  }
}

/** What a service answers about the headers of the chain, as one that has nothing else. */
export function ofHeaders(path: string, { facts }: LyingView): Reply {
  const [status, value] = new HeaderService(facts.chain).reply(path)
  return value instanceof Uint8Array ? { status, body: value } : json(value, status)
}

/** What is true: the transactions that were told of, and the blocks of the chain. */
export class ChainFacts implements ChainView {
  readonly subscriptions = new Map<string, (transaction: Known) => boolean>()
  private readonly known = new Map<string, Known & { inputs: readonly Outpoint[] }>()
  /** By outpoint, in the order in which they were told of. */
  private readonly spenders = new Map<string, string[]>()
  private readonly counting = new Map<string, boolean>()
  /** The blocks that count, by height. */
  private readonly blocks = new Map<number, Block>()
  private readonly blocksOf = new Map<string, Set<Block>>()
  private readonly indexed = new Set<Block>()
  private tip: string | undefined

  constructor(readonly chain: HeaderChain) {}

  know(transactions: Known[]): void {
    for (const { txid, raw } of transactions) {
      if (this.known.has(txid)) continue
      const { inputs } = readTransaction(raw, { txid })
      this.known.set(txid, { txid, raw, inputs })
      for (const outpoint of inputs) {
        const shown = formatOutpoint(outpoint)
        this.spenders.set(shown, [...(this.spenders.get(shown) ?? []), txid])
      }
    }
    this.counting.clear()
  }

  transaction(txid: string): TransactionRecord | undefined {
    const known = this.known.get(txid)
    if (known === undefined) return undefined
    const proof = this.blockOf(txid)?.proof(txid)
    return { txid, raw: known.raw, ...(proof && { proof }) }
  }

  *transactions(): Generator<TransactionRecord> {
    for (const txid of this.known.keys()) {
      const record = this.transaction(txid)
      if (record !== undefined) yield record
    }
  }

  spenderOf(outpoint: Outpoint): string | undefined {
    const spenders = this.spenders.get(formatOutpoint(outpoint)) ?? []
    return (
      spenders.find((txid) => this.blockOf(txid) !== undefined) ?? spenders.find((txid) => this.counts(txid))
    )
  }

  /** The block that counts at a height. */
  block(height: number): Block | undefined {
    this.follow()
    return this.blocks.get(height)
  }

  /** The block that counts with a transaction. */
  blockOf(txid: string): Block | undefined {
    this.follow()
    for (const block of this.blocksOf.get(txid) ?? [])
      if (this.blocks.get(block.header.height) === block) return block
    return undefined
  }

  /** Those in a block that a subscription chooses, in the order of the block. */
  chosen(block: Block, chooses: (transaction: Known) => boolean): Placed[] {
    return block.txids.flatMap((txid, index) => {
      const known = this.known.get(txid)
      return known !== undefined && chooses(known) ? [{ txid, raw: known.raw, block, index }] : []
    })
  }

  /** Whether a transaction is mined, or in the mempool: it spends nothing that another one which counts does. */
  private counts(txid: string): boolean {
    this.follow()
    const before = this.counting.get(txid)
    if (before !== undefined) return before
    const counts = this.blockOf(txid) !== undefined || this.isInMempool(txid)
    this.counting.set(txid, counts)
    return counts
  }

  private isInMempool(txid: string): boolean {
    const inputs = this.known.get(txid)?.inputs ?? []
    return inputs.every((outpoint) => {
      if (this.known.has(outpoint.txid) && !this.counts(outpoint.txid)) return false
      const spenders = this.spenders.get(formatOutpoint(outpoint)) ?? []
      if (spenders.some((other) => this.blockOf(other) !== undefined)) return false
      const before = spenders.slice(0, spenders.indexOf(txid))
      return !before.some((other) => this.counts(other))
    })
  }

  /** Takes note of new blocks, and of those of another branch. */
  private follow(): void {
    const { branch, bestTip } = this.chain
    if (this.tip === bestTip.hash) return
    this.tip = bestTip.hash
    this.counting.clear()
    for (const height of [...this.blocks.keys()]) if (height > bestTip.height) this.blocks.delete(height)
    for (const block of branch.blocks()) {
      const { height } = block.header
      if (this.blocks.get(height) === block) break
      this.blocks.set(height, block)
      if (this.indexed.has(block)) continue
      this.indexed.add(block)
      for (const txid of block.txids)
        this.blocksOf.set(txid, (this.blocksOf.get(txid) ?? new Set()).add(block))
    }
  }
}
