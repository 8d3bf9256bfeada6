import type { Sql } from '../facts/connection.js'
import { FACT } from '../facts/log.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { blobOf, hexOf, type Reader } from './reader.js'
import { spenderOf } from './transactions.js'

/** The most ordinals in one answer: a transaction may have any number. */
const ORDINALS_A_PAGE = 500
/** How many transactions are searched for the next outputs: most have none. */
const TRANSACTIONS_A_PAGE = 1000
/** No transaction has an output with this index. */
const BEHIND_ALL = 0xffffffff

/** A coin whose spender continues the graph: a live node by the next mint, an ordinal by its next transfer. */
export interface FrontierCoin {
  kind: 'node' | 'ordinal'
  outpoint: Outpoint
}

/**
 * Where the stored graph may continue on the chain, for a service that follows it. Each call reads a bounded number of rows; an
 * undefined `next` ends a list.
 */
export class Frontier {
  constructor(private readonly reader: Reader) {}

  /** The unspent ordinals among the next `limit` outputs, in the order of their outpoints. */
  tips(query: { after?: Outpoint; limit: number }): { tips: Outpoint[]; next?: Outpoint } {
    return this.reader.answer((sql) => tips(sql, query))
  }

  /** The live nodes and unspent ordinals of the `limit` active transactions that were stored last, latest first. */
  latest({ limit }: { limit: number }): FrontierCoin[] {
    return this.reader.answer((sql) => latest(sql, limit))
  }

  /**
   * Those of the next `limit` unproven transactions, by txid, for which a proof or a sighting matters: topics hold an output of
   * them, and they are active or were rejected; or they wait because they lost a conflict.
   */
  unproven(query: { after?: string; limit: number }): { txids: string[]; next?: string } {
    return this.reader.answer((sql) => unproven(sql, query))
  }
}

const TRANSACTIONS = 'select id, txid from tx where txid >= ? order by txid limit ?'
const OUTPUTS = `select vout, sats, carrier, active from out where tid = ? and vout > ? order by vout limit ?`

function tips(
  sql: Sql,
  { after, limit }: Parameters<Frontier['tips']>[0],
): { tips: Outpoint[]; next?: Outpoint } {
  const found: Outpoint[] = []
  let left = limit
  let last: Outpoint | undefined
  const transactions = sql.all(TRANSACTIONS, blobOf(after?.txid ?? ''), TRANSACTIONS_A_PAGE)
  for (const { id, txid: key } of transactions) {
    const txid = hexOf(key)
    const rows = sql.all(OUTPUTS, id, after?.txid === txid ? after.vout : -1, left)
    for (const { vout, sats, carrier, active } of rows) {
      const outpoint = { txid, vout }
      if (sats === 1 && !carrier && active && spenderOf(sql, outpoint) === undefined) found.push(outpoint)
    }
    left -= rows.length
    last = { txid, vout: left === 0 ? rows.at(-1)?.vout : BEHIND_ALL }
    if (left === 0) break
  }
  const isEnd = left > 0 && transactions.length < TRANSACTIONS_A_PAGE
  return { tips: found, ...(!isEnd && last && { next: last }) }
}

const LATEST = `select id, txid from log.log as log cross join tx on txid = key
  where log.seq > 0 and +kind = ${FACT.transaction} and tx.seq is not null and active = 1 order by log.seq desc limit ?`
const NODES = 'select vout from node where tid = ? and active = 1 order by vout'
const ORDINALS =
  'select vout from out where tid = ? and sats = 1 and carrier = 0 and active = 1 order by vout limit ?'

function latest(sql: Sql, limit: number): FrontierCoin[] {
  let left = ORDINALS_A_PAGE
  return sql.all(LATEST, limit).flatMap((row): FrontierCoin[] => {
    const txid = hexOf(row.txid)
    const ordinals = left > 0 ? sql.all(ORDINALS, row.id, left) : []
    left -= ordinals.length
    const coins: FrontierCoin[] = [
      ...sql.all(NODES, row.id).map(({ vout }) => ({ kind: 'node' as const, outpoint: { txid, vout } })),
      ...ordinals.map(({ vout }) => ({ kind: 'ordinal' as const, outpoint: { txid, vout } })),
    ]
    return coins.filter(({ outpoint }) => spenderOf(sql, outpoint) === undefined)
  })
}

const UNPROVEN = `select txid, active, said, exists (select 1 from admission where admission.tid = tx.id) as held
  from tx where seq is not null and own is null and txid > ? order by txid limit ?`
const WAITING = 'select txid from log.pending where +waiting = 1 and txid > ? order by txid limit ?'

/** Waiting transactions are not in the index. */
function unproven(
  sql: Sql,
  { after, limit }: Parameters<Frontier['unproven']>[0],
): { txids: string[]; next?: string } {
  const from = after === undefined ? Buffer.alloc(0) : blobOf(after)
  const stored = sql
    .all(UNPROVEN, from, limit)
    .map(({ txid, active, said, held }) => ({ txid: hexOf(txid), isOpen: held && (active || said === 0) }))
  const waiting = sql.all(WAITING, from, limit).map(({ txid }) => ({ txid: hexOf(txid), isOpen: true }))
  const page = [...stored, ...waiting].sort((a, b) => (a.txid < b.txid ? -1 : 1)).slice(0, limit)
  const last = page.at(-1)
  return {
    txids: page.filter(({ isOpen }) => isOpen).map(({ txid }) => txid),
    ...(page.length === limit && last && { next: last.txid }),
  }
}
