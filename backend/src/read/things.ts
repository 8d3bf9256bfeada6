import type { Row, Sql } from '../facts/connection.js'
import { unlessBlocked } from '../graph/blocklist.js'
import { CHUNK_TYPES, DIRECTORY_TYPES, heightIn, UNPROVEN } from '../graph/listings.js'
import type { ContentSummary } from '../graph/records.js'
import { joinBytes } from '../protocol/bytes.js'
import { DirectoryError, directoryEntries, pointerOf } from '../protocol/directory.js'
import { formatOutpoint, type Outpoint, readPointer } from '../protocol/outpoint.js'
import type { Steps } from '../protocol/steps.js'
import type { Content } from './content.js'
import type { Guard } from './guard.js'
import {
  type ListedName,
  type ListedOutput,
  type ListPlace,
  listedName,
  listedOutput,
  NEWEST_NAMES,
  NEWEST_OUTPUTS,
  type NewestQuery,
  newest,
} from './listings.js'
import { CONTENT, contentOf, placeOf, stepsOf } from './ordinals.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** A name, with those of its prefixes that were mined on the way to it. */
export interface NameThing extends ListedName {
  prefixes: number
  isMore: boolean
}

/** The chunks of a stream that follow the first one. */
export interface FurtherChunks {
  count: number
  /** Of all of them, in bytes. */
  length: number
  isMore: boolean
  last: Outpoint
}

/** How many rows are read at once. */
const PAGE = 50
/** A name is on the way to a longer one that follows it within this many blocks: half an hour. */
const ON_THE_WAY = 3
/** The most prefixes of a name, and chunks of a stream, that are counted. */
const MOST_PREFIXES = 64
const MOST_CHUNKS = 64
/** How many prefixes are counted before other requests run. */
const PREFIXES_AT_ONCE = 200
/** The most bytes of a transaction's directories that are read, and how many before other requests run. */
const MOST_OF_DIRECTORIES = 128 * 1024
const AT_ONCE = 32 * 1024
/** The least bytes that a directory counts as, and the bytes that the search for a transaction's directories counts as. */
const LEAST = 512
const LOOK = 2048

/**
 * Lists of things that people look for, rather than of single outputs: a name without the prefixes on the way to it, a site without
 * its files, the length of a stream. Whether a row is part of another one follows from these two alone, not from the requested page.
 */
