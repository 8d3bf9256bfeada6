import { type OrdinalStep, type ProofReader, TIP } from '../../backend/src/graph/graph-store.js'

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

/** How long an ordinal at a step may be kept: for good, once the step is mined; never unasked, where the tip was meant. */
export async function stepCache(
  store: ProofReader,
  { step, sequence }: { step: OrdinalStep; sequence: number },
): Promise<string> {
  if (sequence === TIP) return CACHE.revalidate
  const height = await store.heightOf(step.output.outpoint.txid)
  return height === undefined ? CACHE.unproven : CACHE.immutable
}
