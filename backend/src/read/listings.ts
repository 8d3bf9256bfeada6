import type { Row, Sql } from '../facts/connection.js'
import { type Attribute, heightIn } from '../graph/listings.js'
import type { ContentSummary, NameRecord, OutputRecord } from '../graph/records.js'
import { inSlices } from '../graph/yield-to-event-loop.js'
import { readHeaders } from '../index/headers.js'
import { outpointIn, outpointKey } from '../index/outputs.js'
import { timeOf } from '../protocol/block-header.js'
import { MAX_NAME_LENGTH, NAME_CHARACTERS } from '../protocol/mine-node.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Steps } from '../protocol/steps.js'
import type { Guard } from './guard.js'
import { liveNode } from './names.js'
import {
  contentOf,
  OUTPUT,
  outpointAt,
  outputByOid,
  outputOf,
  placeOf,
  shownAt,
  stepsOf,
  tipOf,
} from './ordinals.js'
import { blobOf, hexOf, idOf, outpointOf, type Reader } from './reader.js'
import { PENDING_STATUS, pendingHeight, spenderOf } from './transactions.js'

/** Counts that include blocked things. */
export interface StoreCounts {
  /** Genuine names. */
  names: number
  /** See {@link isListed}. */
  inscriptions: number
  /** Those in the log, without those that only this gateway keeps because they lost or wait. */
  transactions: number
}

/** The place of a row in the order of a list. */
export interface ListPlace {
  recency: number
  outpoint: Outpoint
}

export interface NewestQuery {
  after?: ListPlace
  limit: number
}

/** `height` is that of the block that proves the outpoint's transaction; undefined if it is unproven. */
export interface ListedName extends NameRecord, ListPlace {
  height?: number
}

export interface ListedOutput extends Pick<OutputRecord, 'satoshis' | 'owner' | 'parent'>, ListPlace {
  content: ContentSummary
  height?: number
}

export interface ListedNode {
  domain: string
  /** The live node. Undefined if the last one was spent by a mint that this store cannot judge yet. */
  outpoint?: Outpoint
  /** How many characters were claimed from it. */
  children: number
}

export interface HistoryQuery {
  outpoint: Outpoint
  order: 'oldest' | 'newest'
  from?: number
  limit: number
}

/** Ordinals with all of these attributes; continues after the ordinal that is or was in `after`. */
interface OrdinalsQuery {
  attributes: Attribute[]
  limit: number
  after?: Outpoint | undefined
}

interface ChildrenQuery {
  parent: Outpoint
  skipped: number
  limit: number
}

interface TransactionQuery {
  txid: string
  after?: number
  limit: number
}

export interface OrdinalHistory {
  origin: Outpoint
  /** The sequence of its last step. */
  last: number
  steps: HistoryStep[]
}

/** A step in the life of an ordinal, and what is new with it. */
export interface HistoryStep {
  sequence: number
  outpoint: Outpoint
  height?: number
  /** The public key hash, in hex, if the lock is P2PKH. */
  owner?: string
  content?: ContentSummary
  /** The parent that this step named. */
  parent?: Outpoint
  /** Bytes of the MAP of this step itself; undefined if it has none. */
  mapLength?: number
  /** Set if the operator has blocked this step: nothing that was written in it is shown. */
  blocked?: true
}

/** A step, without its sequence, from an output. @param height Of the block that proves its transaction. */
export function historyStep(
  { outpoint, owner, content, parent, mapLength }: OutputRecord,
  height: number | undefined,
): Omit<HistoryStep, 'sequence'> {
  return {
    outpoint,
    ...(height !== undefined && { height }),
    ...(owner !== undefined && { owner }),
    ...(content && { content }),
    ...(parent && { parent }),
    ...(mapLength !== undefined && { mapLength }),
  }
}

