import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { CachingStore } from '../../src/server/store/caching-store.js'
import type { SqlConnections } from '../support/storage/sqlite-database.js'
import type { Differences } from './host.js'
import type { Model } from './model.js'
import { differencesOf } from './questions.js'

interface Store {
  graph: CachingStore
  database: SqlConnections
}

/** What the tables and roles of a store hold that no route shows, where it is not what the model says. */
export async function storedDifferences({ graph, database }: Store, model: Model): Promise<Differences> {
  const { history, answers } = model
  const rows = async (sql: string): Promise<string[]> => {
    const found: Record<string, unknown>[] = await database.reader.all(sql, [])
    return found.map((row) => Object.values(row).join(' ')).sort()
  }
  const at = (outpoint: string): string => `${outpoint.slice(0, 64)} ${outpoint.slice(65)}`
  const { counts } = answers.decision
  const spends = [...counts].flatMap((txid) =>
    (history.byTxid.get(txid)?.spends ?? []).map((spent) => `${at(spent)} ${txid}`),
  )
  const got: Record<string, unknown> = {
    spends: await rows('select lower(hex(txid)), vout, lower(hex(spender)) from graph_spends'),
    outputs: await rows('select lower(hex(txid)), vout from graph_outputs where carrier = 0'),
    nodes: await rows('select lower(hex(txid)), vout, domain from graph_nodes'),
    names: await rows('select lower(hex(txid)), vout, name from graph_names'),
    // Whatever any model says.
    'second origins': await rows('select name from graph_names group by name having count(*) > 1'),
    'second spenders': await rows(
      `select lower(hex(txid)), vout from graph_spends as spends where not exists (
         select 1 from graph_nodes as nodes where nodes.txid = spends.txid and nodes.vout = spends.vout
       ) group by txid, vout having count(*) > 1`,
    ),
    'second live nodes': await rows(
      `select domain from graph_nodes as nodes where not exists (
         select 1 from graph_spends as spends join graph_nodes as spending on spending.txid = spends.spender
         where spends.txid = nodes.txid and spends.vout = nodes.vout
       ) group by domain having count(*) > 1`,
    ),
  }
  const expected: Record<string, unknown> = {
    spends: spends.sort(),
    outputs: [...answers.held].map(at).sort(),
    nodes: [...answers.nodes].map(([outpoint, domain]) => `${at(outpoint)} ${domain}`).sort(),
    names: [...answers.origins].map(([outpoint, name]) => `${at(outpoint)} ${name}`).sort(),
    ...{ 'second origins': [], 'second spenders': [], 'second live nodes': [] },
  }
  await comparePorts({ graph, model }, { got, expected })
  return differencesOf(got, expected)
}

/**
 * Asks the ports of a store about every transaction and about what peers are offered.
 *
 * @param options.isUndecided Transactions of which nobody has decided yet whether they count.
 */
export async function comparePorts(
  { graph, model }: { graph: Pick<GraphStore, 'transactions' | 'admissions'>; model: Model },
  { got, expected }: Record<'got' | 'expected', Record<string, unknown>>,
  { isUndecided = () => false }: { isUndecided?: (txid: string) => boolean } = {},
): Promise<void> {
  const { answers, history } = model
  const { counts } = answers.decision
  for (const { txid } of history.transactions) {
    const record = await graph.transactions.get(txid)
    const proof = model.proofs.get(txid)
    got[`transaction ${txid}`] = record && { height: record.proof?.height, root: record.proof?.root }
    expected[`transaction ${txid}`] = model.isKnown(txid)
      ? { height: proof?.height, root: proof?.root }
      : undefined
    if (isUndecided(txid)) continue
    got[`inactive ${txid}`] = (await graph.transactions.reasonAgainst(txid)) !== undefined
    expected[`inactive ${txid}`] = model.isKnown(txid) && !counts.has(txid)
  }
  for (const topic of [TOPICS.names, TOPICS.ordinals] as const) {
    const unspent = await graph.admissions.unspentOfTopic({ topic, since: 0 })
    got[`unspent of ${topic}`] = unspent.map(({ outpoint }) => formatOutpoint(outpoint)).sort()
    expected[`unspent of ${topic}`] = [...answers.admitted[topic]]
      .filter((each) => counts.has(each.slice(0, 64)) && !answers.isInput(each))
      .sort()
  }
}
