import type { AncestorsStatus } from '../../chain/ancestors/ancestors-worker.js'
import type { FollowStatus } from '../../chain/follow/follower.js'
import type { SourceStatus } from '../../chain/sources/chain-sources.js'
import type { HeadersStatus } from '../../chain/tracker/chain-tracker.js'
import type { CatchUpProgress } from '../../gateway/http/as-of.js'
import { publicText } from './public-text.js'

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

export interface ChainStatus {
  /** The height of the chain; missing while unknown. */
  height?: number
  /** How many blocks the last complete sweep is behind the chain; missing while unknown. */
  lag?: number
  headers?: HeadersStatus
  follow?: FollowStatus
  ancestors?: AncestorsStatus
  sources?: SourceStatus[]
  /** How often sources contradicted each other since the start. */
  contradictions?: number
}

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
  return readable({
    height,
    // A source may know of a block before the headers do.
    lag: height === undefined || followed === undefined ? undefined : Math.max(0, height - followed),
    ...status,
    contradictions: sources?.contradictions,
  })
}

/** The same value with every text made fit for the public, and without undefined fields. */
function readable<Value>(value: Value): Value
function readable(value: unknown): unknown {
  if (typeof value === 'string') return publicText(value)
  if (Array.isArray(value)) return value.map((each) => readable(each))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(fields.map(([name, each]) => [name, readable(each)]))
}