export class Things {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
    private readonly content: Pick<Content, 'chunks'>,
  ) {}

  /** Names in the order of `Listings.newestNames`, without those that were mined on the way to a longer one. */
  names(query: NewestQuery): NameThing[] {
    return this.reader.list(`names as things ${JSON.stringify(query)}`, this.heads(query))
  }

  /** Inscriptions in the order of `Listings.newestInscriptions`, without those that a directory of their transaction leads to. */
  inscriptions(query: NewestQuery): ListedOutput[] {
    return this.reader.list(`inscriptions as things ${JSON.stringify(query)}`, this.wholes(query))
  }

  list<Item>(key: string, steps: Steps<Item[]>): Item[] {
    return this.reader.list(key, steps)
  }

  /** The chunks that follow an output; undefined if there is none. */
  furtherChunks(outpoint: Outpoint): FurtherChunks | undefined {
    return this.reader.answer((sql) => furtherChunks(sql, outpoint))
  }

  /** The content of those of the outputs that are stored, by outpoint. */
  contents(outpoints: Outpoint[]): Map<string, { outpoint: Outpoint; content: ContentSummary }> {
    const found = this.reader.all(outpoints, (sql, outpoint) => {
      const row = sql.get(CONTENT_AT, blobOf(outpoint.txid), outpoint.vout)
      const content = row && contentOf(row)
      return content === undefined ? [] : { outpoint, content }
    })
    return new Map(this.guard.served(found).map((each) => [formatOutpoint(each.outpoint), each]))
  }

  private *heads({ after, limit }: NewestQuery): Steps<NameThing[]> {
    const { reader, guard } = this
    const latest: number = reader.answer((sql) => sql.get(LATEST, UNPROVEN)?.recency) ?? 0
    const found: (ListedName & { tid: number })[] = []
    for (let last: ListPlace | undefined = after; ; yield) {
      const rows = reader.answer((sql) =>
        newest(sql, NEWEST_NAMES, { ...(last && { after: last }), limit: PAGE }).map((row) => ({
          ...{ ...listedName(row), tid: Number(row.tid) },
          longer: longerThan(sql, row, latest),
        })),
      )
      const blocked = guard.blockedAmong(rows.flatMap(({ longer }) => longer ?? []))
      for (const { longer, ...name } of guard.served(rows))
        if (longer === undefined || blocked.has(formatOutpoint(longer))) found.push(name)
      last = rows.at(-1)
      if (found.length >= limit || rows.length < PAGE) break
    }
    const things: NameThing[] = []
    let counted = 0
    for (const { tid, ...name } of found.slice(0, limit)) {
      const folded = this.prefixesOf({ ...name, tid }, latest)
      things.push({ ...name, ...folded })
      counted += folded.prefixes
      if (counted < PREFIXES_AT_ONCE) continue
      counted = 0
      yield
    }
    return things
  }

  private prefixesOf(
    name: ListedName & { tid: number },
    latest: number,
  ): Pick<NameThing, 'prefixes' | 'isMore'> {
    const outpoints = this.reader.answer((sql) => {
      const found: Outpoint[] = []
      let longer: Row = name
      while (found.length <= MOST_PREFIXES) {
        const row = sql.get(SHORTER, String(longer.name).slice(0, -1), longer.tid)
        if (row === undefined || !isOnTheWay(row, longer, latest)) break
        found.push(outpointOf(row))
        longer = row
      }
      return found
    })
    const blocked = this.guard.blockedAmong(outpoints)
    const end = outpoints.findIndex((each) => blocked.has(formatOutpoint(each)))
    const prefixes = end < 0 ? outpoints.length : end
    return { prefixes: Math.min(prefixes, MOST_PREFIXES), isMore: prefixes > MOST_PREFIXES }
  }

  private *wholes({ after, limit }: NewestQuery): Steps<ListedOutput[]> {
    const { reader, guard } = this
    const found: ListedOutput[] = []
    let known: { txid: string; parts: ReadonlySet<number> } | undefined
    let bytes = 0
    for (let last: ListPlace | undefined = after; ; yield) {
      const rows: ListedOutput[] = reader.answer((sql) =>
        newest(sql, NEWEST_OUTPUTS, { ...(last && { after: last }), limit: PAGE }).map(listedOutput),
      )
      for (const row of guard.served(rows)) {
        const { txid, vout } = row.outpoint
        if (known?.txid !== txid) {
          const read = this.partsIn(txid)
          known = { txid, parts: read.parts }
          bytes += read.bytes
        }
        if (!known.parts.has(vout)) found.push(row)
        if (found.length === limit) return found
        // Long directories count as several steps.
        for (; bytes > AT_ONCE; bytes -= AT_ONCE) yield
      }
      last = rows.at(-1)
      if (rows.length < PAGE) return found
    }
  }

  /** The outputs of a transaction that its directories lead to. */
  private partsIn(txid: string): { parts: ReadonlySet<number>; bytes: number } {
    const rows = this.reader.answer((sql) => sql.all(DIRECTORIES_OF, blobOf(txid)))
    const directories = this.guard.served(
      rows.map((row) => ({ outpoint: { txid, vout: Number(row.vout) }, content: contentOf(row) })),
    )
    const parts = new Set<number>()
    let bytes = 0
    for (const { outpoint, content } of directories) {
      const counted = Math.max(LEAST, content?.length ?? 0)
      if (content === undefined || bytes + counted > MOST_OF_DIRECTORIES) continue
      bytes += counted
      const body = unlessBlocked(() => joinBytes([...this.content.chunks(content.sha256)]))
      for (const vout of siblingsIn(body ?? new Uint8Array(), { txid, contentType: content.contentType }))
        if (vout !== outpoint.vout) parts.add(vout)
    }
    // Of directories that lead to each other, the first one stands for all.
    const [first] = directories
    if (first && directories.every(({ outpoint }) => parts.has(outpoint.vout)))
      parts.delete(first.outpoint.vout)
    return { parts, bytes: LOOK + bytes }
  }
}