/** An ordinal at its current output. */
export interface ListedOrdinal {
  outpoint: Outpoint
  /** Absent if the start of its lineage is missing: then neither origin nor content is known. */
  origin?: Outpoint
  sequence?: number
  owner?: string
  height?: number
  /** The output with its latest content. */
  contentOutpoint?: Outpoint
  content?: ContentSummary
}

export interface ListedTransaction {
  txid: string
  height?: number
  /** Whether it counts: an inactive one has lost a conflict, and has no outputs here (`docs/spec/overlay.md`, Conflicts). */
  isActive: boolean
  outputs: TransactionOutput[]
  /** More outputs come after this index. */
  next?: number
}

/** An output that a topic holds. */
export interface TransactionOutput {
  vout: number
  /** As `tm_ordinals` holds it. */
  output?: OutputRecord
  /** The name that was mined in it. */
  name?: string
  /** Its domain, if it is a node. */
  domain?: string
  /** The txid of its spender. */
  spender?: string
  /** Set if the operator has blocked it: nothing else is shown. */
  blocked?: true
}

/**
 * The lists that people look through: the newest names and inscriptions, the nodes below a domain, the life of an ordinal,
 * ordinals by attribute, and the outputs of a transaction. Each call takes a fixed number of indexed reads, whatever the store
 * holds; rows have everything that a list shows of them.
 */
