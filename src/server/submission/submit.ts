import type { STEAK } from '@bsv/sdk'
import type { OverlayEngine } from './overlay-engine.js'

/** A transaction that somebody submits. Can be sent to another thread as it is. */
export interface Submitted {
  /** Plain bytes: not a view into a pool. */
  beef: Uint8Array
  topics: string[]
  /** Of the request that it came with: lines of the log about it have that. */
  requestId?: string
  /** Who sends it; without one, it counts as nobody's. */
  client?: string
  /** How many submissions of the same client are under way already. */
  ahead?: number
}

export type Submit = (submitted: Submitted) => Promise<STEAK>

/** Gives submissions to an engine of this thread. */
export function submitTo(engine: OverlayEngine): Submit {
  return async ({ beef, topics, requestId, ahead }) =>
    await engine.submit({
      ...{ beef, topics },
      ...(requestId !== undefined && { requestId }),
      ...(ahead !== undefined && { ahead }),
    })
}
