import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { BlockedError, type BlockedKind, type Blocklist, type BlocklistReader } from './blocklist.js'
import {
  type AttributesReader,
  type CacheOptions,
  type ContentReader,
  type GraphReader,
  type MetadataReader,
  type NamesReader,
  type OrdinalStep,
  type OrdinalsReader,
  type StreamChunk,
  type StreamSummary,
  type StreamsReader,
  TIP,
  type TransactionsReader,
} from './graph-store.js'
import type { HistoryStep, ListedOrdinal, ListingsReader, TransactionOutput } from './listings.js'
import { type Awaitable, whenReady, yieldToEventLoop } from './yield-to-event-loop.js'

/**
 * A store as the public sees it: what is blocked is neither served nor found (`docs/blocking.md`). A read of a single thing that
 * leads to something blocked throws BlockedError; a read of many leaves it out and still returns as many as requested.
 *
 * An output is blocked by its outpoint, by the hash of its content, or as the origin of a name; a name by itself or by its
 * origin; an ordinal at a step by its output there, and by the output with its content.
 *
 * The graph itself is not filtered: transactions, spends, nodes and lineages prove where other things come from. Topic managers
 * and the engine read the unfiltered store. While nothing is blocked, reads go straight through.
 */
export class BlocklistFilter implements GraphReader {
  readonly transactions: TransactionsReader
  readonly names: NamesReader
  readonly ordinals: OrdinalsReader
  readonly metadata: MetadataReader
  readonly attributes: AttributesReader
  readonly content: ContentReader
  readonly streams: StreamsReader
  readonly listings: ListingsReader
  readonly opened?: () => Promise<void>
  /** By what a stream that was checked is blocked, and at which version of the list. */
  private readonly seenStreams = new WeakMap<
    StreamSummary,
    { version: number; kind: BlockedKind | undefined }
  >()

  constructor(private readonly store: GraphReader & { readonly blocklist: BlocklistReader }) {
    if (store.opened !== undefined) this.opened = store.opened
    this.transactions = store.transactions
    this.names = this.filteredNames()
    this.ordinals = this.filteredOrdinals()
    this.metadata = this.filteredMetadata()
    this.attributes = this.filteredAttributes()
    this.content = this.filteredContent()
    this.streams = this.filteredStreams()
    this.listings = this.filteredListings()
  }

  /** A store drops its cached answers when the blocklist changes. */
  consistent<Answer>(read: () => Awaitable<Answer>, cache?: CacheOptions<Answer>): Awaitable<Answer> {
    return this.store.consistent(read, cache)
  }

  cachedAnswer(key: string): unknown {
    return this.store.cachedAnswer(key)
  }

  private filteredNames(): NamesReader {
    const { names } = this.store
    return {
      genuineNode: (outpoint) => names.genuineNode(outpoint),
      genuineNodes: (outpoints) => names.genuineNodes(outpoints),
      originOf: (name) => {
        this.refuseName(name)
        return this.unlessBlocked(names.originOf(name))
      },
      claimed: (asked) => this.served(names.claimed(asked)),
      liveNode: (domain, filter) => {
        this.refuseName(domain)
        return this.unlessBlocked(names.liveNode(domain, filter))
      },
      // A prefix that is blocked as a name still has its node: longer names are not blocked with it.
      longestNode: (name, filter) => {
        this.refuseName(name)
        const node = names.longestNode(name, filter)
        this.unlessBlocked(node?.outpoint)
        return node
      },
      genuineOrigins: (outpoints) => this.served(names.genuineOrigins(outpoints)),
      byPrefix: (query) =>
        this.filled({
          limit: query.limit,
          page: (last) => names.byPrefix(last === undefined ? query : { ...query, after: last.name }),
          served: (found) => this.served(found),
        }),
    }
  }

  private filteredOrdinals(): OrdinalsReader {
    const { ordinals } = this.store
    return {
      lineage: (outpoint) => ordinals.lineage(outpoint),
      output: (outpoint) => this.readUnblocked(outpoint, () => ordinals.output(outpoint)),
      firstContentOutput: (txid) => {
        const output = ordinals.firstContentOutput(txid)
        this.unlessBlocked(output?.outpoint)
        return output
      },
      currentOutput: (outpoint) => {
        const current = this.readUnblocked(outpoint, () => ordinals.currentOutput(outpoint))
        return whenReady(current, (tip) => {
          if (tip !== undefined && !this.isOpen) this.refuse(this.shownAt(tip))
          return tip
        })
      },
      at: (outpoint, sequence) =>
        this.readUnblocked(outpoint, () => {
          const step = ordinals.at(outpoint, sequence)
          if (!this.isOpen) this.refuse(placesOf(step))
          return step
        }),
    }
  }