export class Listings {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
  ) {}

  counts(): StoreCounts {
    const { reader } = this
    return reader.answer(() => ({
      names: reader.count('names'),
      inscriptions: reader.count('inscriptions'),
      transactions: reader.count('transactions'),
    }))
  }

  /**
   * Genuine names, the latest mined first (`recencyOf`).
   *
   * @param query.after Continues after this place, even if its row has moved.
   */
  newestNames(query: NewestQuery): ListedName[] {
    return this.newest(query, { pages: NEWEST_NAMES, what: 'names' }, listedName)
  }

  /** Inscriptions (`isListed`) in the same order: every output with content, reinscriptions of an ordinal as well. */
  newestInscriptions(query: NewestQuery): ListedOutput[] {
    return this.newest(query, { pages: NEWEST_OUTPUTS, what: 'inscriptions' }, listedOutput)
  }

  /** The nodes right below a domain, in the order of their characters, 37 at most. */
  childNodes(domain: string): ListedNode[] {
    if (domain.length >= MAX_NAME_LENGTH) return []
    const domains = [...NAME_CHARACTERS].map((character) => domain + character)
    const nodes = this.reader.answer((sql) =>
      sql.all(NODES, JSON.stringify(domains)).map((row): ListedNode => {
        const outpoint = liveNode(sql, row.domain)
        return { domain: String(row.domain), ...(outpoint && { outpoint }), children: row.nodes - 1 }
      }),
    )
    const { list } = this.guard
    return this.guard
      .unblocked(nodes, ({ outpoint }) => (outpoint === undefined ? [] : [outpoint]))
      .filter(({ domain }) => !list.has('name', domain))
  }

  /**
   * Steps of the ordinal in `outpoint`, as `Ordinals.at` counts them. Undefined if its origin is not known. A blocked step still says
   * where the ordinal went.
   *
   * @param query.from The first step to return; by default, the origin or the tip.
   */
  history(query: HistoryQuery): OrdinalHistory | undefined {
    const { guard } = this
    guard.refuse([query.outpoint])
    const history = this.reader.answer((sql) => historyOf(sql, query))
    if (history === undefined || guard.isOpen) return history
    const blocked = guard.blockedAmong(history.steps.map(({ outpoint }) => outpoint))
    const steps = history.steps.map((step): HistoryStep => {
      if (!blocked.has(formatOutpoint(step.outpoint))) return step
      const { content: _, parent: __, owner: ___, mapLength: ____, ...bare } = step
      return { ...bare, blocked: true }
    })
    return { ...history, steps }
  }

  /**
   * The current outpoints of up to `limit` ordinals with all of these attributes, in an order that transfers do not change.
   * Yields between pages, as any number of those with one attribute may lack another.
   */
  async tipsWith(query: OrdinalsQuery): Promise<Outpoint[]> {
    const { reader } = this
    const outputsOf = (tip: Outpoint): Outpoint[] => reader.answer((sql) => shownAt(sql, tip))
    return await inSlices(found(reader, query, { show: currentOf, isServed: this.isServed(outputsOf) }))
  }

  /** As {@link tipsWith}, with what a list shows of each ordinal. */
  async ordinalsWith(query: OrdinalsQuery): Promise<ListedOrdinal[]> {
    return await inSlices(this.listed(query))
  }

  /** As {@link ordinalsWith}, by one attribute: a list of {@link Reader.list}. */
  ordinalsBy({
    attribute,
    ...rest
  }: Omit<OrdinalsQuery, 'attributes'> & { attribute: Attribute }): ListedOrdinal[] {
    const query = { ...rest, attributes: [attribute] }
    return this.reader.list(`ordinals ${JSON.stringify(query)}`, this.listed(query))
  }

  /**
   * The outputs of a transaction that topics hold, by index. Undefined if this store does not have the transaction.
   *
   * @param query.after Continues after this output index.
   */
  transaction(query: TransactionQuery): ListedTransaction | undefined {
    const { guard } = this
    const { txid } = query
    const found = this.reader.answer((sql) => transactionOf(sql, query))
    if (found === undefined || guard.isOpen) return found
    const blocked = guard.blockedAmong(found.outputs.map(({ vout }) => ({ txid, vout })))
    const outputs = found.outputs.map((each): TransactionOutput => {
      const { vout, spender } = each
      if (!blocked.has(formatOutpoint({ txid, vout }))) return each
      return { vout, ...(spender !== undefined && { spender }), blocked: true }
    })
    return { ...found, outputs }
  }

  /**
   * Inscriptions ({@link isListed}) whose claim to this parent counts: by block, within one by outpoint, unproven ones last.
   * Blocked ones are missing from their page.
   *
   * @param query.skipped How many to skip: each takes 0.15 µs.
   */
  children({ parent, skipped, limit }: ChildrenQuery): { children: Outpoint[]; hasMore: boolean } {
    const key = outpointKey(blobOf(parent.txid), parent.vout)
    const rows = this.reader.answer((sql) => sql.all(CHILDREN, key, limit + 1, skipped))
    const children = this.guard.unblocked(rows.slice(0, limit).map(outpointOf), (each) => [each])
    return { children, hasMore: rows.length > limit }
  }

  /** The times of blocks by height, in seconds since 1970, from the headers in this store: a host may keep none. */
  blockTimes(heights: number[]): Map<number, number> {
    const times = this.reader.all([...new Set(heights)], (sql, height): [number, number][] => {
      const header = readHeaders(sql, { from: height, count: 1 })
      return header.length === 0 ? [] : [[height, timeOf(header)]]
    })
    return new Map(times)
  }

  private newest<Listed extends ListPlace>(
    query: NewestQuery,
    { pages, what }: { pages: NewestPages; what: string },
    read: (row: Row) => Listed,
  ): Listed[] {
    const { after, limit } = query
    const steps = this.guard.filled<Listed>({
      limit,
      outputsOf: ({ outpoint }) => [outpoint],
      page: (last, size) =>
        this.reader.answer((sql) => newest(sql, pages, { after: last ?? after, limit: size })).map(read),
    })
    return this.reader.list(`${what} ${JSON.stringify(query)}`, steps)
  }

  private listed(query: OrdinalsQuery): Steps<ListedOrdinal[]> {
    const outputsOf = ({ outpoint, contentOutpoint }: ListedOrdinal): Outpoint[] =>
      contentOutpoint === undefined ? [outpoint] : [outpoint, contentOutpoint]
    return found(this.reader, query, { show: listedOrdinal, isServed: this.isServed(outputsOf) })
  }

  private isServed<Shown>(outputsOf: (shown: Shown) => Outpoint[]): (shown: Shown) => boolean {
    return (shown) => this.guard.isOpen || this.guard.blockedAmong(outputsOf(shown)).size === 0
  }
}

