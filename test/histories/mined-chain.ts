import { Random } from '../support/random.js'
import { type Block, type Branch, HeaderChain } from '../support/server/header-chain.js'
import type { Proof } from './decision.js'
import type { History, HistoryTransaction } from './history.js'

/** A chain of headers that can be reorganised, in which some transactions of a history are mined. */
export class MinedChain {
  /** The lowest height behind which blocks were taken back since somebody asked; that of the tip where none were. */
  private changedFrom: number
  /** The height of the last block that no reorganisation takes back. */
  private readonly firstHeight: number
  readonly headers = new HeaderChain()
  private readonly blocks: Block[] = []
  private mined = new Map<string, Block>()
  /** Branches that others took the place of, and that may grow again. */
  private readonly left: Branch[] = []

  /** Genesis and the purses are mined first. */
  constructor(private readonly history: History) {
    for (const each of history.first) this.add([each], this.headers.branch)
    this.firstHeight = this.headers.bestTip.height
    this.changedFrom = this.firstHeight
  }

  has(txid: string): boolean {
    return this.mined.has(txid)
  }

  /** The block that holds a transaction now. */
  blockOf(txid: string): Block | undefined {
    return this.mined.get(txid)
  }

  accepts({ height, root }: Proof): boolean {
    return this.headers.rootAt(height) === root
  }

  /** Each transaction in each block that the chain has, or had and has no more. */
  everMined({ isStale }: { isStale: boolean }): { transaction: HistoryTransaction; block: Block }[] {
    return this.blocks
      .filter(({ header }) => this.headers.isOnChain(header) !== isStale)
      .flatMap((block) =>
        block.txids.flatMap((txid) => {
          const transaction = this.history.byTxid.get(txid)
          return transaction === undefined ? [] : [{ transaction, block }]
        }),
      )
  }

  /** The height from which on the chain has changed since this was last asked. */
  takeChange(): number {
    const height = this.changedFrom
    this.changedFrom = this.headers.bestTip.height
    return height
  }

  /**
   * Mines blocks of transactions that fit, each with a chance of `share`. With `reorg`, so many blocks are taken back before,
   * and at least one more comes in their place, of transactions that conflict with theirs if there are any.
   *
   * @param options.among The transactions that may be mined; by default, all.
   * @returns how many blocks were taken back.
   */
  mine({
    blocks,
    share,
    choice,
    reorg = 0,
    among = this.history.transactions,
  }: {
    blocks: number
    share: number
    choice: number
    reorg?: number
    among?: readonly HistoryTransaction[]
  }) {
    const random = new Random(choice)
    const { height: tip } = this.headers.bestTip
    const base = Math.max(tip - reorg, this.firstHeight)
    const isOver = (block: Block): boolean => block.header.height > base
    const taken = [...this.mined].filter(([, block]) => isOver(block)).map(([txid]) => txid)
    if (base < tip) this.left.push(this.headers.branch)
    const branch = base < tip ? this.headers.fork(base) : this.headers.branch
    this.mined = new Map([...this.mined].filter(([, block]) => !isOver(block)))
    this.changedFrom = Math.min(this.changedFrom, base)
    const count = base < tip ? Math.max(blocks, tip - base + 1) : blocks
    for (let mined = 0; mined < count; mined++)
      this.add(this.minable({ random, share, taken, among, height: branch.tip.height + 1 }), branch)
    if (base < tip) this.headers.reorg(branch)
    return tip - base
  }

  /**
   * Lets a branch count again that was left, once it has got as many empty blocks as it needs for that.
   *
   * @returns how many blocks were taken back for it; undefined if no branch was left.
   */
  comeBack(choice: number): number | undefined {
    const [branch] = this.left.splice(choice % Math.max(this.left.length, 1), 1)
    if (branch === undefined) return undefined
    const { branch: before, bestTip } = this.headers
    while (branch.tip.height <= bestTip.height) this.add([], branch)
    this.headers.reorg(branch)
    this.left.push(before)
    const parted = [...branch.blocks()].find(
      ({ header }) => before.block(header.height)?.header.hash === header.hash,
    )
    const base = parted?.header.height ?? this.firstHeight
    this.changedFrom = Math.min(this.changedFrom, base)
    this.mined = new Map(
      [...branch.blocks()].flatMap((block) =>
        block.txids.filter((txid) => this.history.byTxid.has(txid)).map((txid) => [txid, block] as const),
      ),
    )
    return bestTip.height - base
  }

  private minable({
    random,
    share,
    taken,
    among,
    height,
  }: {
    random: Random
    share: number
    taken: string[]
    among: readonly HistoryTransaction[]
    /** Of the block. */
    height: number
  }): HistoryTransaction[] {
    const { byTxid } = this.history
    const spentBy = (txids: Iterable<string>) =>
      new Set([...txids].flatMap((txid) => byTxid.get(txid)?.spends ?? []))
    const mined = new Set(this.mined.keys())
    const spent = spentBy(mined)
    const contested = spentBy(taken)
    const block: HistoryTransaction[] = []
    const add = (some: readonly HistoryTransaction[], chance: number): void => {
      for (const each of some) {
        // A coin of which nobody has the transaction is in some block.
        const isMined = (outpoint: string): boolean =>
          mined.has(outpoint.slice(0, 64)) || !byTxid.has(outpoint.slice(0, 64))
        const fits = each.spends.every((outpoint) => isMined(outpoint) && !spent.has(outpoint))
        const isFinal = each.lockHeight === undefined || each.lockHeight < height
        if (mined.has(each.txid) || !fits || !isFinal || random.next() > chance) continue
        block.push(each)
        mined.add(each.txid)
        for (const outpoint of each.spends) spent.add(outpoint)
      }
    }
    const isConflicting = ({ txid, spends }: HistoryTransaction): boolean =>
      !taken.includes(txid) && spends.some((each) => contested.has(each))
    add(among.filter(isConflicting), 0.8)
    add(among, share)
    return block
  }

  private add(transactions: HistoryTransaction[], onto: Branch): void {
    const block = onto.mine(transactions)
    this.blocks.push(block)
    for (const { txid } of transactions) this.mined.set(txid, block)
  }
}
