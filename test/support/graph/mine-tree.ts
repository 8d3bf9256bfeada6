import { FakeChain, type FakeTransaction, type MintOverrides } from '../protocol/fake-chain.js'

/** A mine tree on a fake chain that remembers which transaction left the node that each mint spends. */
export class MineTree {
  readonly chain = new FakeChain()
  private readonly mints = new Map<string, FakeTransaction>()
  private readonly before = new Map<FakeTransaction, FakeTransaction>()

  mint(name: string, overrides?: MintOverrides): FakeTransaction {
    const { txid } = this.chain.node(name.slice(0, -1)).outpoint
    const parent = this.transactions.find((each) => each.txid === txid)
    const mint = this.chain.mint(name, overrides)
    if (parent === undefined) throw new Error(`the node that ${name} spends is not of this tree`)
    this.mints.set(name, mint)
    this.before.set(mint, parent)
    return mint
  }

  /** The genesis transaction and all mints, in order. */
  get transactions(): FakeTransaction[] {
    return [this.chain.genesis, ...this.mints.values()]
  }

  mintOf(name: string): FakeTransaction {
    const mint = this.mints.get(name)
    if (mint === undefined) throw new RangeError(`${name} is not minted`)
    return mint
  }

  /** The genesis transaction and the mints on the way from it to that of a name. */
  way(name: string): FakeTransaction[] {
    const way = [this.mintOf(name)]
    for (let each = way[0]; each !== undefined; ) {
      each = this.before.get(each)
      if (each !== undefined) way.unshift(each)
    }
    return way
  }
}
