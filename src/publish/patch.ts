import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE, WORK_A_BYTE } from '../../backend/src/protocol/patch.js'
import { encodeDelta } from '../../backend/src/protocol/vcdiff.js'
import type { InscriptionContent } from './inscribe.js'

export interface PublishedContent {
  outpoint: Outpoint
  contentType: string
  body: Uint8Array
  /** How many patches the body is made by, and how many bytes are read and made for it. */
  patches: number
  work: number
}

/** How many patches are built on each other: gateways of 1sat-stack read no more, and this one reads twice as many. */
const MAX_PUBLISHED = 8
/** The longest body that gateways make of patches: the default of `MAX_CONTENT_BYTES`. */
const MAX_CONTENT_BYTES = 64 * 1024 * 1024
/** The largest patch that is worth it, as a share of the body that it makes. */
const WORTH = 0.5

/**
 * A patch that makes a body of an earlier one; undefined if it would be more than half as long as the body, or is not allowed.
 */
export function patchOn(
  earlier: PublishedContent | undefined,
  { contentType, body }: Pick<InscriptionContent, 'contentType' | 'body'>,
): Pick<InscriptionContent, 'contentType' | 'body'> | undefined {
  // A patch has the type of its base. A patch without a result is no base.
  if (earlier?.contentType !== contentType || contentType === PATCH_TYPE || earlier.patches >= MAX_PUBLISHED)
    return undefined
  if (body.length > MAX_CONTENT_BYTES || earlier.body.length > MAX_CONTENT_BYTES) return undefined
  const record = encodePatch({ base: earlier.outpoint, delta: encodeDelta(earlier.body, body) })
  if (record.length > body.length * WORTH) return undefined
  const work = earlier.work + record.length + body.length
  return work > WORK_A_BYTE * MAX_CONTENT_BYTES ? undefined : { contentType: PATCH_TYPE, body: record }
}
