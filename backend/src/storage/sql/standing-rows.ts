import type { Knex } from 'knex'
import type { Block, SpendRecord } from '../../graph/records.js'
import { type RankedView, type Standing, type StandingView, winnerOver } from '../../graph/standing.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, outpointOf, outpointPair, parts, ROWS_A_STATEMENT, unique } from '../columns.js'
import { anyOf, anyOutpoint, knexReader, type SqlReader } from './sql-reader.js'

/** Spends that count, and those that do not. */
const SPENDS = ['graph_spends', 'graph_silent_spends']

/**
 * Where transactions stand, read row by row; for one decision, as what was asked about nodes is not asked again.
 *
 * @param told Transactions of which outputs are told, and about to be written.
 */
export function standingView(reader: SqlReader, told: ReadonlySet<string> = new Set()): StandingView {
  const known = new Known(reader, told)
  const txids = async (select: (spends: string) => string, txid: string): Promise<string[]> => {
    const rows = await reader.all(both(select), Array(2).fill(hashColumn(txid)))
    return rows.map(({ found }) => hexOf(found))
  }
  return {
    standings: (wanted) => standings(reader, wanted),
    parents: (txid) => txids((spends) => `select txid as found from ${spends} where spender = ?`, txid),
    children: (txid) => txids((spends) => `select spender as found from ${spends} where txid = ?`, txid),
    rivals: (txid) => rivals(reader, txid, known),
  }
}

/** The rows of both kinds of spends, each once. */
function both(select: (spends: string) => string): string {
  return SPENDS.map(select).join(' union ')
}

const SHARED = SPENDS.flatMap((own) =>
  SPENDS.map(
    (other) => `select other.txid, other.vout, other.spender from ${own} as own join ${other} as other
      on other.txid = own.txid and other.vout = own.vout where own.spender = ? and other.spender <> own.spender`,
  ),
).join(' union ')

const IS_NODE = `select 1 from graph_nodes where txid = ? and vout = ?
  union select 1 from graph_silent_facts where txid = ? and vout = ? and kind = 'node'`
const LEFT_A_NODE = `select 1 from graph_nodes where txid = ?
  union select 1 from graph_silent_facts where txid = ? and kind = 'node'`
const WAS_LOOKED_AT = `select 1 from graph_outputs where txid = ?
  union select 1 from graph_names where txid = ? union select 1 from graph_silent_facts where txid = ?`

/** What is a node, and what may spend one: asked once for each, as a coin may have any number of spenders. */
class Known {
  private readonly nodes = new Map<string, boolean>()
  private readonly spenders = new Map<string, boolean>()

  constructor(
    private readonly reader: SqlReader,
    /** Transactions of which outputs are told, and about to be written. */
    private readonly told: ReadonlySet<string>,
  ) {}

  async isNode(outpoint: Outpoint): Promise<boolean> {
    const key = formatOutpoint(outpoint)
    const known = this.nodes.get(key)
    if (known !== undefined) return known
    const pair = outpointPair(outpoint)
    const isNode = (await this.reader.first(IS_NODE, [...pair, ...pair])) !== undefined
    this.nodes.set(key, isNode)
    return isNode
  }

  async maySpendNodes(spender: string): Promise<boolean> {
    const known = this.spenders.get(spender)
    if (known !== undefined) return known
    const hash = hashColumn(spender)
    const may =
      (await this.reader.first(LEFT_A_NODE, [hash, hash])) !== undefined ||
      // What is held for the sake of others alone may be a mint, for all that is known.
      (!this.told.has(spender) && (await this.reader.first(WAS_LOOKED_AT, [hash, hash, hash])) === undefined)
    this.spenders.set(spender, may)
    return may
  }
}

/** See `StandingView.rivals`. */
async function rivals(reader: SqlReader, txid: string, known: Known): Promise<string[]> {
  const found = new Set<string>()
  for (const row of await reader.all(SHARED, Array(4).fill(hashColumn(txid)))) {
    const spender = hexOf(row.spender)
    if (found.has(spender)) continue
    const isRival =
      !(await known.isNode(outpointOf(row))) ||
      ((await known.maySpendNodes(txid)) && (await known.maySpendNodes(spender)))
    if (isRival) found.add(spender)
  }
  return [...found]
}

