import type { Enclosed, PlainBlock, PlainChain } from './chain.js'
import type { Forest, ForestTransaction } from './forest.js'
import type { NewRecords, Outcome } from './model.js'

/** How a transaction is submitted. */
export interface Manner {
  /** With a proof, where it is mined. */
  proven: boolean
  /** Whether what a proven one spends of comes along, and its proofs with it. */
  sources: 'none' | 'bare' | 'proven'
  /** What it is built on comes without proofs, mined or not. */
  lag: boolean
}

/** A transaction in a BEEF; needed is what the subject is verified by. */
export interface Member extends Enclosed {
  transaction: ForestTransaction
  needed: boolean
}

/**
 * What a BEEF of a transaction holds, which stands last.
 *
 * @param options.blockOf The block that is known to hold a transaction.
 */
export function membersOf(
  subject: ForestTransaction,
  options: Manner & {
    forest: Forest
    chain: PlainChain
    blockOf: (txid: string) => PlainBlock | undefined
  },
): Member[] {
  const { proven, sources, lag, forest, chain } = options
  const { byTxid, genesis, purse } = forest
  const members = new Map<string, Member>()
  const blockOf = (txid: string, late: boolean): PlainBlock | undefined => {
    const isFirst = txid === genesis.txid || txid === purse.txid
    return isFirst ? chain.blocks[0] : late ? undefined : options.blockOf(txid)
  }
  const parentsOf = ({ spends }: ForestTransaction): ForestTransaction[] =>
    [...new Set(spends.map((spent) => spent.slice(0, 64)))].flatMap((txid) => byTxid.get(txid) ?? [])
  const add = (transaction: ForestTransaction, block: PlainBlock | undefined): void => {
    if (members.has(transaction.txid)) return
    if (block === undefined)
      for (const parent of parentsOf(transaction)) add(parent, blockOf(parent.txid, lag))
    members.set(transaction.txid, { transaction, needed: true, ...(block && { block }) })
  }
  const block = blockOf(subject.txid, !proven)
  if (block !== undefined && sources !== 'none') {
    for (const transaction of parentsOf(subject)) {
      const own = sources === 'proven' ? blockOf(transaction.txid, false) : undefined
      members.set(transaction.txid, { transaction, needed: false, ...(own && { block: own }) })
    }
  }
  add(subject, block)
  return [...members.values()]
}

/** The records in the members of a BEEF. A path proves the transaction that stands beside its own in the tree, too. */
export function recordsOf(members: readonly Enclosed[]): NewRecords[] {
  return members.map(({ transaction: { txid }, block }): NewRecords => {
    const holding = block ?? members.find((other) => other.block && besides(other, txid))?.block
    return { txid, ...(holding && { proof: { height: holding.height, root: holding.root } }) }
  })
}

function besides({ transaction, block }: Enclosed, txid: string): boolean {
  const leaves = block?.leaves ?? []
  return leaves[leaves.indexOf(transaction.txid) ^ 1] === txid
}

/** What came of a submission, as far as a model says it. */
export type Got =
  | { kind: 'taken'; admitted: Record<string, number[]> }
  | { kind: 'lost'; winner: string }
  | { kind: 'invalid' }

/** Holds what came of a submission against what the model says. */
export function expectOutcome(got: Got, expected: Outcome): void {
  if (expected.kind === 'lost') {
    expect(got).toMatchObject({ kind: 'lost' })
    if (got.kind === 'lost' && expected.winners.size > 0) expect([...expected.winners]).toContain(got.winner)
  } else if (expected.kind === 'impossible') expect(['lost', 'invalid']).toContain(got.kind)
  else expect(got).toEqual(expected)
}