const CHILDREN = `select txid, vout from (select tid, vout from out
    where parent = ? and pok = 1 and active = 1 and recency is not null order by recency, tkey, tid, vout limit ? offset ?)
  cross join tx on tx.id = tid`

const NODES = `select domain, count(*) as nodes from node
  where domain in (select value from json_each(?)) and active = 1 group by domain order by domain`

/** Statements for the pages of a list by recency: the start, the rest of a transaction, the rest of a block, and everything older. */
interface NewestPages {
  start: string
  sameTransaction: string
  sameBlock: string
  older: string
}

function newestPages(table: string, columns: string, isListed: string): NewestPages {
  const page = (bounds: string): string =>
    `select ${columns}, recency from ${table} as item cross join tx on tx.id = item.tid
     where ${isListed} and item.active = 1 and ${bounds}
     order by recency desc, tkey desc, item.tid desc, vout desc limit ?`
  return {
    start: page('recency >= 0'),
    sameTransaction: page('recency = ? and tkey = ? and item.tid = ? and vout < ?'),
    sameBlock: page('recency = ? and (tkey, item.tid) < (?, ?)'),
    older: page('recency < ?'),
  }
}

export const NEWEST_NAMES = newestPages('name', 'name, txid, vout, item.tid', 'recency is not null')
export const NEWEST_OUTPUTS = newestPages(
  'out',
  'txid, vout, sats, sha, ctype, clen, owner, parent, pok',
  'recency is not null',
)

/** Bytes of a txid in the column `tkey`. */
const KEY_BYTES = 6

/** A page of rows. @param query.after Continues after this place, even if its row has moved. */
export function newest(sql: Sql, pages: NewestPages, { after, limit }: NewestQuery): Row[] {
  if (after === undefined) return sql.all(pages.start, limit)
  const { recency, outpoint } = after
  const tid = idOf(sql, outpoint.txid) ?? 0
  const tkey = blobOf(outpoint.txid).readUIntBE(0, KEY_BYTES)
  const rows = sql.all(pages.sameTransaction, recency, tkey, tid, outpoint.vout, limit)
  if (rows.length < limit) rows.push(...sql.all(pages.sameBlock, recency, tkey, tid, limit - rows.length))
  if (rows.length < limit) rows.push(...sql.all(pages.older, recency, limit - rows.length))
  return rows
}

export function listedName(row: Row): ListedName {
  return { name: String(row.name), outpoint: outpointOf(row), ...recencyIn(row) }
}

export function listedOutput(row: Row): ListedOutput {
  return {
    ...{ outpoint: outpointOf(row), satoshis: Number(row.sats) },
    content: contentOf(row) as ContentSummary,
    ...(row.owner !== null && { owner: hexOf(row.owner) }),
    ...(row.parent !== null && row.pok && { parent: outpointIn(row.parent) }),
    ...recencyIn(row),
  }
}

function recencyIn({ recency }: Row): { recency: number; height?: number } {
  const height = heightIn(recency)
  return { recency, ...(height !== undefined && { height }) }
}

function historyOf(sql: Sql, { outpoint, order, from, limit }: HistoryQuery): OrdinalHistory | undefined {
  const place = placeOf(sql, outpoint)
  if (place === undefined || place.carrier || place.lin === null) return undefined
  const { lin } = place
  const tip = tipOf(sql, lin)
  const origin: number | null = place.origin ?? tip?.origin ?? null
  const begin = origin === null ? undefined : outpointAt(sql, lin, origin)
  if (tip === undefined || origin === null || begin === undefined) return undefined
  const isBackward = order === 'newest'
  const last = tip.step - origin
  const first = origin + Math.min(from ?? (isBackward ? last : 0), last + 1)
  const { rows } = stepsOf(sql, `own, ${OUTPUT}`, { lin, from: first, limit, isBackward })
  return {
    ...{ origin: begin, last },
    steps: rows
      .filter(({ step }) => step >= origin)
      .map((row) => ({ sequence: row.step - origin, ...historyStep(outputOf(row), row.own ?? undefined) })),
  }
}

