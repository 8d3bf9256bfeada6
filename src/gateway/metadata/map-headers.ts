import type { GraphReader } from '../../../backend/src/graph/graph-store.js'
import { type MapState, mapRecordOf } from '../../../backend/src/graph/map-merge.js'
import type { OutputRecord } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'

/** The longest header: what proxies and clients take of one (`spec/http.md`, Content). */
const MAX_HEADER_BYTES = 4096
/** How much kept MAP is read for a header. What takes more is far over the longest, unless nearly all was removed again. */
const MAX_READ_BYTES = 64 * 1024

/** `X-Map` and `X-Parent` of an output alone. */
export async function ownMapHeaders(
  store: GraphReader,
  { outpoint, mapLength = 0, parent }: OutputRecord,
): Promise<Record<string, string>> {
  const map = mapLength === 0 || mapLength > MAX_READ_BYTES ? undefined : await store.metadata.own(outpoint)
  return { ...mapHeader(map), ...parentHeader(parent) }
}

/** `X-Map` and `X-Parent` of an ordinal where it stood. */
export async function mergedMapHeaders(
  store: GraphReader,
  { outpoint, parent }: { outpoint: Outpoint; parent?: Outpoint },
): Promise<Record<string, string>> {
  const map = await store.metadata.merged(outpoint, MAX_READ_BYTES)
  return { ...mapHeader(map), ...parentHeader(parent) }
}

function mapHeader(map: MapState | undefined): Record<string, string> {
  // What was cut is longer than any header, and half of it would look whole.
  if (map === undefined || map.size === 0 || map.truncated) return {}
  const text = asciiJson(mapRecordOf(map))
  return text.length > MAX_HEADER_BYTES ? {} : { 'X-Map': text }
}

function parentHeader(parent: Outpoint | undefined): Record<string, string> {
  return parent === undefined ? {} : { 'X-Parent': formatOutpoint(parent) }
}

/** JSON that any header can carry: what is not printable ASCII is escaped. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
