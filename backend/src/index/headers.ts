import type { Row, Sql } from '../facts/connection.js'
import { FACT, type Fact, type NewFact } from '../facts/log.js'
import { register } from '../facts/registers.js'
import { nativeHash256 } from '../graph/native-hash.js'
import { HEADER_BYTES, headerAt, headerCount, previousOf } from '../protocol/block-header.js'
import { concatBytes, equalBytes, fromHex, joinBytes, reversed, toHex } from '../protocol/bytes.js'
import { GeneralError } from '../protocol/coded-error.js'
import { totalWork } from '../protocol/header-rules.js'
import type { HeaderRange } from '../protocol/header-store.js'
import { registerIn } from './schema.js'

/*
 * The best chain of block headers, derived from header facts. A host knows a part of the chain, from some headers below its checkpoint
 * up, so a fact has the height of its first header. The host verifies headers before it inserts them (`src/chain/headers`).
 *
 * The chain with the most work counts, from the lowest header linked to it; with equal work, the one whose tip came first. The setting
 * `anchor` names a block that the chain must contain; if it is empty, no header counts.
 *
 * All known headers are rows of `header`: those of the best chain, and a few beside it. They follow from the set of facts, in any
 * order. 900,000 take 110 MB, as only the start of each hash is stored.
 */

const MAX_HEADERS = 2016
const HEIGHT_BYTES = 4

/** Consecutive headers, with the height of the first. */
export interface HeaderRun {
  height: number
  headers: Uint8Array
}

/** @param run At most {@link MAX_HEADERS}. */
export function headersFact({ height, headers }: HeaderRun): NewFact {
  const first = Buffer.alloc(HEIGHT_BYTES)
  first.writeUInt32BE(height)
  const last = headerAt(headers, headerCount(headers) - 1)
  return { kind: FACT.header, key: reversed(nativeHash256(last)), body: concatBytes(first, headers) }
}

export function readHeadersFact({ body }: NewFact): HeaderRun {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return { height: bytes.readUInt32BE(), headers: bytes.subarray(HEIGHT_BYTES) }
}

/** The merkle root of the block at a height, in display order; undefined if its header is not known. */
export function rootAt(sql: Sql, height: number): Uint8Array | undefined {
  const row = sql.get(
    'select substr(header, 37, 32) as root from header where height = ? and best = 1',
    height,
  )
  return row && reversed(row.root)
}

/** @param block.root In display order. */
export function isOnBestChain(sql: Sql, { height, root }: { height: number; root: Uint8Array }): boolean {
  const known = rootAt(sql, height)
  return known !== undefined && equalBytes(known, root)
}

export function headerRange(sql: Sql): HeaderRange | undefined {
  const first = sql.get('select height from header where best = 1 order by height limit 1')
  const last = sql.get('select height from header where best = 1 order by height desc limit 1')
  return first && last && { from: first.height, to: last.height }
}

/** Consecutive headers of the best chain, as `HeaderStore.read`. */
export function readHeaders(sql: Sql, { from, count }: { from: number; count: number }): Uint8Array {
  const rows = sql.all(
    'select height, header from header where height between ? and ? and best = 1 order by height',
    ...[from, from + count - 1],
  )
  return rows[0]?.height === from ? joinBytes(rows.map(({ header }) => header)) : new Uint8Array(0)
}

/** The height of a block of the best chain. @param hash In internal order. */
export function heightOfBlock(sql: Sql, hash: Uint8Array): number | undefined {
  const rows = sql.all(
    'select height, header from header_hash join header using (height) where start = ? and best = 1',
    hash.subarray(0, START_BYTES),
  )
  return rows.find(({ header }) => equalBytes(nativeHash256(header), hash))?.height
}

/**
 * Facts for those of consecutive headers that are not known yet: highest first if they extend the chain downwards, so that each
 * is linked when it is applied.
 */
export function newHeaderFacts(sql: Sql, { height, headers }: HeaderRun): NewFact[] {
  const known = knownAmong(sql, { height, headers })
  const facts: NewFact[] = []
  for (let end = headerCount(headers); end > 0; ) {
    if (known.has(end - 1)) {
      end--
      continue
    }
    let start = end - 1
    while (start > 0 && end - start < MAX_HEADERS && !known.has(start - 1)) start--
    const run = headers.subarray(start * HEADER_BYTES, end * HEADER_BYTES)
    facts.push(headersFact({ height: height + start, headers: run }))
    end = start
  }
  const isBelow = height < (headerRange(sql)?.from ?? 0)
  return isBelow ? facts : facts.reverse()
}