  private filteredMetadata(): MetadataReader {
    const { metadata } = this.store
    return {
      own: (outpoint) => this.readUnblocked(outpoint, () => metadata.own(outpoint)),
      merged: (outpoint, limit) => this.readUnblocked(outpoint, () => metadata.merged(outpoint, limit)),
    }
  }

  private filteredAttributes(): AttributesReader {
    const { attributes } = this.store
    return {
      tipsWith: (query) =>
        this.filled({
          limit: query.limit,
          page: (last) => attributes.tipsWith(last === undefined ? query : { ...query, after: last }),
          served: (tips) =>
            tips.filter((tip) => this.isOpen || this.blockedAmong(this.shownAt(tip)).size === 0),
        }),
    }
  }

  private filteredContent(): ContentReader {
    const { content } = this.store
    const refuse = (sha256: string): void => {
      if (this.list.has('content', sha256)) throw new BlockedError('content')
    }
    return {
      chunk: (sha256, position) => {
        refuse(sha256)
        return content.chunk(sha256, position)
      },
      // A body that is blocked while it is being sent ends there.
      *chunks(sha256, range) {
        refuse(sha256)
        for (const chunk of content.chunks(sha256, range)) {
          refuse(sha256)
          yield chunk
        }
      },
    }
  }

  private filteredStreams(): StreamsReader {
    const { streams } = this.store
    const blockedBy = (chunk: StreamChunk) => this.blockedBy(chunk)
    return {
      // Anything blocked in a stream blocks all of it, whatever part is asked for: before its first byte.
      summary: async (query) => {
        const stream = await this.readUnblocked(query.outpoint, () => streams.summary(query))
        if (stream === undefined || this.isOpen) return stream
        const { version } = this.list
        let seen = this.seenStreams.get(stream)
        if (seen?.version !== version) {
          let kind: BlockedKind | undefined
          for await (const chunk of streams.chunks(query)) {
            kind = blockedBy(chunk)
            if (kind !== undefined) break
          }
          seen = { version, kind }
          this.seenStreams.set(stream, seen)
        }
        if (seen.kind !== undefined) throw new BlockedError(seen.kind)
        return stream
      },
      async *chunks(query, ...part) {
        for await (const chunk of streams.chunks(query, ...part)) {
          const kind = blockedBy(chunk)
          if (kind !== undefined) throw new BlockedError(kind)
          yield chunk
        }
      },
    }
  }

  private filteredListings(): ListingsReader {
    const { listings } = this.store
    return {
      counts: () => listings.counts(),
      blockTimes: (heights) => listings.blockTimes(heights),
      childNodes: (domain) => {
        const nodes = listings.childNodes(domain)
        if (this.isOpen) return nodes
        const blocked = this.blockedAmong(nodes.flatMap(({ outpoint }) => outpoint ?? []))
        const { list } = this
        return nodes.filter(
          ({ domain, outpoint }) =>
            !list.has('name', domain) && !(outpoint && blocked.has(formatOutpoint(outpoint))),
        )
      },
      newestNames: (query) =>
        this.filled({
          limit: query.limit,
          page: (last) => listings.newestNames(last === undefined ? query : { ...query, after: last }),
          served: (found) => this.served(found),
        }),
      newestInscriptions: (query) =>
        this.filled({
          limit: query.limit,
          page: (last) => listings.newestInscriptions(last === undefined ? query : { ...query, after: last }),
          served: (found) => this.served(found),
        }),
      ordinalsWith: (query) =>
        this.filled({
          limit: query.limit,
          page: (last) =>
            listings.ordinalsWith(last === undefined ? query : { ...query, after: last.outpoint }),
          served: (found) => {
            const blocked = this.blockedAmong(found.flatMap(shownOf))
            return found.filter((each) => !shownOf(each).some((one) => blocked.has(formatOutpoint(one))))
          },
        }),
      // A blocked step still says where the ordinal went.
      history: (query) => {
        const history = this.readUnblocked(query.outpoint, () => listings.history(query))
        if (history === undefined || this.isOpen) return history
        const blocked = this.blockedAmong(history.steps.map(({ outpoint }) => outpoint))
        const steps = history.steps.map((step): HistoryStep => {
          if (!blocked.has(formatOutpoint(step.outpoint))) return step
          const { content: _, parent: __, owner: ___, ...bare } = step
          return { ...bare, hasMap: false, blocked: true }
        })
        return { ...history, steps }
      },
      transaction: (query) => {
        const found = listings.transaction(query)
        if (found === undefined || this.isOpen) return found
        const { txid } = query
        const blocked = this.blockedAmong(found.outputs.map(({ vout }) => ({ txid, vout })))
        const outputs = found.outputs.map((each): TransactionOutput => {
          const { vout, spender } = each
          if (!blocked.has(formatOutpoint({ txid, vout }))) return each
          return { vout, ...(spender !== undefined && { spender }), blocked: true }
        })
        return { ...found, outputs }
      },
    }
  }