/** How far the ordinals of an attribute are counted to find the rarest. */
const COUNTED = 1000
/** How many ordinals with the rarest attribute are checked for the others at once. */
const FOUND_A_PAGE = 200

/** The place of an ordinal in the lists by attribute: that of the first known output of its lineage. */
interface FoundPlace {
  okey: number
  vout: number
  lin: number
}

const COUNT = 'select count(*) as count from (select 1 from found where attribute = ? limit ?)'
const FOUND_PLACE = 'select tkey as okey, vout from out where oid = ?'
/** The place of an ordinal without a number: that of the first known output of its run. */
const RUN_PLACE = `select head.tkey as okey, head.vout from out cross join run on run.id = out.run
  cross join out as head on head.oid = run.head where out.oid = ?`
const HAS_OTHER = `exists (select 1 from found as other where other.attribute = ?
  and other.okey = found.okey and other.vout = found.vout and other.lin = found.lin)`

/**
 * The ordinals with all of these attributes, by their first outputs. Walks those with the rarest attribute, one page a step.
 *
 * @param how.show The result for an ordinal, by its lineage or by the negative `oid` of an output without a number.
 */
function* found<Shown>(
  reader: Reader,
  { attributes, limit, after }: OrdinalsQuery,
  how: { show: (sql: Sql, lin: number) => Shown | undefined; isServed: (shown: Shown) => boolean },
): Steps<Shown[]> {
  const hashes = [...new Set(attributes.map(({ hash }) => hash))]
  const shown: Shown[] = []
  let size = hashes.length === 1 ? limit : FOUND_A_PAGE
  for (let from = after && reader.answer((sql) => foundPlace(sql, after)); shown.length < limit; yield) {
    const rows = reader.answer((sql) => {
      const page = foundPage(sql, { hashes, from, limit: size })
      for (const { lin, matches } of page) {
        const each = matches && shown.length < limit ? how.show(sql, lin) : undefined
        if (each !== undefined && how.isServed(each)) shown.push(each)
      }
      return page
    })
    from = rows.at(-1)
    if (rows.length < size) break
    size = Math.max(size, FOUND_A_PAGE)
  }
  return shown
}

function foundPage(
  sql: Sql,
  { hashes, from, limit }: { hashes: string[]; from: FoundPlace | undefined; limit: number },
): (FoundPlace & { matches: number })[] {
  const [first, ...others] = rarestFirst(sql, hashes.map(blobOf))
  if (first === undefined) return []
  const matches = others.length === 0 ? '1' : others.map(() => HAS_OTHER).join(' and ')
  const { okey, vout, lin } = from ?? { okey: -1, vout: 0, lin: 0 }
  return sql.all(
    `select okey, vout, lin, ${matches} as matches from found
     where attribute = ? and (okey, vout, lin) > (?, ?, ?) order by okey, vout, lin limit ?`,
    ...[...others, first, okey, vout, lin, limit],
  ) as (FoundPlace & { matches: number })[]
}

function rarestFirst(sql: Sql, keys: Buffer[]): Buffer[] {
  if (keys.length < 2) return keys
  return keys
    .map((key) => ({ key, count: sql.get(COUNT, key, COUNTED)?.count }))
    .sort((a, b) => a.count - b.count)
    .map(({ key }) => key)
}