/**
 * Applies a fact of headers.
 *
 * @returns The heights whose block on the best chain changed.
 * @throws GeneralError `BAD_HEADERS` if the headers are not linked, or the key is not the hash of the last one
 */
export function applyHeaders(sql: Sql, fact: Fact): HeaderRange[] {
  const { height, headers } = readHeadersFact(fact)
  const hashes = hashesOf(headers)
  const last = hashes.at(-1)
  if (last === undefined || !isLinked(headers, hashes) || !equalBytes(reversed(last), fact.key))
    throw new GeneralError('BAD_HEADERS', `the header fact ${toHex(fact.key)} is damaged`)
  const to = height + hashes.length - 1
  const range = headerRange(sql)
  const isGrowth =
    range !== undefined &&
    ((height === range.to + 1 && equalBytes(previousOf(headers), hashAt(sql, range.to))) ||
      (to === range.from - 1 && equalBytes(last, previousOf(headerOf(sql, range.from)))))
  const isBest = isGrowth && !hasBranches(sql, { from: height - 1, to: to + 1 })
  sql.run(INSERT, hashes.length, height, headers, fact.seq, Number(isBest))
  sql.run(
    INSERT_STARTS,
    hashes.length,
    height,
    joinBytes(hashes.map((hash) => hash.subarray(0, START_BYTES))),
  )
  return isBest ? [{ from: height, to }] : chooseChain(sql, { from: height, to })
}

/** Applies a change of the setting `anchor`. @returns The heights whose block on the best chain changed. */
export function applyAnchor(sql: Sql): HeaderRange[] {
  const range = headerRange(sql)
  const anchor = anchorIn(sql)
  const isKept =
    range === undefined || anchor === undefined || (anchor !== 'none' && isInChain(sql, range, anchor))
  if (isKept) return chooseChain(sql)
  leaveChain(sql, range.from)
  return [range, ...chooseChain(sql)]
}

interface HeaderRow {
  height: number
  header: Uint8Array
  /** The place of the first fact that has it, which decides between tips of equal work. */
  seq: number
  /** In internal order. */
  hash: Uint8Array
}

/** A header beside the chain, as a candidate for its tip. */
interface Candidate extends HeaderRow {
  parent: Candidate | undefined
  /** The height at which its branch leaves the chain; undefined if it is not linked to the chain. */
  fork: number | undefined
  /** Work of its branch up to and including it, minus the work of the chain that it would replace. */
  work: bigint
  counts: boolean
}

/** A block that the chain must contain; `none`: no header counts. */
type Anchor = { height: number; hash: Uint8Array } | 'none' | undefined

/**
 * Switches the chain to the best known tip. A chain that exists contains the anchor.
 *
 * @param news The heights of new headers; by default any may be new. Branches not linked to them lost to the chain before.
 */
function chooseChain(sql: Sql, news?: HeaderRange): HeaderRange[] {
  const anchor = anchorIn(sql)
  if (anchor === 'none') return []
  const changed = extendBelow(sql)
  const range = headerRange(sql)
  const rows = news === undefined ? branches(sql, ALL) : branchesAround(sql, covering(news, changed))
  const best = bestCandidate(candidates(sql, rows, { range, anchor }), range && tipOf(sql, range))
  if (best === undefined) return changed
  const path: Candidate[] = []
  for (let at: Candidate | undefined = best; at !== undefined; at = at.parent) path.unshift(at)
  const [first = best] = path
  const isAttached = best.fork !== undefined
  if (range !== undefined) leaveChain(sql, isAttached ? first.height : range.from)
  joinChain(sql, path)
  if (range === undefined) return [...changed, { from: first.height, to: best.height }]
  return isAttached
    ? [...changed, { from: first.height, to: Math.max(range.to, best.height) }]
    : [...changed, range, { from: first.height, to: best.height }]
}

