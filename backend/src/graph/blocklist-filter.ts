import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { BlockedError, type BlockedKind, Blocklist, type BlocklistReader } from './blocklist.js'
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
import { yieldToEventLoop } from './yield-to-event-loop.js'

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
  /** By what a stream that was checked is blocked, and at which version of the list. */
  private readonly seenStreams = new WeakMap<
    StreamSummary,
    { version: number; kind: BlockedKind | undefined }
  >()

  constructor(private readonly store: GraphReader & { readonly blocklist: BlocklistReader }) {
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
  consistent<Answer>(read: () => Promise<Answer>, cache?: CacheOptions<Answer>): Promise<Answer> | Answer {
    return this.store.consistent(read, cache)
  }

  cachedAnswer(key: string): unknown {
    return this.store.cachedAnswer(key)
  }

  private filteredNames(): NamesReader {
    const { names } = this.store
    return {
      genuineNodes: (outpoints) => names.genuineNodes(outpoints),
      originOf: async (name) => {
        await this.refuseName(name)
        return await this.unlessBlocked(await names.originOf(name))
      },
      claimed: async (asked) => await this.served(await names.claimed(asked)),
      liveNode: async (domain, filter) => {
        await this.refuseName(domain)
        return await this.unlessBlocked(await names.liveNode(domain, filter))
      },
      // A prefix that is blocked as a name still has its node: longer names are not blocked with it.
      longestNode: async (name, filter) => {
        await this.refuseName(name)
        const node = await names.longestNode(name, filter)
        await this.unlessBlocked(node?.outpoint)
        return node
      },
      genuineOrigins: async (outpoints) => await this.served(await names.genuineOrigins(outpoints)),
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
      firstContentOutput: async (txid) => {
        const output = await ordinals.firstContentOutput(txid)
        await this.unlessBlocked(output?.outpoint)
        return output
      },
      currentOutput: async (outpoint) => {
        const tip = await this.readUnblocked(outpoint, () => ordinals.currentOutput(outpoint))
        if (tip !== undefined && !this.isOpen) await this.refuse(await this.shownAt(tip))
        return tip
      },
      at: (outpoint, sequence) => {
        if (this.isOpen) return ordinals.at(outpoint, sequence)
        return this.readUnblocked(outpoint, async () => {
          const step = await ordinals.at(outpoint, sequence)
          await this.refuse(placesOf(step))
          return step
        })
      },
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
          served: async (tips) => {
            const served: Outpoint[] = []
            for (const tip of tips)
              if (this.isOpen || (await this.blockedAmong(await this.shownAt(tip))).size === 0)
                served.push(tip)
            return served
          },
        }),
    }
  }

  private filteredContent(): ContentReader {
    const { content } = this.store
    /** Undefined if it is not blocked, as far as that is known without a read. */
    const refused = (sha256: string): Promise<void> | undefined =>
      this.knownList?.has('content', sha256) === false ? undefined : this.refuseContent(sha256)
    return {
      chunk: (sha256, position) => {
        const refusal = refused(sha256)
        const read = () => content.chunk(sha256, position)
        return refusal === undefined ? read() : refusal.then(read)
      },
      // A body that is blocked while it is being sent ends there.
      async *chunks(sha256, range) {
        const refusal = refused(sha256)
        if (refusal !== undefined) await refusal
        for await (const chunk of content.chunks(sha256, range)) {
          const refusal = refused(sha256)
          if (refusal !== undefined) await refusal
          yield chunk
        }
      },
    }
  }

  private filteredStreams(): StreamsReader {
    const { streams } = this.store
    const blockedIn = (chunks: AsyncIterable<StreamChunk> | StreamChunk[]) => this.blockedIn(chunks)
    return {
      // Anything blocked in a stream blocks all of it, whatever part is asked for: before its first byte.
      summary: async (query) => {
        const stream = await this.readUnblocked(query.outpoint, () => streams.summary(query))
        if (stream === undefined || this.isOpen) return stream
        const { version } = await this.store.blocklist.list()
        let seen = this.seenStreams.get(stream)
        if (seen?.version !== version) {
          seen = { version, kind: await blockedIn(streams.chunks(query)) }
          this.seenStreams.set(stream, seen)
        }
        if (seen.kind !== undefined) throw new BlockedError(seen.kind)
        return stream
      },
      async *chunks(query, ...part) {
        for await (const chunk of streams.chunks(query, ...part)) {
          const kind = await blockedIn([chunk])
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
      childNodes: async (domain) => {
        const nodes = await listings.childNodes(domain)
        if (this.isOpen) return nodes
        const blocked = await this.blockedAmong(nodes.flatMap(({ outpoint }) => outpoint ?? []))
        const list = await this.store.blocklist.list()
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
          served: async (found) => {
            const blocked = await this.blockedAmong(found.flatMap(shownOf))
            return found.filter((each) => !shownOf(each).some((one) => blocked.has(formatOutpoint(one))))
          },
        }),
      // A blocked step still says where the ordinal went.
      history: async (query) => {
        const history = await this.readUnblocked(query.outpoint, () => listings.history(query))
        if (history === undefined || this.isOpen) return history
        const blocked = await this.blockedAmong(history.steps.map(({ outpoint }) => outpoint))
        const steps = history.steps.map((step): HistoryStep => {
          if (!blocked.has(formatOutpoint(step.outpoint))) return step
          const { content: _, parent: __, owner: ___, ...bare } = step
          return { ...bare, hasMap: false, blocked: true }
        })
        return { ...history, steps }
      },
      transaction: async (query) => {
        const found = await listings.transaction(query)
        if (found === undefined || this.isOpen) return found
        const { txid } = query
        const blocked = await this.blockedAmong(found.outputs.map(({ vout }) => ({ txid, vout })))
        const outputs = found.outputs.map((each): TransactionOutput => {
          const { vout, spender } = each
          if (!blocked.has(formatOutpoint({ txid, vout }))) return each
          return { vout, ...(spender !== undefined && { spender }), blocked: true }
        })
        return { ...found, outputs }
      },
    }
  }

  /** Whether nothing is blocked, as far as that is known without a read. */
  private get isOpen(): boolean {
    return this.knownList?.isEmpty === true
  }

  /** What is blocked, if that is known without a read. */
  private get knownList(): Blocklist | undefined {
    const list = this.store.blocklist.list()
    if (list instanceof Blocklist) return list
    // It may fail: a read that needs the list asks again, and gets that error.
    list.catch(() => {})
    return undefined
  }

  /** Reads an output, unless it is blocked. */
  private readUnblocked<Answer>(outpoint: Outpoint, read: () => Promise<Answer>): Promise<Answer> {
    return this.isOpen ? read() : this.refuse([outpoint]).then(read)
  }

  private async unlessBlocked(outpoint: Outpoint | undefined): Promise<Outpoint | undefined> {
    if (outpoint !== undefined) await this.refuse([outpoint])
    return outpoint
  }

  /** @throws BlockedError if one of the outputs is blocked. */
  async refuse(outpoints: Outpoint[]): Promise<void> {
    for (const kind of (await this.blockedAmong(outpoints)).values()) throw new BlockedError(kind)
  }

  private async refuseName(name: string): Promise<void> {
    if ((await this.store.blocklist.list()).has('name', name)) throw new BlockedError('name')
  }

  private async refuseContent(sha256: string): Promise<void> {
    if ((await this.store.blocklist.list()).has('content', sha256)) throw new BlockedError('content')
  }

  /** The blocked ones among the outputs, as text, and by what they are blocked. */
  private async blockedAmong(outpoints: Outpoint[]): Promise<Map<string, BlockedKind>> {
    const list = await this.store.blocklist.list()
    const blocked = new Map<string, BlockedKind>()
    if (list.isEmpty) return blocked
    if (list.hasAny('content')) {
      for (const outpoint of outpoints) {
        const content = (await this.store.ordinals.output(outpoint))?.content
        if (content && list.has('content', content.sha256)) blocked.set(formatOutpoint(outpoint), 'content')
      }
    }
    if (list.hasAny('name')) {
      for (const { name, outpoint } of await this.store.names.genuineOrigins(outpoints))
        if (list.has('name', name)) blocked.set(formatOutpoint(outpoint), 'name')
    }
    for (const text of outpoints.map(formatOutpoint))
      if (list.has('outpoint', text)) blocked.set(text, 'outpoint')
    return blocked
  }

  /** By what a chunk is blocked. Names need no check: the origin of a name starts a lineage, so no later chunk is one. */
  private async blockedIn(
    chunks: AsyncIterable<StreamChunk> | StreamChunk[],
  ): Promise<BlockedKind | undefined> {
    for await (const { outpoint, sha256 } of chunks) {
      const list = this.knownList ?? (await this.store.blocklist.list())
      if (list.has('outpoint', formatOutpoint(outpoint))) return 'outpoint'
      if (list.has('content', sha256)) return 'content'
    }
    return undefined
  }

  /** An output, and those that its ordinal shows there. */
  private async shownAt(tip: Outpoint): Promise<Outpoint[]> {
    return [tip, ...placesOf(await this.store.ordinals.at(tip, TIP))]
  }

  /** The records whose outputs are not blocked. */
  async served<Record extends { outpoint: Outpoint }>(records: Record[]): Promise<Record[]> {
    if (this.isOpen) return records
    const blocked = await this.blockedAmong(records.map(({ outpoint }) => outpoint))
    return records.filter(({ outpoint }) => !blocked.has(formatOutpoint(outpoint)))
  }

  /** As many as requested, while there are any: a short page is the last one. */
  private async filled<Item>(options: {
    limit: number
    page: (last: Item | undefined) => Promise<Item[]>
    served: (items: Item[]) => Promise<Item[]>
  }): Promise<Item[]> {
    const { limit, page, served } = options
    const found: Item[] = []
    for (let last: Item | undefined; ; ) {
      const items = await page(last)
      found.push(...(await served(items)))
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
