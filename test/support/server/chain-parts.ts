import type {
  AncestorsStatus,
  FollowStatus,
  HeadersStatus,
  SourceStatus,
} from '../../../src/chain/sources/status.js'
import type { ChainParts } from '../../../src/server/telemetry/chain-status.js'

/** What the parts of a host say that follows the chain; a test changes it. */
export interface SaidParts {
  headers: HeadersStatus
  follow: FollowStatus
  ancestors: AncestorsStatus
  sources: SourceStatus[]
}

/** Parts that say what a test lets them say: a host that catches up, with one source of two at rest. */
export function saidParts(): { said: SaidParts; parts: Required<ChainParts> } {
  const at = Date.UTC(2026, 0, 31)
  const said: SaidParts = {
    headers: {
      ...{ height: 900_120, hash: 'ab'.repeat(32), time: 1_769_817_600, from: 0 },
      sources: [{ name: 'junglebus https://a.example', state: 'ok', requests: 91, failures: 0 }],
    },
    follow: {
      ...{ state: 'catching up', ordinals: 'names', mints: 1204, transfers: 300, height: 900_000 },
      ...{ sweep: { asked: 512, coins: 2048 }, unproven: 3, failures: 2 },
      lastError: { at, message: 'no source has the spender' },
    },
    ancestors: { waiting: 4, fetched: 50, holes: 1 },
    sources: [
      { name: 'junglebus https://a.example', state: 'ok', requests: 6000, failures: 7 },
      {
        ...{ name: 'whatsonchain https://b.example', state: 'resting', requests: 11, failures: 5 },
        ...{ restingUntil: at + 60_000, lastError: { at, message: 'answered 429' } },
      },
    ],
  }
  const parts: Required<ChainParts> = {
    headers: { status: () => said.headers },
    follower: { status: () => said.follow },
    ancestors: { status: () => said.ancestors },
    sources: { status: () => said.sources, contradictions: 6 },
  }
  return { said, parts }
}