/** Extends the chain downwards by known headers. */
function extendBelow(sql: Sql): HeaderRange[] {
  const range = headerRange(sql)
  if (range === undefined) return []
  const found: HeaderRow[] = []
  let previous = previousOf(headerOf(sql, range.from))
  for (let height = range.from - 1; ; height--) {
    const row = branches(sql, { from: height, to: height }).find(({ hash }) => equalBytes(hash, previous))
    if (row === undefined) break
    found.unshift(row)
    previous = previousOf(row.header)
  }
  joinChain(sql, found)
  return found.length === 0 ? [] : [{ from: range.from - found.length, to: range.from - 1 }]
}

const ALL: HeaderRange = { from: 0, to: Number.MAX_SAFE_INTEGER }
/** How many heights are searched for linked headers at once. */
const HEIGHTS_A_PAGE = 500

/** The heights of new headers, and those above the part that the chain was extended by: branches from there were not linked before. */
function covering({ from, to }: HeaderRange, extended: readonly HeaderRange[]): HeaderRange {
  return {
    from: Math.min(from, ...extended.map((range) => range.from)),
    to: Math.max(to, ...extended.map((range) => range.to + 1)),
  }
}

/** The headers beside the chain with these heights, from low to high. */
function branches(sql: Sql, { from, to }: HeaderRange): HeaderRow[] {
  const rows = sql.all(
    'select height, header, seq from header where height between ? and ? and best = 0 order by height',
    ...[from, to],
  )
  return rows.map(rowOf)
}

function rowOf({ height, header, seq }: Row): HeaderRow {
  return { height, header, seq, hash: nativeHash256(header) }
}

/** The same, with the headers beside the chain that lead to them or are built on them. */
function branchesAround(sql: Sql, { from, to }: HeaderRange): HeaderRow[] {
  const found = branches(sql, { from, to })
  const before = new Set(found.map(({ header }) => toHex(previousOf(header))))
  for (let [high, low] = [from - 1, from]; found[0]?.height === low; high = low - 1) {
    low = high - HEIGHTS_A_PAGE + 1
    const page = branches(sql, { from: low, to: high }).reverse()
    const linked = page.filter(
      ({ hash, header }) => before.has(toHex(hash)) && before.add(toHex(previousOf(header))),
    )
    found.unshift(...linked.reverse())
  }
  const known = new Set(found.map(({ hash }) => toHex(hash)))
  for (let [low, high] = [to + 1, to]; found.at(-1)?.height === high; low = high + 1) {
    high = low + HEIGHTS_A_PAGE - 1
    const page = branches(sql, { from: low, to: high })
    found.push(
      ...page.filter(({ hash, header }) => known.has(toHex(previousOf(header))) && known.add(toHex(hash))),
    )
  }
  return found
}

function candidates(
  sql: Sql,
  rows: readonly HeaderRow[],
  { range, anchor }: { range: HeaderRange | undefined; anchor: Anchor },
): Candidate[] {
  const found = new Map<string, Candidate>()
  for (const row of rows) {
    const { height, header } = row
    const previous = previousOf(header)
    const parent = found.get(keyOf(height - 1, previous))
    const own = totalWork(header)
    const isAnchor = anchor !== undefined && anchor !== 'none' && isSame(row, anchor)
    let candidate: Candidate
    if (parent !== undefined) {
      const { fork, work, counts } = parent
      candidate = { ...row, parent, fork, work: work + own, counts: counts || isAnchor }
    } else if (range !== undefined && isInChain(sql, range, { height: height - 1, hash: previous })) {
      const fork = height - 1
      const lost = totalWork(readHeaders(sql, { from: height, count: range.to - fork }))
      const counts = anchor === undefined || anchor === 'none' || fork >= anchor.height
      candidate = { ...row, parent, fork, work: own - lost, counts }
    } else {
      // Only without an anchor can it compete with a chain that it is not linked to.
      const whole =
        anchor === undefined && range !== undefined
          ? totalWork(readHeaders(sql, { from: range.from, count: range.to - range.from + 1 }))
          : 0n
      candidate = {
        ...row,
        parent,
        fork: undefined,
        work: own - whole,
        counts: anchor === undefined || isAnchor,
      }
    }
    found.set(keyOf(height, row.hash), candidate)
  }
  return [...found.values()]
}

