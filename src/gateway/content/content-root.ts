import {
  type Dependency,
  dependenciesOfOutput,
  dependenciesOfStep,
  dependency,
} from '../../../backend/src/graph/dependencies.js'
import { type MapState, mapRecordOf } from '../../../backend/src/graph/map-merge.js'
import { type ContentSummary, type OutputRecord, TIP } from '../../../backend/src/graph/records.js'
import { unicodeEscaped } from '../../../backend/src/protocol/bytes.js'
import {
  type ContentReference,
  formatOutpoint,
  type Outpoint,
  type Pointer,
} from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { CACHE, stepCache } from '../http/caching.js'
import { AnswerError, noSuchStep } from '../http/errors.js'
import type { StoredResponse } from '../http/stored-response.js'

export interface ContentOutput extends OutputRecord {
  content: ShownContent
}

export interface ShownContent extends ContentSummary {
  /** Set if patches make the content, so that its bytes are in no transaction. Both functions throw LongRead. */
  made?: { bytes: () => Uint8Array; body: () => StoredResponse['body'] }
}

type AbsolutePointer = Exclude<Pointer, { kind: 'sibling' }>

/** The output at a pointer, or the first one with content in its transaction. */
export function outputAt(store: GraphReads, pointer: AbsolutePointer): OutputRecord | undefined {
  return pointer.kind === 'outpoint'
    ? store.ordinals.output(pointer.outpoint)
    : store.ordinals.firstContentOutput(pointer.txid)
}

/** The same, but undefined if it has no content. */
export function contentAt(store: GraphReads, pointer: AbsolutePointer): ContentOutput | undefined {
  const output = outputAt(store, pointer)
  return output !== undefined && hasContent(output) ? output : undefined
}

/** The output that a reference starts from; undefined if the store has no content in its transaction. */
export function outpointOf(store: GraphReads, { pointer }: ContentReference): Outpoint | undefined {
  return pointer.kind === 'outpoint' ? pointer.outpoint : outputAt(store, pointer)?.outpoint
}

function hasContent(output: OutputRecord): output is ContentOutput {
  return output.content !== undefined
}

export interface MapOptions {
  /** Whether the request asks for MAP, and so accepts a longer `X-Map`. */
  isMapAsked: boolean
}

interface MapHeaderOptions extends MapOptions {
  /** The most MAP that the host shows, in bytes. */
  maxMapBytes: number
}

/** What the first segment of a content path refers to. */
export interface ContentRoot {
  output: ContentOutput
  /** With a sequence, the output of the ordinal at that step, even if its content is in another. */
  outpoint: Outpoint
  /** With a sequence, `X-Origin` and `X-Ord-Seq` of the ordinal; files below it have them too. */
  headers: Record<string, string>
  /** Reads `X-Map` and `X-Parent`: of the output alone, or with a sequence of the ordinal up to that step. */
  metadataHeaders: (options: MapHeaderOptions) => Record<string, string>
  /** `Cache-Control` of the root and of every file below it. */
  cache: string
  dependsOn: Dependency[]
}

/** @throws AnswerError if the store has no content there, or the ordinal has no such step. */
export function contentRoot(store: GraphReads, reference: ContentReference): ContentRoot {
  const { pointer, sequence } = reference
  if (sequence === undefined) {
    const output = contentAt(store, pointer)
    if (output === undefined) throw new AnswerError('NOT_FOUND', 'this store has no content at this outpoint')
    return {
      output,
      outpoint: output.outpoint,
      headers: {},
      metadataHeaders: (options) => outputHeaders(store, output, options),
      cache: CACHE.immutable,
      dependsOn: dependenciesOfOutput(output),
    }
  }
  const outpoint = outpointOf(store, reference)
  const step = outpoint && store.ordinals.at(outpoint, sequence)
  if (step === undefined || !hasContent(step.content)) throw noSuchStep(outpoint)
  return {
    output: step.content,
    outpoint: step.output.outpoint,
    headers: { 'X-Origin': formatOutpoint(step.origin), 'X-Ord-Seq': String(step.sequence) },
    metadataHeaders: (options) => ({
      ...mapHeader(store.metadata.merged(step, MAX_READ_BYTES), options),
      ...parentHeader(step.parent),
    }),
    cache: sequence === TIP ? CACHE.revalidate : stepCache(store, step),
    dependsOn: [...dependenciesOfStep(step), dependency.proof(step.output.outpoint.txid)],
  }
}

/** The longest `X-Map` that all proxies pass on, and the longest for a client that asks for it (`docs/spec/http.md`, Content). */
const MAX_HEADER_BYTES = 4 * 1024
const MAX_ASKED_HEADER_BYTES = 12 * 1024
/** How much stored MAP is read for a header. More would be far too long, unless nearly all of it was removed again. */
const MAX_READ_BYTES = 64 * 1024

/** `X-Map` and `X-Parent` of an output by itself. */
export function outputHeaders(
  store: GraphReads,
  { outpoint, mapLength = 0, parent }: OutputRecord,
  options: MapHeaderOptions,
): Record<string, string> {
  const map = mapLength === 0 || mapLength > MAX_READ_BYTES ? undefined : store.metadata.own(outpoint)
  return { ...mapHeader(map, options), ...parentHeader(parent) }
}

function mapHeader(
  map: MapState | undefined,
  { isMapAsked, maxMapBytes }: MapHeaderOptions,
): Record<string, string> {
  // A truncated MAP is longer than any header, and half of it would look complete.
  if (map === undefined || map.size === 0 || map.truncated) return {}
  const text = asciiJson(mapRecordOf(map))
  const most = Math.min(isMapAsked ? MAX_ASKED_HEADER_BYTES : MAX_HEADER_BYTES, maxMapBytes)
  return text.length > most ? {} : { 'X-Map': text }
}

function parentHeader(parent: Outpoint | undefined): Record<string, string> {
  return parent === undefined ? {} : { 'X-Parent': formatOutpoint(parent) }
}

/** JSON that any header can carry: non-ASCII and control characters are escaped. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, (character) => unicodeEscaped(character))
}