/** The output indexes of its own transaction that a directory points at; none if it is no directory. */
function siblingsIn(
  body: Uint8Array,
  { txid, contentType }: { txid: string; contentType: string },
): number[] {
  const found: number[] = []
  try {
    for (const [, entry] of directoryEntries(body, contentType)) {
      const sibling = siblingOf(pointerOf(entry), txid)
      if (sibling !== undefined) found.push(sibling)
    }
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error
    return []
  }
  return found
}

function siblingOf(text: string, txid: string): number | undefined {
  const pointer = readPointer(text)
  if (pointer?.kind === 'sibling') return pointer.vout
  return pointer?.kind === 'outpoint' && pointer.outpoint.txid === txid ? pointer.outpoint.vout : undefined
}

/** The height of the latest block with a name. Unproven names are taken to be in it. */
const LATEST = 'select recency from name where active = 1 and recency < ? order by recency desc limit 1'
/** The name of the first mint from the node that a name's mint created: its output 1 (`docs/spec/protocol.md`, Mints). */
const LONGER = `select child.name, child.recency, txid, child.vout from spend cross join name as child on child.tid = sid
  cross join tx on tx.id = child.tid where pid = ? and spend.vout = 1 and child.active = 1`
/** The name whose node a mint was the first to spend. */
const SHORTER = `select name, txid, parent.vout, tid, recency from name as parent cross join tx on tx.id = tid
  where name = ? and parent.active = 1 and exists (select 1 from spend where pid = tid and spend.vout = 1 and sid = ?)`
/** A transaction may have any number of outputs: one that publishes a folder begins with it. */
const DIRECTORIES_OF = `select out.vout, sha, ctype, clen from tx cross join out on tid = tx.id
  where txid = ? and out.vout < 1000 and out.active = 1 and carrier = 0 and sha is not null
  and cast(ctype as text) in (${DIRECTORY_TYPES.map((type) => `'${type}'`)}) order by out.vout`
const CONTENT_AT = `select sha, ctype, clen from tx cross join out on tid = tx.id
  where txid = ? and out.vout = ? and out.active = 1 and carrier = 0`

/** The outpoint of the longer name on the way to which a name was mined. */
function longerThan(sql: Sql, row: Row, latest: number): Outpoint | undefined {
  const longer = sql.get(LONGER, row.tid)
  return longer !== undefined && isOnTheWay(row, longer, latest) ? outpointOf(longer) : undefined
}

function isOnTheWay(shorter: Row, longer: Row, latest: number): boolean {
  const [from, to] = [shorter, longer].map(({ recency }) => heightIn(recency) ?? latest)
  return Math.abs((to ?? 0) - (from ?? 0)) <= ON_THE_WAY
}

function furtherChunks(sql: Sql, outpoint: Outpoint): FurtherChunks | undefined {
  const place = placeOf(sql, outpoint)
  if (place === undefined || place.lin === null) return undefined
  const found = { count: 0, length: 0, isMore: false, last: outpoint }
  const from = place.step + 1
  const { rows } = stepsOf(sql, CONTENT, { lin: place.lin, from, limit: MOST_CHUNKS + 1 })
  for (const row of rows) {
    const content = contentOf(row)
    const isNext = row.step === from + found.count
    if (!isNext || content === undefined || !CHUNK_TYPES.includes(content.contentType)) break
    if (found.count === MOST_CHUNKS) return { ...found, isMore: true }
    found.count++
    found.length += content.length
    found.last = outpointOf(row)
  }
  return found.count === 0 ? undefined : found
}
