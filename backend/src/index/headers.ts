import type { Sql } from '../facts/connection.js'
import { FACT, type Fact, type NewFact } from '../facts/log.js'
import { nativeHash256 } from '../graph/native-hash.js'
import { HEADER_BYTES, headerAt, headerCount, previousOf } from '../protocol/block-header.js'
import { concatBytes, equalBytes, fromHex, joinBytes, reversed, toHex } from '../protocol/bytes.js'
import { CodedError } from '../protocol/coded-error.js'
import { totalWork } from '../protocol/header-rules.js'
import type { HeaderRange } from '../protocol/header-store.js'

/*
 * The best chain of block headers, derived from header facts. A host knows a part of the chain, from some headers below its
 * checkpoint up, so a fact says the height of its first header. The host verifies it before it inserts it (`src/chain/headers`).
 *
 * The chain with the most work counts, from the lowest header that is linked to it; of equal ones that whose tip came first. The
 * setting `anchor` names a block that the chain must contain; if it is empty, no header counts.
 *
 * The best chain stands in rows of consecutive headers: 900,000 are 80 MB and hardly more. Everything else, a few
 * orphans, stands in `branch`, a header in a row. Both are a function of the set of facts, in whatever order they were applied.
 */

/** The most headers in one fact. */
const MAX_HEADERS = 2016
const HEIGHT_BYTES = 4

/** A header and the seq of the first fact that has it, which decides between tips of equal work. */
const RECORD_BYTES = HEADER_BYTES + 8
/** A row of so many records fits into a page of SQLite. */
const ROW_HEADERS = 40
/** Of the merkle root, within a header. */
const ROOT_AT = 36

/** A header fact whose headers are not linked, or whose key is not the hash of the last one. */
export class BadHeadersError extends CodedError {
  override readonly name = 'BadHeadersError'
  readonly code = 'BAD_HEADERS'
}

/** Consecutive headers, of which the first has a height. */
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
    `select substr(headers, (?1 - height) * ${RECORD_BYTES} + ${ROOT_AT + 1}, 32) as root
      from chain where height <= ?1 order by height desc limit 1`,
    height,
  )
  return row?.root.length === 32 ? reversed(row.root) : undefined
}

/** @param block.root In display order. */
export function isOnBestChain(sql: Sql, { height, root }: { height: number; root: Uint8Array }): boolean {
  const known = rootAt(sql, height)
  return known !== undefined && equalBytes(known, root)
}

export function headerRange(sql: Sql): HeaderRange | undefined {
  const first = sql.get('select height from chain order by height limit 1')
  const last = sql.get('select height, length(headers) as bytes from chain order by height desc limit 1')
  return first && last && { from: first.height, to: last.height + last.bytes / RECORD_BYTES - 1 }
}

/** Consecutive headers of the best chain, as `HeaderStore.read`. */
export function readHeaders(sql: Sql, { from, count }: { from: number; count: number }): Uint8Array {
  const rows = count < 1 ? [] : rowsBetween(sql, from, from + count - 1)
  const [first] = rows
  if (first === undefined || first.height > from) return new Uint8Array(0)
  const records = joinBytes(rows.map(({ headers }) => headers)).subarray((from - first.height) * RECORD_BYTES)
  const found = Math.min(count, records.length / RECORD_BYTES)
  const headers = new Uint8Array(found * HEADER_BYTES)
  for (let index = 0; index < found; index++) headers.set(headerIn(records, index), index * HEADER_BYTES)
  return headers
}

/**
 * Facts for those of consecutive headers that are not known yet, highest first where they go below the chain, so that each is
 * linked when it is applied.
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
 * @throws BadHeadersError
 */
export function applyHeaders(sql: Sql, fact: Fact): HeaderRange[] {
  const { height, headers } = readHeadersFact(fact)
  const hashes = hashesOf(headers)
  const last = hashes.at(-1)
  if (last === undefined || !isLinked(headers, hashes) || !equalBytes(reversed(last), fact.key))
    throw new BadHeadersError(`the header fact ${toHex(fact.key)} is damaged`)
  const to = height + hashes.length - 1
  const range = headerRange(sql)
  const isGrowth =
    range !== undefined &&
    ((height === range.to + 1 && equalBytes(previousOf(headers), hashAt(sql, range.to))) ||
      (to === range.from - 1 && equalBytes(last, previousOf(headerOf(sql, range.from)))))
  if (isGrowth && !hasBranches(sql, { from: height - 1, to: to + 1 })) {
    writeChain(sql, height, joinBytes(hashes.map((_, index) => record(headerAt(headers, index), fact.seq))))
    return [{ from: height, to }]
  }
  const known = knownAmong(sql, { height, headers })
  for (const [index, hash] of hashes.entries()) {
    const at = height + index
    if (known.get(index) === 'chain') lowerSeq(sql, at, fact.seq)
    else addBranch(sql, { height: at, hash, header: headerAt(headers, index), seq: fact.seq })
  }
  return chooseChain(sql, { from: height, to })
}

