import type { RequestHandler } from 'express'
import { NotReadyError } from '../../gateway/http/errors.js'
import { type IndexStatus, notReadyReason } from '../store/index-maintenance.js'

/** Whether a path is answered whatever the index is like: it is about the host. */
export function isAboutHost(path: string): boolean {
  return /^\/(health|metrics)(\/|$)/.test(path)
}

/**
 * Why a host is not ready, if it is not: each of its parts says so under a name, in one line where it is put together.
 * What is ready takes traffic, so a part says no where it would answer wrongly, or nothing that is asked of it.
 */
export class Readiness {
  private readonly checks = new Map<string, () => string | undefined>()

  /** @param check Says in a sentence for a person why the host is not ready; undefined where it is. Called for each question. */
  add(name: string, check: () => string | undefined): void {
    this.checks.set(name, check)
  }

  /** What stands against it, by the names of the parts. */
  reasons(): Record<string, string> {
    const said = [...this.checks].map(([name, check]) => [name, check()] as const)
    return Object.fromEntries(said.filter((each): each is [string, string] => each[1] !== undefined))
  }
}

const OVERLAY_PATHS = new Set([
  '/submit',
  '/lookup',
  '/arc-ingest',
  '/requestSyncResponse',
  '/requestForeignGASPNode',
  '/listTopicManagers',
  '/listLookupServiceProviders',
  '/getDocumentationForTopicManager',
  '/getDocumentationForLookupServiceProvider',
])

/** Whether a path is one of the overlay protocol: errors have another shape there. */
export function isOverlayPath(path: string): boolean {
  return OVERLAY_PATHS.has(path)
}

/**
 * Keeps everybody out while the index is made anew: half of one is no truth.
 *
 * @param isMeant Which paths; by default, all. Those that are about the host are answered whatever it says.
 */
export function refuseWhileRebuilding(
  status: () => IndexStatus,
  isMeant: (path: string) => boolean = () => true,
): RequestHandler {
  return function closedGate({ path }, _response, next) {
    const current = status()
    if (current.state === 'rebuilding' && isMeant(path) && !isAboutHost(path))
      throw new NotReadyError(notReadyReason(current))
    next()
  }
}
