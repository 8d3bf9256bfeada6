import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

// The time of day may be set back, and differs from machine to machine: durations and orders are by `monotonic()`.

const root = resolve(import.meta.dirname, '../../..')

/** The only sources that read the time of day, and why. */
const WALL_CLOCK: Record<string, string> = {
  'backend/src/protocol/block-rules.ts': 'compares lock times with the median time of blocks',
  'src/chain/tracker/followed-headers.ts': 'compares the times of blocks, and shows when sources responded',
  'src/client/own-headers.ts': 'compares the times of blocks',
  'backend/src/facts/log-file.ts': 'what scores count from, once in the life of a log',
  'backend/src/facts/local-log.ts': 'says when a fact came',
  'backend/src/facts/shared-log.ts': 'says when facts came',
  'backend/src/writer/shared-writer.ts': 'what scores count from, once in the life of a log',
  'src/server/store/facts/log-settings.ts': 'the base of the next scores',
  'src/server/store/facts/prune.ts': 'how old a fact is',
  'src/server/store/facts/purge.ts': 'when content was blocked',
  'src/server/routes/blocking-routes.ts': 'says since when something is blocked',
  'src/server/telemetry/logger.ts': 'the time of a log line',
  'src/server/writer/local-chain.ts': 'the time of a block that it mines',
  'src/chain/tracker/given-headers.ts': 'says since when a source does not respond',
  'src/chain/sources/source-client.ts': 'says when a source failed; `Retry-After` may be a date',
  'src/chain/follow/follower.ts': 'says when it failed',
  'src/explorer/islands/explorer.ts': 'says how long ago a block was',
  'src/client/resolve.ts': 'says when indexes were asked',
  'src/client/verified-fetch.ts': 'says when gateways were asked',
}
/** The one place that reads the other clock. */
const MONOTONIC = 'backend/src/protocol/monotonic.ts'

const files = execFileSync(
  'git',
  ['ls-files', '-co', '--exclude-standard', 'src', 'backend/src', 'packages'],
  {
    cwd: root,
    encoding: 'utf8',
  },
)
  .split('\n')
  .filter((path) => /\.(?:tsx?|m?js)$/.test(path))

function reading(pattern: RegExp): string[] {
  return files.filter((path) => pattern.test(readFileSync(join(root, path), 'utf8'))).sort()
}

test('the time of day is read where it is shown or compared with that of blocks, and nowhere else', () => {
  expect(reading(/\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)/)).toEqual(Object.keys(WALL_CLOCK).sort())
})

test('durations are measured by one clock', () => {
  expect(reading(/\bperformance\b|\bhrtime\b/)).toEqual([MONOTONIC])
})