export async function standings(reader: SqlReader, txids: string[]): Promise<Standing[]> {
  const found: Standing[] = []
  for (const part of parts([...new Set(txids)], ROWS_A_STATEMENT)) {
    const rows = await reader.all(
      `select txid, mined, arrival, silent from graph_transactions where txid in (${anyOf(part)})`,
      part.map(hashColumn),
    )
    for (const { txid, mined, arrival, silent } of rows) {
      found.push({
        txid: hexOf(txid),
        mined: mined === null ? undefined : Number(mined),
        arrival: Number(arrival),
        silent: Number(silent) === 1,
      })
    }
  }
  return found
}

/** Where transactions stand, and may be made to. */
export function rankedView(trx: Knex.Transaction, told?: ReadonlySet<string>): RankedView {
  const reader = knexReader(trx)
  return {
    ...standingView(reader, told),
    heightOf: (txid) => heightIn(reader, txid),
    async setRank({ txid, mined, arrival }) {
      await trx('graph_transactions')
        .where({ txid: hashColumn(txid) })
        .update({ mined: mined ?? null, arrival })
    },
  }
}

/** Whatever else spends one of these outpoints, silent or not. */
export async function rivalsOf(reader: SqlReader, spends: SpendRecord[]): Promise<string[]> {
  const spenders = new Map<string, Set<string>>()
  for (const { outpoint, spender } of spends) {
    const key = formatOutpoint(outpoint)
    spenders.set(key, (spenders.get(key) ?? new Set()).add(spender))
  }
  const rivals = new Set<string>()
  for (const part of parts(
    unique(spends, ({ outpoint }) => formatOutpoint(outpoint)),
    ROWS_A_STATEMENT,
  )) {
    const pairs = part.map(({ outpoint }) => outpointPair(outpoint))
    const rows = await reader.all(
      both((table) => `select txid, vout, spender from ${table} where ${anyOutpoint(pairs)}`),
      [...pairs, ...pairs].flat(),
    )
    for (const { txid, vout, spender } of rows) {
      const rival = hexOf(spender)
      const own = spenders.get(formatOutpoint({ txid: hexOf(txid), vout: Number(vout) }))
      if (own?.size !== 1 || !own.has(rival)) rivals.add(rival)
    }
  }
  return [...rivals]
}

/** Whatever spends of these transactions, silent or not. */
export async function childrenOf(reader: SqlReader, txids: string[]): Promise<string[]> {
  const children = new Set<string>()
  for (const part of parts(txids, ROWS_A_STATEMENT)) {
    const hashes = part.map(hashColumn)
    const rows = await reader.all(
      both((table) => `select spender from ${table} where txid in (${anyOf(part)})`),
      [...hashes, ...hashes],
    )
    for (const { spender } of rows) children.add(hexOf(spender))
  }
  return [...children]
}

/** See `StandingReader.winnerOver`. */
export async function winnerIn(reader: SqlReader, txid: string): Promise<string | undefined> {
  return await winnerOver(txid, standingView(reader))
}

/** See `ProofReader.heightOf`. */
export async function heightIn(reader: SqlReader, txid: string): Promise<number | undefined> {
  const row = await reader.first(
    'select height from graph_transactions where txid = ? and height is not null',
    [hashColumn(txid)],
  )
  return row && Number(row.height)
}

/** See `ProvenBlocksReader.blocks`. */
export async function blocksFrom(reader: SqlReader, { from }: { from: number }): Promise<Block[]> {
  const rows = await reader.all(
    'select distinct height, merkle_root from graph_transactions where height >= ? order by height desc, merkle_root',
    [from],
  )
  return rows.map(blockOf)
}

/** See `ProvenBlocksReader.rivalBlocks`. */
export async function rivalBlocks(reader: SqlReader, spends: SpendRecord[]): Promise<Block[]> {
  const rivals = await standings(reader, await rivalsOf(reader, spends))
  const heights = [...new Set(rivals.flatMap(({ mined }) => mined ?? []))]
  const found: Block[] = []
  for (const part of parts(heights, ROWS_A_STATEMENT)) {
    const rows = await reader.all(
      `select distinct height, merkle_root from graph_transactions where height in (${anyOf(part)})`,
      part,
    )
    found.push(...rows.map(blockOf))
  }
  return found
}

function blockOf(row: { height: unknown; merkle_root: unknown }): Block {
  return { height: Number(row.height), root: hexOf(row.merkle_root) }
}
