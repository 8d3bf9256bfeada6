import { z } from 'zod'
import {
  type AncestorsStatus,
  ancestorsStatus,
  type FollowStatus,
  followStatus,
  type HeadersStatus,
  headersStatus,
  type SourceStatus,
  sourceStatus,
} from '../../chain/sources/status.js'
import type { CatchUpProgress } from '../../gateway/http/as-of.js'
import { count } from '../../gateway/http/schemas.js'
import { publicText, withTexts } from './public-text.js'

interface Reporting<Status> {
  status(): Status
}

/** The parts of a host that follow the chain. Unconfigured ones are missing; those run by another process have no status. */
export interface ChainParts {
  headers?: Reporting<HeadersStatus>
  follower?: Reporting<FollowStatus | undefined>
  ancestors?: Reporting<AncestorsStatus | undefined>
  sources?: Reporting<SourceStatus[]> & { readonly contradictions: number }
}

/** What a host knows about the chain. Parts that are not configured, and unknown values, are missing. */
export const chainShape = z.strictObject({
  height: count.optional().describe('The height of the chain.'),
  lag: count
    .optional()
    .describe('The number of blocks since the last one up to which all followed outputs were checked.'),
  headers: headersStatus.optional().describe('The chain tracker, which knows the block headers.'),
  follow: followStatus
    .optional()
    .describe('The follower, which asks chain sources for spends of the followed outputs.'),
  ancestors: ancestorsStatus.optional().describe('The worker that fetches ancestors of admitted ordinals.'),
  sources: z.array(sourceStatus).optional().describe('The sources of the chain.'),
  contradictions: count.optional().describe('Contradictions between sources since the start.'),
})
export type ChainStatus = z.output<typeof chainShape>

export function catchUpProgress({ headers, follower }: ChainParts): CatchUpProgress {
  const chainHeight = headers?.status().height
  const { found: height, sweep } = follower?.status() ?? {}
  return {
    ...(height !== undefined && { height }),
    ...(chainHeight !== undefined && { chainHeight }),
    ...sweep,
  }
}

/** The status of the parts, with texts that anyone may read (`publicText`). Missing parts have no field. */
export function chainStatus({ headers, follower, ancestors, sources }: ChainParts): ChainStatus {
  const status = {
    headers: headers?.status(),
    follow: follower?.status(),
    ancestors: ancestors?.status(),
    sources: sources?.status(),
  }
  const height = status.headers?.height
  const followed = status.follow?.height
  const said = {
    height,
    // A source may know of a block before the headers do.
    lag: height === undefined || followed === undefined ? undefined : Math.max(0, height - followed),
    ...status,
    contradictions: sources?.contradictions,
  }
  return withTexts(said, publicText)
}
