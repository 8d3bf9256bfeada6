import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { FakeChain, type FakeCoin, type FakeTransaction, OPEN_LOCK } from '../protocol/fake-chain.js'
import { HeaderChain } from '../server/header-chain.js'

/** How many transactions a block has. */
const A_BLOCK = 3

/**
 * A tree on a chain with all that a crawl may come by: mints in several branches, names that move on, two that move on
 * together after different ways, one that is burnt, a node that is spent by what is no mint, and what is in no block yet.
 * What pays is there, too.
 */
export class CrawledTree {
  readonly chain = new FakeChain()
  readonly headers = new HeaderChain()
  /** All of it in the order of the chain, that in no block last. */
  readonly transactions: FakeTransaction[]
  private readonly mints: Record<string, FakeTransaction> = {}
  /** By what they do: `pair` moves two names, `pairs` one of them and a third; `open`, `opener` and `openMint` are in no block. */
  readonly others: Record<string, FakeTransaction> = {}
  /** Pays for every mint. */
  readonly purse: FakeTransaction
  /** Another mint than the last, in its place. */
  readonly rival: FakeTransaction
  private coins = 0

  constructor() {
    const outputs = Array.from({ length: 20 }, () => ({ satoshis: 5000, lockingScript: OPEN_LOCK }))
    this.purse = this.chain.spend({ inputs: [], outputs })
    for (const name of ['a', 'ab', 'abc', 'b', 'ba', 'baa', 'bab', 'c', 'd', 'o']) this.mint(name)
    this.move('a1', [this.name('a')])
    this.move('a2', [this.out('a1', 0)])
    this.move('pair', [this.out('a2', 0), this.name('abc')], 2)
    this.move('c1', [this.name('c')])
    this.move('c2', [this.out('c1', 0)])
    this.move('c3', [this.out('c2', 0)])
    this.move('pairs', [this.out('c3', 0), this.out('pair', 1)], 2)
    this.move('paired', [this.out('pairs', 1)])
    this.spend('burn', [this.name('ba'), this.coin()], [{ satoshis: 900, lockingScript: OPEN_LOCK }])
    this.others.dead = this.chain.mint('abcd', {
      from: this.chain.node('abc'),
      funding: [],
      outputs: () => [{ satoshis: 1, lockingScript: OPEN_LOCK }],
    })
    const proven = [
      this.chain.genesis,
      this.purse,
      ...Object.values(this.mints),
      ...Object.values(this.others),
    ]
    this.move('open', [this.name('o')])
    this.move('opener', [this.out('open', 0)])
    const funding = [this.coin()]
    this.rival = this.chain.mint('oo', { funding, from: this.chain.node('o') })
    const openMint = this.mint('oo')
    for (let from = 0; from < proven.length; from += A_BLOCK)
      this.headers.mine(proven.slice(from, from + A_BLOCK))
    this.transactions = [...proven, ...Object.values(this.others).slice(-2), openMint]
  }

  mintOf(name: string): FakeTransaction {
    const mint = this.mints[name]
    if (mint === undefined) throw new RangeError(`${name} is not minted`)
    return mint
  }

  /** A transaction as the chain has it by now. */
  record({ txid, raw }: FakeTransaction): TransactionRecord {
    const proof = this.headers.branch.proof(txid)
    return { txid, raw, ...(proof && { proof }) }
  }

  get records(): TransactionRecord[] {
    return this.transactions.map((each) => this.record(each))
  }

  /** What is in no block, in order. */
  get unproven(): FakeTransaction[] {
    return this.transactions.filter(({ txid }) => this.headers.branch.proof(txid) === undefined)
  }

  private mint(name: string): FakeTransaction {
    const mint = this.chain.mint(name, { funding: [this.coin()], ownerLock: OPEN_LOCK })
    this.mints[name] = mint
    return mint
  }

  private move(what: string, coins: FakeCoin[], count = 1): void {
    this.spend(
      what,
      coins,
      Array.from({ length: count }, () => ({ satoshis: 1, lockingScript: OPEN_LOCK })),
    )
  }

  private spend(
    what: string,
    inputs: FakeCoin[],
    outputs: Parameters<FakeChain['spend']>[0]['outputs'],
  ): void {
    this.others[what] = this.chain.spend({ inputs, outputs })
  }

  private coin(): FakeCoin {
    return { transaction: this.purse, vout: this.coins++ }
  }

  private name(name: string): FakeCoin {
    return this.out(name, 2)
  }

  private out(what: string, vout: number): FakeCoin {
    const transaction = this.others[what] ?? this.mints[what]
    if (transaction === undefined) throw new RangeError(`there is no ${what}`)
    return { transaction, vout }
  }
}
