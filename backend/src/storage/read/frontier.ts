import type { FrontierCoin, FrontierReader } from '../../graph/graph-store.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, inParts, outpointOf, outpointPair } from '../rows/columns.js'
import { anyOf, anyOutpoint, type Filter, type Row, type RowReader, type Table } from '../rows/rows.js'
import type { Lookups } from './lookups.js'

const OUTPOINT = ['txid', 'vout']
/** How many outputs of some transactions are read: a transaction may have any number. */
const OUTPUTS_A_PART = 500

/** The frontier of a store. */
export function frontierIn(rows: RowReader, { spenderOf }: Pick<Lookups, 'spenderOf'>): FrontierReader {
  return {
    async tips({ after, limit }) {
      const page = await outputsAfter(rows, { after, limit })
      const coins = page.filter(({ satoshis, carrier }) => Number(satoshis) === 1 && Number(carrier) === 0)
      const last = page.at(-1)
      return {
        tips: await unspent(rows, coins.map(outpointOf)),
        ...(page.length === limit && last && { next: outpointOf(last) }),
      }
    },
    async latest({ limit }) {
      const active = { arrival: { $gte: 0 }, silent: false }
      const found = await rows.all('graph_transactions', active, {
        ...{ sort: { arrival: -1 }, limit, fields: ['txid'] },
      })
      const txids = found.map(({ txid }) => hexOf(txid))
      const order = new Map(txids.map((txid, at) => [txid, at]))
      const coins = [...(await liveNodes(rows, { txids, spenderOf })), ...(await ordinalsOf(rows, txids))]
      const placeOf = ({ outpoint }: FrontierCoin): number => order.get(outpoint.txid) ?? 0
      return coins.sort((a, b) => placeOf(a) - placeOf(b))
    },
    async unproven({ after, limit }) {
      const start = after === undefined ? {} : { txid: { $gt: hashColumn(after) } }
      const behind = { height: null, merkle_root: null, ...start }
      const page = await rows.all('graph_transactions', behind, {
        ...{ sort: { txid: 1 }, limit, fields: ['txid', 'silent', 'rejected'] },
      })
      const txids = page.map(({ txid }) => hexOf(txid))
      const among = async (table: Table, filter: Filter = {}): Promise<Set<string>> => {
        const found = await inParts(txids, (part) =>
          rows.all(table, { txid: anyOf(part), ...filter }, { fields: ['txid'] }),
        )
        return new Set(found.map(({ txid }) => hexOf(txid)))
      }
      const [held, waiting] = [await among('graph_applied'), await among('graph_pending', { waiting: true })]
      const counting = page.filter(({ silent, rejected }) => Number(silent) === 0 || Number(rejected) === 1)
      const open = new Set([...waiting, ...counting.map(({ txid }) => hexOf(txid))])
      const last = page.at(-1)
      return {
        txids: txids.filter((txid) => held.has(txid) && open.has(txid)),
        ...(page.length === limit && last && { next: hexOf(last.txid) }),
      }
    },
  }
}

/** The next outputs by the key of their table: what is left of the same transaction, then those of others. */
async function outputsAfter(
  rows: RowReader,
  { after, limit }: { after: Outpoint | undefined; limit: number },
): Promise<Row[]> {
  const fields = [...OUTPOINT, 'satoshis', 'carrier']
  const read = (behind: Filter, count: number): Promise<Row[]> =>
    rows.all('graph_outputs', behind, { sort: { txid: 1, vout: 1 }, limit: count, fields })
  if (after === undefined) return await read({}, limit)
  const [txid, vout] = outpointPair(after)
  const found = await read({ txid, vout: { $gt: vout } }, limit)
  return found.length === limit
    ? found
    : [...found, ...(await read({ txid: { $gt: txid } }, limit - found.length))]
}

async function liveNodes(
  rows: RowReader,
  { txids, spenderOf }: { txids: string[] } & Pick<Lookups, 'spenderOf'>,
): Promise<FrontierCoin[]> {
  const nodes = await inParts(txids, (part) =>
    rows.all('graph_nodes', { txid: anyOf(part) }, { fields: OUTPOINT }),
  )
  const live: FrontierCoin[] = []
  // A node that something else than a mint spends is live.
  for (const outpoint of nodes.map(outpointOf))
    if ((await spenderOf(outpoint)) === undefined) live.push({ kind: 'node', outpoint })
  return live
}

async function ordinalsOf(rows: RowReader, txids: string[]): Promise<FrontierCoin[]> {
  const outputs = await inParts(txids, (part) =>
    rows.all(
      'graph_outputs',
      { txid: anyOf(part), satoshis: 1, carrier: false },
      { limit: OUTPUTS_A_PART, fields: OUTPOINT },
    ),
  )
  const tips = await unspent(rows, outputs.map(outpointOf))
  return tips.map((outpoint) => ({ kind: 'ordinal', outpoint }))
}

/** Those of the outpoints that no active transaction spends. */
async function unspent(rows: RowReader, outpoints: Outpoint[]): Promise<Outpoint[]> {
  const spends = await inParts(outpoints, (part) =>
    rows.all('graph_spends', anyOutpoint(part), { fields: OUTPOINT }),
  )
  const spent = new Set(spends.map((row) => formatOutpoint(outpointOf(row))))
  return outpoints.filter((outpoint) => !spent.has(formatOutpoint(outpoint)))
}
