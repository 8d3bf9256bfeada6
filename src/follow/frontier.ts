import type { GraphReader } from '../../backend/src/graph/graph-store.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'

/** An output whose spender to follow: of a node, a mint; of an ordinal, its next transfer. */
export interface FrontierCoin {
  kind: 'node' | 'ordinal'
  outpoint: Outpoint
}

export type FrontierStore = Pick<GraphReader, 'transactions' | 'names' | 'ordinals'>

/** Names per read. */
const PAGE = 1000

/**
 * The coins from which a stored tree is continued: its live nodes, and the current output of each name's ordinal. For an
 * unproven one, the last proven one before it is followed again, as proofs may exist by now, or another transaction may have
 * been mined instead.
 *
 * @param options.names Whether to follow names too, or nodes alone.
 */
export async function* frontier(
  store: FrontierStore,
  { names }: { names: boolean },
): AsyncGenerator<FrontierCoin> {
  yield* liveNode('', store)
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await store.names.byPrefix({ prefix: '', after, limit: PAGE })
    for (const { name, outpoint } of page) {
      yield* liveNode(name, store)
      const tip = names ? await store.ordinals.currentOutput(outpoint) : undefined
      const proven = tip && (await provenOrdinal(tip, store))
      if (proven !== undefined) yield { kind: 'ordinal', outpoint: proven }
    }
    after = page.length < PAGE ? undefined : page.at(-1)?.name
  }
}

async function* liveNode(domain: string, store: FrontierStore): AsyncGenerator<FrontierCoin> {
  const node = await store.names.liveNode(domain)
  if (node !== undefined) yield { kind: 'node', outpoint: await provenNode(node, store) }
}

/** The last proven node on the way to this one, otherwise the genesis. */
async function provenNode(node: Outpoint, store: FrontierStore): Promise<Outpoint> {
  let last = node
  while ((await store.transactions.heightOf(last.txid)) === undefined) {
    const { txid } = last
    const record = await store.transactions.get(txid)
    const [spent] = record ? await store.names.genuineNodes(readTransaction(record.raw, { txid }).inputs) : []
    if (spent === undefined) return last
    last = spent.outpoint
  }
  return last
}

/** The last proven output of an ordinal; undefined if its mint is unproven: following the mint again leads to it. */
async function provenOrdinal(tip: Outpoint, store: FrontierStore): Promise<Outpoint | undefined> {
  let last: Outpoint | undefined = tip
  while (last !== undefined && (await store.transactions.heightOf(last.txid)) === undefined)
    last = (await store.ordinals.output(last))?.previous
  return last
}
