import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Attribute } from './attributes.js'
import { BlockedError } from './blocked-error.js'
import { type BlockedKind, Blocklist, type BlocklistReader } from './blocklist.js'
import {
  type AttributesReader,
  type ByteRange,
  type ConsistentReader,
  type ContentReader,
  type KeptAnswer,
  type LineageReader,
  type MapReader,
  type NamesReader,
  type OrdinalStep,
  type OrdinalsReader,
  type ProofReader,
  type RawTransaction,
  type RawTransactionReader,
  type SpendsReader,
  type StreamChunk,
  type StreamQuery,
  type StreamReader,
  type StreamSummary,
  TIP,
  type TransactionReader,
} from './graph-store.js'
import type { MapState } from './map-merge.js'
import type { NameRecord, NodeRecord, OutputRecord, TransactionRecord } from './records.js'
import { yieldToEventLoop } from './yield-to-event-loop.js'

/** What answers are made of. */
export type AnswerReads = ConsistentReader &
  TransactionReader &
  RawTransactionReader &
  ProofReader &
  SpendsReader &
  NamesReader &
  OrdinalsReader &
  MapReader &
  AttributesReader &
  LineageReader &
  ContentReader &
  StreamReader

/**
 * A store as whoever asks this host is to see it: what is blocked is not served and not found (`docs/blocking.md`). A read of
 * one thing that leads to something blocked throws BlockedError; a read of many leaves it out, and is as long as it was
 * asked to be all the same.
 *
 * An output is blocked by its outpoint, by the hash of its content, or as the origin of a name; a name by itself, or with
 * its origin; an ordinal at a step with the output that it stands in there, and with the one that its content is in.
 *
 * What the graph is made of stays as it is: transactions, spends, nodes and lineages show where something else comes from.
 * Topic managers and the engine read past this. Where nothing is blocked, every read goes straight through.
 */
export class BlocklistFilter implements AnswerReads {
  /** Of streams that were looked through: by what they are blocked, and at which version of the list. */
  private readonly streams = new WeakMap<StreamSummary, { version: number; kind: BlockedKind | undefined }>()

  constructor(private readonly store: AnswerReads & BlocklistReader) {}

  /** What is blocked is of the store, too: an answer that it keeps is given up when that changes. */
  consistent<Answer>(read: () => Promise<Answer>, kept?: KeptAnswer<Answer>): Promise<Answer> {
    return this.store.consistent(read, kept)
  }

  transaction(txid: string): Promise<TransactionRecord | undefined> {
    return this.store.transaction(txid)
  }

  holdsTransaction(txid: string): Promise<boolean> {
    return this.store.holdsTransaction(txid)
  }

  rawTransaction(txid: string): Promise<RawTransaction | undefined> {
    return this.store.rawTransaction(txid)
  }

  heightOf(txid: string): Promise<number | undefined> {
    return this.store.heightOf(txid)
  }

  spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    return this.store.spenderOf(outpoint)
  }

  genuineNodes(outpoints: Outpoint[]): Promise<NodeRecord[]> {
    return this.store.genuineNodes(outpoints)
  }

  lineage(outpoint: Outpoint): AsyncIterable<Outpoint> {
    return this.store.lineage(outpoint)
  }

  async nameOrigin(name: string): Promise<Outpoint | undefined> {
    await this.refuseName(name)
    return await this.unlessBlocked(await this.store.nameOrigin(name))
  }

  async liveNode(domain: string): Promise<Outpoint | undefined> {
    await this.refuseName(domain)
    return await this.unlessBlocked(await this.store.liveNode(domain))
  }

  /** Of a prefix that is blocked as a name the node is told even so: longer names are none of its business. */
  async longestNode(name: string): Promise<NodeRecord | undefined> {
    await this.refuseName(name)
    const node = await this.store.longestNode(name)
    await this.unlessBlocked(node?.outpoint)
    return node
  }

  async genuineOrigins(outpoints: Outpoint[]): Promise<NameRecord[]> {
    return await this.served(await this.store.genuineOrigins(outpoints))
  }

  async namesByPrefix(query: { prefix: string; after?: string; limit: number }): Promise<NameRecord[]> {
    return await this.filled({
      limit: query.limit,
      page: (last: NameRecord | undefined) =>
        this.store.namesByPrefix(last === undefined ? query : { ...query, after: last.name }),
      served: (names) => this.served(names),
    })
  }

  output(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    if (this.isOpen) return this.store.output(outpoint)
    return this.guarded([outpoint], () => this.store.output(outpoint))
  }

  async firstContentOutput(txid: string): Promise<OutputRecord | undefined> {
    const output = await this.store.firstContentOutput(txid)
    await this.unlessBlocked(output?.outpoint)
    return output
  }

  async currentOutput(outpoint: Outpoint): Promise<Outpoint | undefined> {
    const tip = await this.guarded([outpoint], () => this.store.currentOutput(outpoint))
    if (tip !== undefined && !this.isOpen) await this.refuse(await this.shownAt(tip))
    return tip
  }

  ordinalAt(outpoint: Outpoint, sequence: number): Promise<OrdinalStep | undefined> {
    if (this.isOpen) return this.store.ordinalAt(outpoint, sequence)
    return this.guarded([outpoint], async () => {
      const step = await this.store.ordinalAt(outpoint, sequence)
      await this.refuse(placesOf(step))
      return step
    })
  }

  ownMap(outpoint: Outpoint): Promise<MapState> {
    if (this.isOpen) return this.store.ownMap(outpoint)
    return this.guarded([outpoint], () => this.store.ownMap(outpoint))
  }

  mergedMap(outpoint: Outpoint, limit?: number): Promise<MapState | undefined> {
    if (this.isOpen) return this.store.mergedMap(outpoint, limit)
    return this.guarded([outpoint], () => this.store.mergedMap(outpoint, limit))
  }

  async tipsWith(query: { attributes: Attribute[]; limit: number; after?: Outpoint }): Promise<Outpoint[]> {
    return await this.filled({
      limit: query.limit,
      page: (last: Outpoint | undefined) =>
        this.store.tipsWith(last === undefined ? query : { ...query, after: last }),
      served: async (tips) => {
        const served: Outpoint[] = []
        for (const tip of tips)
          if (this.isOpen || (await this.blockedAmong(await this.shownAt(tip))).size === 0) served.push(tip)
        return served
      },
    })
  }

  shortBody(sha256: string): Promise<Uint8Array | undefined> {
    if (this.isOpen) return this.store.shortBody(sha256)
    return this.refuseContent(sha256).then(() => this.store.shortBody(sha256))
  }

  /** Of a body that is blocked while it is sent, no further piece comes. */
  async *contentChunks(sha256: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    await this.refuseContent(sha256)
    for await (const piece of this.store.contentChunks(sha256, range)) {
      await this.refuseContent(sha256)
      yield piece
    }
  }

  /** A stream with anything blocked in it is blocked as a whole, whatever part of it is asked for: before its first byte. */
  async stream(query: StreamQuery): Promise<StreamSummary | undefined> {
    const stream = await this.guarded([query.outpoint], () => this.store.stream(query))
    if (stream === undefined || this.isOpen) return stream
    const { version } = await this.store.blocklist()
    let seen = this.streams.get(stream)
    if (seen?.version !== version) {
      seen = { version, kind: await this.blockedIn(this.store.streamChunks(query)) }
      this.streams.set(stream, seen)
    }
    if (seen.kind !== undefined) throw new BlockedError(seen.kind)
    return stream
  }

  async *streamChunks(query: StreamQuery, from?: number): AsyncGenerator<StreamChunk> {
    for await (const chunk of this.store.streamChunks(query, from)) {
      const kind = await this.blockedIn([chunk])
      if (kind !== undefined) throw new BlockedError(kind)
      yield chunk
    }
  }

  /** Whether nothing at all is blocked, as far as that is known without a read. */
  private get isOpen(): boolean {
    const list = this.store.blocklist()
    return list instanceof Blocklist && list.isEmpty
  }

  /** What a read gives, where none of the outputs that it asks about is blocked. */
  private async guarded<Answer>(asked: Outpoint[], read: () => Promise<Answer>): Promise<Answer> {
    await this.refuse(asked)
    return await read()
  }

  private async unlessBlocked(outpoint: Outpoint | undefined): Promise<Outpoint | undefined> {
    if (outpoint !== undefined) await this.refuse([outpoint])
    return outpoint
  }

  /** @throws BlockedError where one of the outputs is blocked. */
  async refuse(outpoints: Outpoint[]): Promise<void> {
    for (const kind of (await this.blockedAmong(outpoints)).values()) throw new BlockedError(kind)
  }

  private async refuseName(name: string): Promise<void> {
    if ((await this.store.blocklist()).has('name', name)) throw new BlockedError('name')
  }

  private async refuseContent(sha256: string): Promise<void> {
    if ((await this.store.blocklist()).has('content', sha256)) throw new BlockedError('content')
  }

  /** Those of the outputs that are blocked, as text, and by what. */
  private async blockedAmong(outpoints: Outpoint[]): Promise<Map<string, BlockedKind>> {
    const list = await this.store.blocklist()
    const blocked = new Map<string, BlockedKind>()
    if (list.isEmpty) return blocked
    if (list.hasAny('content')) {
      for (const outpoint of outpoints) {
        const content = (await this.store.output(outpoint))?.content
        if (content && list.has('content', content.sha256)) blocked.set(formatOutpoint(outpoint), 'content')
      }
    }
    if (list.hasAny('name')) {
      for (const { name, outpoint } of await this.store.genuineOrigins(outpoints))
        if (list.has('name', name)) blocked.set(formatOutpoint(outpoint), 'name')
    }
    for (const text of outpoints.map(formatOutpoint))
      if (list.has('outpoint', text)) blocked.set(text, 'outpoint')
    return blocked
  }

  /** By what one of the chunks is blocked. The origin of a name starts a lineage, so that no further chunk is one. */
  private async blockedIn(
    chunks: AsyncIterable<StreamChunk> | StreamChunk[],
  ): Promise<BlockedKind | undefined> {
    for await (const { outpoint, sha256 } of chunks) {
      const list = await this.store.blocklist()
      if (list.has('outpoint', formatOutpoint(outpoint))) return 'outpoint'
      if (list.has('content', sha256)) return 'content'
    }
    return undefined
  }

  /** An output, and those that its ordinal shows where it is now. */
  private async shownAt(tip: Outpoint): Promise<Outpoint[]> {
    return [tip, ...placesOf(await this.store.ordinalAt(tip, TIP))]
  }

  /** Those of the records whose outputs are not blocked. */
  async served<Record extends { outpoint: Outpoint }>(records: Record[]): Promise<Record[]> {
    if (this.isOpen) return records
    const blocked = await this.blockedAmong(records.map(({ outpoint }) => outpoint))
    return records.filter(({ outpoint }) => !blocked.has(formatOutpoint(outpoint)))
  }

  /** As many as were asked for, as long as there are any: a page that is short is the last one. */
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
      // Others are served between, however much of the list is blocked.
      await yieldToEventLoop()
    }
  }
}

/** The outputs that an ordinal stands in and shows at a step. */
function placesOf(step: OrdinalStep | undefined): Outpoint[] {
  return step === undefined ? [] : [step.output.outpoint, step.content.outpoint]
}