/** An outpoint has a place in the order even if the index does not hold it. */
function foundPlace(sql: Sql, outpoint: Outpoint): FoundPlace {
  const place = placeOf(sql, outpoint)
  const row = place && (place.lin === null ? sql.get(RUN_PLACE, place.oid) : sql.get(FOUND_PLACE, place.lin))
  if (row !== undefined) return { okey: row.okey, vout: row.vout, lin: place?.lin ?? 0 }
  const okey = blobOf(outpoint.txid).readUIntBE(0, KEY_BYTES)
  return { okey, vout: outpoint.vout, lin: Number.MAX_SAFE_INTEGER }
}

function currentOf(sql: Sql, lin: number): Outpoint | undefined {
  const row = lin < 0 ? sql.get(STEP_BY_OID, -lin) : tipOf(sql, lin)
  return row && outpointOf(row)
}

const STEP_BY_OID = `select txid, vout, owner, own from out cross join tx on tx.id = tid where oid = ?`

function listedOrdinal(sql: Sql, lin: number): ListedOrdinal | undefined {
  const row = lin < 0 ? sql.get(STEP_BY_OID, -lin) : tipOf(sql, lin)
  if (row === undefined) return undefined
  const outpoint = outpointOf(row)
  const mined = row.own === null ? {} : { height: row.own }
  // A carrier is part of no answer.
  if (row.carrier) return { outpoint, ...mined }
  const held = { outpoint, ...(row.owner !== null && { owner: hexOf(row.owner) }), ...mined }
  if (lin < 0 || row.origin === null || row.latest === null) return held
  const origin = outpointAt(sql, lin, row.origin)
  const shown = row.latest === row.oid ? outputOf(row) : outputByOid(sql, row.latest)
  if (origin === undefined || shown === undefined) return held
  return {
    ...held,
    ...{ origin, sequence: row.step - row.origin, contentOutpoint: shown.outpoint },
    ...(shown.content && { content: shown.content }),
  }
}

const STATUS = 'select id, own, active from tx where txid = ? and seq is not null'
const OUTPUTS = `select ${OUTPUT} from out cross join tx on tx.id = tid
  where tid = ? and vout > ? and carrier = 0 and out.active = 1 order by vout limit ?`
const NODES_OF = 'select vout, domain from node where tid = ? and vout > ? and active = 1'
const NAMES_OF = 'select vout, name from name where tid = ? and vout > ? and active = 1'

function transactionOf(
  sql: Sql,
  { txid, after = -1, limit }: TransactionQuery,
): ListedTransaction | undefined {
  const status = sql.get(STATUS, blobOf(txid))
  if (status === undefined) {
    const pending = sql.get(PENDING_STATUS, blobOf(txid))
    if (pending === undefined) return undefined
    const height = pendingHeight(sql, pending)
    return {
      txid,
      ...(height !== undefined && { height }),
      isActive: !pending.waiting,
      outputs: [],
    }
  }
  const { id, own } = status
  const byVout = (rows: Row[]): Map<number, Row> => new Map(rows.map((row) => [row.vout, row]))
  const outputs = byVout(sql.all(OUTPUTS, id, after, limit + 1))
  const nodes = byVout(sql.all(NODES_OF, id, after))
  const names = byVout(sql.all(NAMES_OF, id, after))
  const vouts = [...new Set([...outputs.keys(), ...nodes.keys(), ...names.keys()])].sort((a, b) => a - b)
  const shown = vouts.slice(0, limit)
  const last = shown.at(-1)
  return {
    txid,
    ...(own !== null && { height: own }),
    isActive: status.active === 1,
    outputs: shown.map((vout) => {
      const [output, node, name] = [outputs.get(vout), nodes.get(vout), names.get(vout)]
      const spender = spenderOf(sql, { txid, vout })
      return {
        vout,
        ...(output && { output: outputOf(output) }),
        ...(node && { domain: String(node.domain) }),
        ...(name && { name: String(name.name) }),
        ...(spender !== undefined && { spender }),
      }
    }),
    ...(vouts.length > limit && last !== undefined && { next: last }),
  }
}
