import type { GraphReader, OrdinalStep } from '../../../backend/src/graph/graph-store.js'

/** `Cache-Control` values (`spec/http.md`). */
export const CACHE = {
  /** The bytes in an outpoint never change. */
  immutable: 'public, max-age=31536000, immutable',
  /** A step that is not mined may yet turn out another. */
  unproven: 'public, max-age=60',
  /** The answer may be another at any time: a name is claimed, a node moves, an ordinal goes on. */
  revalidate: 'no-cache',
  /** Nothing that was kept: it came with the request. */
  none: 'no-store',
} as const

/** How long an ordinal at a counted step may be kept: for good, once the step is mined. */
export async function stepCache(store: GraphReader, { output }: OrdinalStep): Promise<string> {
  const height = await store.transactions.heightOf(output.outpoint.txid)
  return height === undefined ? CACHE.unproven : CACHE.immutable
}