/** The best of the candidates that count, if it is better than the tip of the chain. */
function bestCandidate(list: readonly Candidate[], tip: HeaderRow | undefined): Candidate | undefined {
  let best: Candidate | undefined
  const isBetter = (one: Candidate): boolean => {
    const other = best ?? (tip && { ...tip, work: 0n })
    if (other === undefined || one.work !== other.work) return other === undefined || one.work > other.work
    return one.seq !== other.seq ? one.seq < other.seq : toHex(one.hash) < toHex(other.hash)
  }
  for (const candidate of list) if (candidate.counts && isBetter(candidate)) best = candidate
  return best
}

function anchorIn(sql: Sql): Anchor {
  const value = registerIn(sql, register.setting('anchor')) as string | undefined
  if (value === undefined) return undefined
  const [height, hash] = value.split(' ')
  return hash === undefined ? 'none' : { height: Number(height), hash: reversed(fromHex(hash)) }
}

function isInChain(
  sql: Sql,
  range: HeaderRange,
  { height, hash }: { height: number; hash: Uint8Array },
): boolean {
  return height >= range.from && height <= range.to && equalBytes(hashAt(sql, height), hash)
}

function isSame(
  one: { height: number; hash: Uint8Array },
  other: { height: number; hash: Uint8Array },
): boolean {
  return one.height === other.height && equalBytes(one.hash, other.hash)
}

function keyOf(height: number, hash: Uint8Array): string {
  return `${height} ${toHex(hash)}`
}

/** The hashes of consecutive headers, in internal order. */
function hashesOf(headers: Uint8Array): Uint8Array[] {
  return Array.from({ length: headerCount(headers) }, (_, index) => nativeHash256(headerAt(headers, index)))
}

function isLinked(headers: Uint8Array, hashes: readonly Uint8Array[]): boolean {
  return hashes.every(
    (hash, index) => index + 1 === hashes.length || equalBytes(previousOf(headers, index + 1), hash),
  )
}

/** Indexes of those of consecutive headers that are known. */
function knownAmong(sql: Sql, { height, headers }: HeaderRun): Set<number> {
  const rows = sql.all(
    'select height, header from header where height between ? and ?',
    ...[height, height + headerCount(headers) - 1],
  )
  const known = new Set<number>()
  for (const row of rows)
    if (equalBytes(row.header, headerAt(headers, row.height - height))) known.add(row.height - height)
  return known
}

/** Inserts consecutive headers. Each keeps the place of the first fact that has it. */
const INSERT = `with recursive each (n) as (select 0 union all select n + 1 from each where n + 1 < ?1)
  insert into header (height, header, seq, best)
  select ?2 + n, substr(?3, n * ${HEADER_BYTES} + 1, ${HEADER_BYTES}), ?4, ?5 from each where true
  on conflict (height, header) do update set seq = min(seq, excluded.seq)`

/** How many bytes of its hash a header is found by. */
const START_BYTES = 4
const INSERT_STARTS = `with recursive each (n) as (select 0 union all select n + 1 from each where n + 1 < ?1)
  insert into header_hash (start, height) select substr(?3, n * ${START_BYTES} + 1, ${START_BYTES}), ?2 + n from each where true
  on conflict do nothing`

function hasBranches(sql: Sql, { from, to }: HeaderRange): boolean {
  return (
    sql.get('select 1 from header where height between ? and ? and best = 0 limit 1', from, to) !== undefined
  )
}

function joinChain(sql: Sql, rows: readonly HeaderRow[]): void {
  for (const { height, header } of rows)
    sql.run('update header set best = 1 where height = ? and header = ?', height, header)
}

/** Moves the headers from a height on off the chain. */
function leaveChain(sql: Sql, from: number): void {
  sql.run('update header set best = 0 where height >= ? and best = 1', from)
}

function headerOf(sql: Sql, height: number): Uint8Array {
  return readHeaders(sql, { from: height, count: 1 })
}

/** The hash of a header of the chain, in internal order. */
function hashAt(sql: Sql, height: number): Uint8Array {
  return nativeHash256(headerOf(sql, height))
}

function tipOf(sql: Sql, { to }: HeaderRange): HeaderRow {
  const row = sql.get('select height, header, seq from header where height = ? and best = 1', to)
  if (row === undefined) throw new RangeError(`no header at ${to}`)
  return rowOf(row)
}
