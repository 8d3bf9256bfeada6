import type { Sql } from '../facts/connection.js'
import { blockedSubject } from '../facts/registers.js'
import { BlockedError, type BlockedKind, Blocklist } from '../graph/blocklist.js'
import { type OrdinalStep, TIP } from '../graph/records.js'
import { inSlices } from '../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { atOnce, type Steps } from '../protocol/steps.js'
import { blobOf, hexOf, type Reader } from './reader.js'

export interface GuardOptions {
  /** The current blocklist; by default, an empty one. */
  blocklist?: () => Blocklist
  /** Called with each tip that is read; throws if it is not known to be the last one. */
  checkTip?: ((tip: OrdinalStep | undefined) => void) | undefined
}

/**
 * Keeps blocked things out of reads (`docs/operating.md`, Blocking). A read of a single thing that leads to something blocked
 * throws BlockedError; a read of many leaves it out and still returns as many as requested.
 *
 * An output is blocked by its outpoint, by the hash of its content, or as the origin of a name; a name by itself or by its
 * origin; an ordinal at a step by its output there, and by the output with its content.
 *
 * The graph itself is not filtered: transactions, spends, nodes and lineages prove where other things come from.
 */
export class Guard {
  constructor(
    private readonly reader: Reader,
    private readonly options: GuardOptions = {},
  ) {}

  /** The blocklist for these reads. */
  get list(): Blocklist {
    return this.options.blocklist?.() ?? NOTHING
  }

  get isOpen(): boolean {
    return this.list.isEmpty
  }

  /** @throws BlockedError if one of the outputs is blocked. */
  refuse(outpoints: Outpoint[]): void {
    if (this.isOpen) return
    for (const kind of this.blockedAmong(outpoints).values()) throw new BlockedError(kind)
  }

  /** @throws BlockedError if the name itself is blocked. */
  refuseName(name: string): void {
    if (this.list.has('name', name)) throw new BlockedError('name')
  }

  /** @throws BlockedError if a body is blocked. */
  refuseContent(sha256: string): void {
    if (this.list.has('content', sha256)) throw new BlockedError('content')
  }

  /**
   * Checks all outputs of a transaction, which its bytes contain. Yields, as there may be any number.
   *
   * @throws BlockedError if one of them is blocked.
   */
  async refuseTransaction(txid: string): Promise<void> {
    await inSlices(this.outputsPassing(txid))
  }

  /** As {@link refuseTransaction}, for a short one, without yielding. */
  refuseShort(txid: string): void {
    atOnce(this.outputsPassing(txid))
  }

  private *outputsPassing(txid: string): Steps<void> {
    const { list, reader } = this
    if (list.isEmpty) return
    if (list.hasOutputOf(txid)) throw new BlockedError('outpoint')
    for (const { name } of reader.answer((sql) => sql.all(NAMES_OF, blobOf(txid))))
      if (list.has('name', String(name))) throw new BlockedError('name')
    for (let after = -1; list.hasAny('content'); yield) {
      const rows = reader.answer((sql) => sql.all(CONTENTS_OF, blobOf(txid), after, OUTPUTS_A_PAGE))
      for (const { sha } of rows) this.refuseContent(hexOf(sha))
      if (rows.length < OUTPUTS_A_PAGE) return
      after = rows.at(-1)?.vout
    }
  }

  /** Passes on what was found at an outpoint. @throws BlockedError if it is blocked. */
  passing<Found extends { outpoint: Outpoint }>(found: Found | undefined): Found | undefined {
    if (found !== undefined) this.refuse([found.outpoint])
    return found
  }

  /** Passes on a step of an ordinal. @throws BlockedError if it is in a blocked output or shows one. */
  passingStep(step: OrdinalStep | undefined, sequence: number): OrdinalStep | undefined {
    this.refuse(placesOf(step))
    if (sequence === TIP) this.options.checkTip?.(step)
    return step
  }

  get checkTip(): GuardOptions['checkTip'] {
    return this.options.checkTip
  }