/** Applies what the setting `anchor` is now. @returns The heights whose block on the best chain changed. */
export function applyAnchor(sql: Sql): HeaderRange[] {
  const range = headerRange(sql)
  const anchor = anchorIn(sql)
  const isKept =
    range === undefined || anchor === undefined || (anchor !== 'none' && isInChain(sql, range, anchor))
  if (isKept) return chooseChain(sql)
  chainToBranches(sql, range.from)
  return [range, ...chooseChain(sql)]
}

interface BranchRow {
  height: number
  /** In internal order. */
  hash: Uint8Array
  header: Uint8Array
  seq: number
}

/** A header beside the chain, as a candidate for its tip. */
interface Candidate extends BranchRow {
  parent: Candidate | undefined
  /** The height at which its branch leaves the chain; undefined if it does not. */
  fork: number | undefined
  /** Up to and with it, beyond the work of the chain. */
  work: bigint
  counts: boolean
}

/** A block that the chain must contain; `none`: no header counts. */
type Anchor = { height: number; hash: Uint8Array } | 'none' | undefined

/**
 * Makes the best tip that there is that of the chain. The chain contains the anchor, or there is none.
 *
 * @param news The heights of what has come; by default anything may be new. What is not linked to it lost to the chain before.
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
  if (range !== undefined) chainToBranches(sql, isAttached ? first.height : range.from)
  takeBranches(sql, path)
  if (range === undefined) return [...changed, { from: first.height, to: best.height }]
  return isAttached
    ? [...changed, { from: first.height, to: Math.max(range.to, best.height) }]
    : [...changed, range, { from: first.height, to: best.height }]
}

/** Adds to the chain what is known below it. */
function extendBelow(sql: Sql): HeaderRange[] {
  const range = headerRange(sql)
  if (range === undefined) return []
  const found: BranchRow[] = []
  let previous = previousOf(headerOf(sql, range.from))
  for (let height = range.from - 1; ; height--) {
    const row = sql.get(
      'select height, hash, header, seq from branch where height = ? and hash = ?',
      height,
      previous,
    )
    if (row === undefined) break
    found.unshift(row as BranchRow)
    previous = previousOf(row.header)
  }
  takeBranches(sql, found)
  return found.length === 0 ? [] : [{ from: range.from - found.length, to: range.from - 1 }]
}

const ALL: HeaderRange = { from: 0, to: Number.MAX_SAFE_INTEGER }
/** How many heights are looked at for what is linked, at once. */
const HEIGHTS_A_PAGE = 500

/** The heights of what is new, and above what the chain was extended by: branches that leave it there were not linked to it. */
function covering({ from, to }: HeaderRange, extended: readonly HeaderRange[]): HeaderRange {
  return {
    from: Math.min(from, ...extended.map((range) => range.from)),
    to: Math.max(to, ...extended.map((range) => range.to + 1)),
  }
}

/** The headers beside the chain with these heights, from low to high. */
function branches(sql: Sql, { from, to }: HeaderRange): BranchRow[] {
  return sql.all(
    'select height, hash, header, seq from branch where height between ? and ? order by height',
    from,
    to,
  ) as BranchRow[]
}

