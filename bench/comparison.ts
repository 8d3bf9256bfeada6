import { type GraphRecords, graphRecords, mergeRecords } from '../backend/src/graph/records.js'
import { viewOf } from '../backend/src/graph/stored-transaction.js'
import { spendsBy } from '../backend/src/graph/transaction-records.js'
import { utf8 } from '../backend/src/protocol/bytes.js'
import { type Node, openNode } from '../src/server/node.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { sqlOf } from '../test/support/server/test-server.js'
import { configFor, median, SILENT, timed, withFolder } from './support.js'

const OUTPUTS = 100_000
const A_WRITE = 500
const ROUNDS = 7

/** What the comparison reads, each table with its last column: a row is read to its end. */
const TABLES = {
  graph_admissions: 'score',
  graph_applied: 'topic',
  graph_outputs: 'merged_length',
  graph_nodes: 'domain',
  graph_names: 'vout',
  graph_silent_facts: 'length(body)',
  graph_pieces: 'length(bytes)',
}

/**
 * What a start takes to compare 100,000 admitted outputs, each of a transaction of its own, with an index that agrees,
 * against reading every row of the same tables by SQL; by turns.
 */
export async function* comparison(): AsyncGenerator<string> {
  const comparing: number[] = []
  const scanning: number[] = []
  await withFolder(async (folder) => {
    const chain = new FakeChain()
    const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
    await fill(node, chain)
    for (let round = 0; round < ROUNDS; round++) {
      comparing.push(await timed(() => node.maintenance.run()))
      if (node.maintenance.status.state !== 'equal') throw new Error('the index is not what was admitted')
      scanning.push(await timed(() => scan(node)))
    }
    await node.close()
  })
  const [ours, theirs] = [median(comparing), median(scanning)]
  yield `compare ${OUTPUTS} admitted outputs: ${ours.toFixed(0)} ms; read their tables: ${theirs.toFixed(0)} ms (medians of ${ROUNDS})`
  yield `ratio ${(ours / theirs).toFixed(2)} (wanted: at most 3.0)`
}

async function scan(node: Node): Promise<void> {
  for (const [table, column] of Object.entries(TABLES)) {
    const row = await sqlOf(node).reader.first(
      `select count(*) as held, max(${column}) from ${table} not indexed`,
      [],
    )
    if (table === 'graph_outputs' && Number(row.held) !== OUTPUTS)
      throw new Error(`the store holds ${row.held} outputs`)
  }
}

async function fill({ graph }: Node, chain: FakeChain): Promise<void> {
  let records: GraphRecords[] = []
  for (let number = 0; number < OUTPUTS; number++) {
    const { txid, raw } = chain.inscribe({ contentType: 'text/plain', body: utf8(`number ${number}`) })
    records.push(graphRecords({ transactions: [{ txid, raw }], spends: spendsBy(viewOf({ txid, raw })) }))
    if (records.length < A_WRITE) continue
    await graph.record(mergeRecords(records))
    records = []
  }
}
