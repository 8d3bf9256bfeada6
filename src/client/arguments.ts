import type { Deployment } from '../../backend/src/protocol/mint.js'
import { field, unlessAborted } from './bounded-fetch.js'

/*
 * Arguments are checked before any server is asked: otherwise a caller's mistake would look like an invalid answer. Each error
 * names the argument.
 */

/** @throws TypeError for a wrong argument. */
export function requireArgument(isRight: boolean, argument: string, wanted: string): void {
  if (!isRight) throw new TypeError(`${argument} must be ${wanted}`)
}

/** @throws TypeError for anything but a chain tracker or `scripts only`. */
export function requireHeaders(chainTracker: unknown): void {
  const isTracker = typeof field(chainTracker, 'isValidRootForHeight') === 'function'
  requireArgument(
    isTracker || chainTracker === 'scripts only',
    'chainTracker',
    "new OwnHeaders({ sources }), another chain tracker, or 'scripts only'",
  )
}

/** @throws TypeError for anything but a tree of names. */
export function requireDeployment(deployment: unknown): asserts deployment is Deployment {
  const isTree = isOutpoint(field(deployment, 'genesis')) && field(deployment, 'marker') instanceof Uint8Array
  requireArgument(isTree, 'deployment', 'a tree: deploymentOf(PROFILES.mainnet)')
}

/** Checks the arguments that every proof of a name needs. @throws TypeError for anything else. */
export function requireTree({
  chainTracker,
  deployment,
}: {
  chainTracker: unknown
  deployment: unknown
}): void {
  requireHeaders(chainTracker)
  requireDeployment(deployment)
}

/** @throws TypeError for anything but bytes. */
export function requireBytes(value: unknown, argument: string): void {
  requireArgument(value instanceof Uint8Array, argument, 'a Uint8Array')
}

/** @throws TypeError for anything but an outpoint. */
export function requireOutpoint(value: unknown, argument: string): void {
  requireArgument(isOutpoint(value), argument, 'an outpoint, { txid, vout }')
}

/** The URL of a server, without a slash at the end. @throws TypeError for anything else. */
export function serverUrl(value: unknown, argument: string): string {
  const url = typeof value === 'string' || value instanceof URL ? String(value) : ''
  // Paths are appended to it, and `fetch` accepts no URL with a password.
  const isUrl = URL.canParse(url) && /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/i.test(url)
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : typeof value
  requireArgument(
    isUrl,
    argument,
    `the URL of a server, http or https, without query or user, and is ${shown}`,
  )
  return url.replace(/\/+$/, '')
}

/** Runs work until it ends or the caller's signal is aborted. @throws what the work throws; the reason of the signal, at once. */
export async function heeding<Answer>(
  signal: AbortSignal | undefined,
  work: () => Promise<Answer>,
): Promise<Answer> {
  signal?.throwIfAborted()
  return await unlessAborted(work(), signal)
}

function isOutpoint(value: unknown): boolean {
  const [txid, vout] = [field(value, 'txid'), field(value, 'vout')]
  return typeof txid === 'string' && /^[\da-f]{64}$/.test(txid) && Number.isInteger(vout)
}