/** The same, with those before them that they are linked to, and all that is built on them. */
function branchesAround(sql: Sql, { from, to }: HeaderRange): BranchRow[] {
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
  rows: readonly BranchRow[],
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
      const whole = anchor === undefined && range !== undefined ? chainWork(sql, range) : 0n
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
function bestCandidate(list: readonly Candidate[], tip: BranchRow | undefined): Candidate | undefined {
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
  const value = sql.get("select value from setting where name = 'anchor'")?.value as string | undefined
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

/** Which of consecutive headers are known, by their index, and where. */
function knownAmong(sql: Sql, { height, headers }: HeaderRun): Map<number, 'chain' | 'branch'> {
  const known = new Map<number, 'chain' | 'branch'>()
  const count = headerCount(headers)
  const range = headerRange(sql)
  if (range !== undefined) {
    const from = Math.max(height, range.from)
    const chain = readHeaders(sql, { from, count: height + count - from })
    for (let index = 0; index < headerCount(chain); index++) {
      const at = from - height + index
      if (equalBytes(headerAt(chain, index), headerAt(headers, at))) known.set(at, 'chain')
    }
  }
  const rows = sql.all(
    'select height, header from branch where height between ? and ?',
    height,
    height + count - 1,
  )
  for (const row of rows) {
    const at = row.height - height
    if (equalBytes(row.header, headerAt(headers, at))) known.set(at, 'branch')
  }
  return known
}

function hasBranches(sql: Sql, { from, to }: HeaderRange): boolean {
  return sql.get('select 1 from branch where height between ? and ? limit 1', from, to) !== undefined
}

function addBranch(sql: Sql, { height, hash, header, seq }: BranchRow): void {
  sql.run(
    `insert into branch (height, hash, header, seq) values (?, ?, ?, ?)
      on conflict (height, hash) do update set seq = min(seq, excluded.seq)`,
    height,
    hash,
    header,
    seq,
  )
}

/** Moves consecutive headers from beside the chain into it. */
function takeBranches(sql: Sql, rows: readonly BranchRow[]): void {
  const [first] = rows
  if (first === undefined) return
  for (const { height, hash } of rows)
    sql.run('delete from branch where height = ? and hash = ?', height, hash)
  writeChain(sql, first.height, joinBytes(rows.map(({ header, seq }) => record(header, seq))))
}

/** Moves the chain from a height on beside it. */
function chainToBranches(sql: Sql, from: number): void {
  const rows = rowsBetween(sql, from, Number.MAX_SAFE_INTEGER)
  sql.run('delete from chain where height >= ?', rows[0]?.height ?? from)
  for (const row of rows) {
    const kept = Math.max(0, from - row.height)
    if (kept > 0) writeChain(sql, row.height, row.headers.subarray(0, kept * RECORD_BYTES))
    for (let index = kept; index < row.headers.length / RECORD_BYTES; index++) {
      const header = headerIn(row.headers, index)
      addBranch(sql, {
        height: row.height + index,
        hash: nativeHash256(header),
        header,
        seq: seqIn(row.headers, index),
      })
    }
  }
}

interface ChainRow {
  /** Of its first header. */
  height: number
  headers: Buffer
}

/** The rows of the chain with these heights. */
function rowsBetween(sql: Sql, from: number, to: number): ChainRow[] {
  return sql.all(
    `select height, headers from chain
      where height >= coalesce((select max(height) from chain where height <= ?), ?) and height <= ? order by height`,
    ...[from, from, to],
  ) as ChainRow[]
}

/** Writes records next to the chain, or the first ones: rows are cut at the same heights whatever is written when. */
function writeChain(sql: Sql, height: number, records: Uint8Array): void {
  const write = (from: number, bytes: Uint8Array): void => {
    const to = from + bytes.length / RECORD_BYTES
    for (let at = from; at < to; ) {
      const next = Math.min(to, (Math.floor(at / ROW_HEADERS) + 1) * ROW_HEADERS)
      const row = bytes.subarray((at - from) * RECORD_BYTES, (next - from) * RECORD_BYTES)
      sql.run('insert or replace into chain (height, headers) values (?, ?)', at, row)
      at = next
    }
  }
  const [below] = height % ROW_HEADERS === 0 ? [] : rowsBetween(sql, height - 1, height - 1)
  const end = height + records.length / RECORD_BYTES
  const above =
    end % ROW_HEADERS === 0 ? undefined : sql.get('select headers from chain where height = ?', end)
  if (above !== undefined) sql.run('delete from chain where height = ?', end)
  const parts = [below?.headers, records, above?.headers as Buffer | undefined]
  write(below?.height ?? height, joinBytes(parts.filter((part) => part !== undefined)))
}

function headerOf(sql: Sql, height: number): Uint8Array {
  return readHeaders(sql, { from: height, count: 1 })
}

/** The hash of a header of the chain, in internal order. */
function hashAt(sql: Sql, height: number): Uint8Array {
  return nativeHash256(headerOf(sql, height))
}

function tipOf(sql: Sql, { to }: HeaderRange): BranchRow {
  const [row] = rowsBetween(sql, to, to)
  if (row === undefined) throw new RangeError(`no header at ${to}`)
  const header = headerIn(row.headers, to - row.height)
  return { height: to, hash: nativeHash256(header), header, seq: seqIn(row.headers, to - row.height) }
}

function chainWork(sql: Sql, { from, to }: HeaderRange): bigint {
  return totalWork(readHeaders(sql, { from, count: to - from + 1 }))
}

/** Another fact has a header of the chain. */
function lowerSeq(sql: Sql, height: number, seq: number): void {
  const [row] = rowsBetween(sql, height, height)
  const index = height - (row?.height ?? height)
  if (row === undefined || seqIn(row.headers, index) <= seq) return
  row.headers.set(record(headerIn(row.headers, index), seq), index * RECORD_BYTES)
  sql.run('update chain set headers = ? where height = ?', row.headers, row.height)
}

function record(header: Uint8Array, seq: number): Buffer {
  const bytes = Buffer.alloc(RECORD_BYTES)
  bytes.set(header)
  bytes.writeDoubleBE(seq, HEADER_BYTES)
  return bytes
}

function headerIn(records: Uint8Array, index: number): Uint8Array {
  return records.subarray(index * RECORD_BYTES, index * RECORD_BYTES + HEADER_BYTES)
}

function seqIn(records: Buffer, index: number): number {
  return records.readDoubleBE(index * RECORD_BYTES + HEADER_BYTES)
}
