import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../../backend/src/protocol/patch.js'
import { encodeDelta } from '../../backend/src/protocol/vcdiff.js'
import type { InscriptionContent } from './inscribe.js'

export interface PublishedContent {
  outpoint: Outpoint
  contentType: string
  body: Uint8Array
  /** How many patches make it. */
  patches: number
}

/** How many patches are built on each other: gateways of 1sat-stack read no more, and this one twice as many. */
const MAX_PUBLISHED = 8
/** A patch is worth it if it has at most so much of what it makes. */
const WORTH = 0.5

/** The content of a patch that makes a body of an earlier one; undefined if that is not half as long, or not allowed. */
export function patchOn(
  earlier: PublishedContent | undefined,
  { contentType, body }: Pick<InscriptionContent, 'contentType' | 'body'>,
): Pick<InscriptionContent, 'contentType' | 'body'> | undefined {
  // A patch has the type of what it is built on.
  if (earlier === undefined || earlier.contentType !== contentType || earlier.patches >= MAX_PUBLISHED)
    return undefined
  const record = encodePatch({ base: earlier.outpoint, delta: encodeDelta(earlier.body, body) })
  return record.length > body.length * WORTH ? undefined : { contentType: PATCH_TYPE, body: record }
}