  /** The blocked ones among the outputs, as text, with the kind of each block. */
  blockedAmong(outpoints: Outpoint[]): Map<string, BlockedKind> {
    const { list } = this
    const blocked = new Map<string, BlockedKind>()
    if (list.isEmpty) return blocked
    const [hasContent, hasNames] = [list.hasAny('content'), list.hasAny('name')]
    const kindOf = (sql: Sql, outpoint: Outpoint): BlockedKind | undefined => {
      if (list.has('outpoint', formatOutpoint(outpoint))) return 'outpoint'
      const place = [blobOf(outpoint.txid), outpoint.vout] as const
      const name = hasNames ? sql.get(NAME_AT, ...place)?.name : undefined
      if (name !== undefined && list.has('name', String(name))) return 'name'
      const sha = hasContent ? sql.get(CONTENT_AT, ...place)?.sha : undefined
      return sha && list.has('content', hexOf(sha)) ? 'content' : undefined
    }
    this.reader.all(outpoints, (sql, outpoint) => {
      const kind = kindOf(sql, outpoint)
      if (kind !== undefined) blocked.set(formatOutpoint(outpoint), kind)
      return []
    })
    return blocked
  }

  served<Record extends { outpoint: Outpoint }>(records: Record[]): Record[] {
    return this.unblocked(records, ({ outpoint }) => [outpoint])
  }

  unblocked<Item>(items: Item[], outputsOf: (item: Item) => Outpoint[]): Item[] {
    const blocked = this.blockedAmong(items.flatMap(outputsOf))
    if (blocked.size === 0) return items
    return items.filter((item) => !outputsOf(item).some((each) => blocked.has(formatOutpoint(each))))
  }

  /**
   * The first items of a list without blocked outputs, as many as requested if there are; one page a step.
   *
   * @param query.page Reads the items after one, up to a limit; fewer at the end.
   */
  *filled<Item>(query: {
    limit: number
    page: (last: Item | undefined, limit: number) => Item[]
    outputsOf: (item: Item) => Outpoint[]
  }): Steps<Item[]> {
    const { limit, page, outputsOf } = query
    const found: Item[] = []
    let last: Item | undefined
    for (let size = limit; ; size = Math.max(limit, BLOCKED_A_PAGE)) {
      const items = page(last, size)
      found.push(...this.unblocked(items, outputsOf))
      last = items.at(-1)
      if (found.length >= limit || items.length < size) return found.slice(0, limit)
      yield
    }
  }
}

/** The name that an output is the origin of. */
export const NAME_AT =
  'select name from tx cross join name on tid = id where txid = ? and vout = ? and name.active = 1'
const CONTENT_AT = `select sha from tx cross join out on tid = tx.id
  where txid = ? and vout = ? and out.active = 1 and carrier = 0`

const NAMES_OF = 'select name from tx cross join name on tid = id where txid = ? and name.active = 1'
const CONTENTS_OF = `select vout, sha from tx cross join out on tid = tx.id
  where txid = ? and vout > ? and sha is not null and out.active = 1 and carrier = 0 order by vout limit ?`
const OUTPUTS_A_PAGE = 1000

/** The registers of what is blocked. */
export const BLOCKED = `select subject, value from register
  where subject between ? and ? and value ->> '$.blocked' = 1 order by subject limit ?`

/**
 * The blocklist, which is read again once a commit has changed it.
 *
 * @param onChange Called when it has changed.
 */
export function listBlocked(reader: Reader, onChange: (() => void) | undefined): () => Blocklist {
  let known: { list: Blocklist; commits: number } | undefined
  return () => {
    const { commits } = reader
    if (known?.commits === commits) return known.list
    const version = reader.count('blocks')
    let list = known?.list
    if (list?.version !== version) {
      if (list !== undefined) onChange?.()
      const rows = reader.answer((sql) => sql.all(BLOCKED, 'block ', 'block ~', ALL))
      list = new Blocklist(rows.map(({ subject }) => blockedSubject(subject)))
      list.version = version
    }
    known = { list, commits }
    return list
  }
}

const NOTHING = new Blocklist()
const ALL = Number.MAX_SAFE_INTEGER

/** How many items are read at once after some were blocked: many may follow each other. */
const BLOCKED_A_PAGE = 500

/** The outputs that an ordinal is in and shows at a step. */
export function placesOf(step: OrdinalStep | undefined): Outpoint[] {
  return step === undefined ? [] : [step.output.outpoint, step.content.outpoint]
}
