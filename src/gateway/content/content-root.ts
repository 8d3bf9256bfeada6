import { type GraphReader, TIP } from '../../../backend/src/graph/graph-store.js'
import {
  type ContentReference,
  formatOutpoint,
  type Outpoint,
} from '../../../backend/src/protocol/outpoint.js'
import { CACHE, stepCache } from '../http/cache-policy.js'
import { NotFoundError } from '../http/errors.js'
import { mergedMapHeaders, ownMapHeaders } from '../metadata/map-headers.js'
import { type ContentOutput, contentAt, hasContent } from './content-output.js'

/** What stands before the first slash of a content path, looked up. */
export interface ContentRoot {
  output: ContentOutput
  /** Where that is: with a sequence, where the ordinal stood at that step, whatever output its content is in. */
  outpoint: Outpoint
  /** With a sequence, `X-Origin` and `X-Ord-Seq`: of the ordinal, for whatever hangs below it too. */
  headers: Record<string, string>
  /** `X-Map` and `X-Parent`: of the output alone, or with a sequence of the ordinal up to that step. */
  own: () => Promise<Record<string, string>>
  /** `Cache-Control`, for it and for whatever hangs below it. */
  cache: string
}

/** @throws NotFoundError where the store has no content there, or the ordinal no such step. */
export async function contentRoot(store: GraphReader, reference: ContentReference): Promise<ContentRoot> {
  const { pointer, sequence } = reference
  if (sequence === undefined) {
    const output = await contentAt(store, pointer)
    if (output === undefined) throw new NotFoundError('this store has no content at this outpoint')
    return {
      output,
      outpoint: output.outpoint,
      headers: {},
      own: () => ownMapHeaders(store, output),
      cache: CACHE.immutable,
    }
  }
  const outpoint =
    pointer.kind === 'outpoint' ? pointer.outpoint : (await contentAt(store, pointer))?.outpoint
  const step = outpoint && (await store.ordinals.at(outpoint, sequence))
  if (step === undefined || !hasContent(step.content)) {
    throw new NotFoundError('the ordinal has no such step here, or its origin is unknown here')
  }
  return {
    output: step.content,
    outpoint: step.output.outpoint,
    headers: { 'X-Origin': formatOutpoint(step.origin), 'X-Ord-Seq': String(step.sequence) },
    own: () => mergedMapHeaders(store, { ...step, outpoint: step.output.outpoint }),
    cache: sequence === TIP ? CACHE.revalidate : await stepCache(store, step),
  }
}
