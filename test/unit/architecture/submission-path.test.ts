import { existsSync, readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beefOf, FakeChain, OPEN_LOCK, p2pkh } from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

const root = resolve(import.meta.dirname, '../../..')

/** The files that the guide names in the section, in order. A name without a folder stands beside the file before it. */
function filesOfSection(title: string): string[] {
  const guide = readFileSync(join(root, 'docs/contributing.md'), 'utf8')
  const section = guide.split(/^## /m).find((each) => each.startsWith(title)) ?? ''
  let folder = ''
  return [...section.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = '']) => {
    const path = name.includes('/') ? name : join(folder, name)
    folder = dirname(path)
    return path
  })
}

/** What runs on the way of a submission and is no step of it, as the guide says below its list. */
const NO_STEP = [
  // Formats, and the tables and lookups behind a write.
  /^backend\/src\/(protocol|facts|read|storage)\//,
  // The parts of the index, each of which `apply.ts` calls.
  /^backend\/src\/index\/(?!apply)/,
  // Libraries that several steps share.
  /^backend\/src\/graph\/(ancestry|attributes|blocklist|dependencies|listings|map-\w+|memoize-by-object|native-hash|optimistic-read|records|stored-transaction|yield-to-event-loop)\.ts$/,
  // What every request meets, whatever it asks for.
  /^src\/gateway\/(http\/(?!request-body)|hosts\/content-hosts)/,
  /^src\/server\/(telemetry\/|http\/(connection|hot-path|http-refusal)|store\/(answer-cache|index-maintenance|folder-lock|facts\/fact-index))/,
  // Not of the server: timers that clients of earlier tests in this process have left.
  /^src\/client\//,
  // Parts that are put together, and work in the background.
  /^backend\/src\/lookup-services\//,
  /^src\/server\/(app|node|read-app|server|submission\/(overlay|admission-options))\.ts$/,
]

/** Where submissions of 64 KiB and more take another thread. */
const LARGE_ONLY = [
  'src/server/submission/large-submissions.ts',
  'src/server/submission/submission-worker.ts',
]

const STEPS = filesOfSection('How a BEEF gets in')
const servers = useServers()

/** The files with a function that ran meanwhile. */
async function filesRunBy(work: () => Promise<void>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  const ran = result.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
  const paths = ran.map(({ url }) => relative(root, url.startsWith('file:') ? fileURLToPath(url) : url))
  return [...new Set(paths.filter((path) => /^(backend\/)?src\//.test(path)))].sort()
}

test('the guide names at most 30 files on the way of a submission, each once', () => {
  expect(STEPS.filter((path) => !existsSync(join(root, path)))).toEqual([])
  expect(new Set(STEPS).size).toBe(STEPS.length)
  expect(STEPS.length).toBeGreaterThan(20)
  expect(STEPS.length).toBeLessThanOrEqual(30)
})

test('a submission runs all of these files and no other step', async () => {
  const chain = new FakeChain()
  const server = await servers.start({
    ...treeOf(chain.deployment),
    CHAIN_TRACKER: 'scripts-only',
  })
  const letter = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(1) })
  const coin = { transaction: letter, vout: 0 }
  const sent = [1, 2].map((seed) =>
    chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript: p2pkh(seed) }] }),
  )
  const open = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: OPEN_LOCK }] })
  const spent = chain.spend({
    inputs: [{ transaction: open, vout: 0 }],
    outputs: [{ satoshis: 9, lockingScript: p2pkh(3) }],
  })
  const submissions = [chain.genesis, chain.mint('a'), letter, ...sent]
  const files = await filesRunBy(async () => {
    for (const each of submissions) expect((await server.submit(beefOf(each))).status).toBe(200)
    const unproven = beefOf(spent, { proven: false, with: [open] })
    expect((await server.submit(unproven)).status).toBe(200)
  })
  const steps = files.filter((path) => !NO_STEP.some((pattern) => pattern.test(path)))
  expect(steps).toEqual(STEPS.filter((path) => !LARGE_ONLY.includes(path)).sort())
})
