import fc from 'fast-check'
import { hostedRequests } from './inputs/hosts.js'
import { strangeMints } from './inputs/mints.js'
import { overlayBodies } from './inputs/overlay-bodies.js'
import { rawBytes } from './inputs/raw.js'
import { reads } from './inputs/reads.js'
import { requestLines } from './inputs/request-lines.js'
import { beefWith, goodPaths } from './inputs/transactions.js'
import { writes } from './inputs/writes.js'
import { type FuzzRequest, submit } from './request.js'
import type { World } from './world.js'

/** Requests that one client sends one after the other, and their class of input. */
export interface FuzzCase {
  kind: string
  requests: FuzzRequest[]
}

/** Every class of input, by its name. */
export function kindsOf(world: World): Record<string, fc.Arbitrary<FuzzRequest[]>> {
  const { prey } = world
  return {
    ...writes(prey),
    'submit strange mints': strangeMints(world).chain((mint) =>
      goodPaths(mint.txid).map((path) => [
        submit(beefWith(mint, path, { version: 1, isAtomic: false }), ['tm_names']),
      ]),
    ),
    ...reads(prey),
    ...overlayBodies(prey),
    'hosts that show content': hostedRequests(prey),
    'request lines': requestLines(prey),
    'bytes that are no request': rawBytes(prey),
  }
}

/** How many cases are made at once: nothing is sent meanwhile. */
const BATCH = 20

/** Endless cases, always the same for a seed; only of one class, if it is named. */
export function* casesOf(
  world: World,
  { seed, kind: only }: { seed: number; kind?: string },
): Generator<FuzzCase> {
  const kinds = Object.entries(kindsOf(world))
    .filter(([kind]) => only === undefined || kind === only)
    .map(([kind, requests]) => requests.map((all): FuzzCase => ({ kind, requests: all })))
  const any = fc.oneof(...kinds)
  // Seeds that are far apart, so that the next run does not repeat this one shifted by a batch.
  for (let batch = 0; ; batch++)
    yield* fc.sample(any, {
      seed: (Math.imul(seed, 0x9e3779b1) + Math.imul(batch, 0x85ebca6b)) | 0,
      numRuns: BATCH,
    })
}