  /** What is blocked. */
  private get list(): Blocklist {
    return this.store.blocklist.list()
  }

  /** Whether nothing is blocked. */
  private get isOpen(): boolean {
    return this.list.isEmpty
  }

  /** Reads an output, unless it is blocked. */
  private readUnblocked<Answer>(outpoint: Outpoint, read: () => Answer): Answer {
    this.refuse([outpoint])
    return read()
  }

  private unlessBlocked(outpoint: Outpoint | undefined): Outpoint | undefined {
    if (outpoint !== undefined) this.refuse([outpoint])
    return outpoint
  }

  /** @throws BlockedError if one of the outputs is blocked. */
  refuse(outpoints: Outpoint[]): void {
    if (this.isOpen) return
    for (const kind of this.blockedAmong(outpoints).values()) throw new BlockedError(kind)
  }

  private refuseName(name: string): void {
    if (this.list.has('name', name)) throw new BlockedError('name')
  }

  /** The blocked ones among the outputs, as text, and by what they are blocked. */
  private blockedAmong(outpoints: Outpoint[]): Map<string, BlockedKind> {
    const { list } = this
    const blocked = new Map<string, BlockedKind>()
    if (list.isEmpty) return blocked
    if (list.hasAny('content')) {
      for (const outpoint of outpoints) {
        const content = this.store.ordinals.output(outpoint)?.content
        if (content && list.has('content', content.sha256)) blocked.set(formatOutpoint(outpoint), 'content')
      }
    }
    if (list.hasAny('name')) {
      for (const { name, outpoint } of this.store.names.genuineOrigins(outpoints))
        if (list.has('name', name)) blocked.set(formatOutpoint(outpoint), 'name')
    }
    for (const text of outpoints.map(formatOutpoint))
      if (list.has('outpoint', text)) blocked.set(text, 'outpoint')
    return blocked
  }

  /** By what a chunk is blocked. Names need no check: the origin of a name starts a lineage, so no later chunk is one. */
  private blockedBy({ outpoint, sha256 }: StreamChunk): BlockedKind | undefined {
    if (this.list.has('outpoint', formatOutpoint(outpoint))) return 'outpoint'
    return this.list.has('content', sha256) ? 'content' : undefined
  }

  /** An output, and those that its ordinal shows there. */
  private shownAt(tip: Outpoint): Outpoint[] {
    return [tip, ...placesOf(this.store.ordinals.at(tip, TIP))]
  }

  /** The records whose outputs are not blocked. */
  served<Record extends { outpoint: Outpoint }>(records: Record[]): Record[] {
    const blocked = this.blockedAmong(records.map(({ outpoint }) => outpoint))
    return records.filter(({ outpoint }) => !blocked.has(formatOutpoint(outpoint)))
  }

  /** As many as requested, while there are any: a short page is the last one. */
  private async filled<Item>(options: {
    limit: number
    page: (last: Item | undefined) => Promise<Item[]> | Item[]
    served: (items: Item[]) => Item[]
  }): Promise<Item[]> {
    const { limit, page, served } = options
    const found: Item[] = []
    for (let last: Item | undefined; ; ) {
      const items = await page(last)
      found.push(...served(items))
      last = items.at(-1)
      if (found.length >= limit || items.length < limit) return found.slice(0, limit)
      // However much of the list is blocked.
      await yieldToEventLoop()
    }
  }
}

/** The outputs that an ordinal is in and shows at a step. */
function placesOf(step: OrdinalStep | undefined): Outpoint[] {
  return step === undefined ? [] : [step.output.outpoint, step.content.outpoint]
}

/** The outputs that a row of a list shows. */
function shownOf({ outpoint, contentOutpoint }: ListedOrdinal): Outpoint[] {
  return contentOutpoint === undefined ? [outpoint] : [outpoint, contentOutpoint]
}
