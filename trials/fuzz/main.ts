import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ServerProcess, Usage } from '../../test/support/server/server-process.js'
import { readTrialArguments } from '../arguments.js'
import { growthOf } from '../growth.js'
import { domainServer } from './domains.js'
import { type Failure, type Figures, fuzz } from './fuzzing.js'
import { fillHost, startHost } from './host.js'
import { casesOf } from './kinds.js'
import { writeSeed } from './seed-files.js'
import { fuzzWorld } from './world.js'

/**
 * The long fuzz: `npm run fuzz -- --minutes 10 --seed n`. Sends strangers' input to every entry, several cases at once, and ends
 * with 1 if the server did what no server should: an answer that is our fault, no answer, a crash, a wrong answer to a good
 * request, or memory that keeps growing. The input that caused it is kept as a seed.
 */
const ROOT = resolve(import.meta.dirname, '../../../..')
const MAIN = join(ROOT, 'dist/cli/main.js')
const SEEDS = join(ROOT, 'test/vectors/fuzz')

const CLIENTS = 8
/** How long an answer may take, in milliseconds: far more than it needs on a loaded machine. */
const PATIENCE = 30_000
const A_SAMPLE = 1000
/** The share of the time for warming up: caches fill, and code is compiled. */
const WARM_UP = 0.2
const MEMORY_SLACK = 64 * 1024 * 1024
const HANDLE_SLACK = 32
const MAX_FAILURES = 20

const { minutes, seed, kind } = readTrialArguments({ minutes: 10 })
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
const folder = await mkdtemp(join(tmpdir(), 'minetree-fuzz-'))
const world = fuzzWorld()
const { dns, env } = await domainServer(world.prey)
const log: string[] = []
let crashes = 0
let failures = 0
let server = await start()
await fillHost(server, world)

async function start(): Promise<ServerProcess> {
  const begun = await startHost({
    main: MAIN,
    dataDir: folder,
    world,
    env,
    onLine: (line) => {
      if (!line.startsWith('{"level":50')) return
      log.push(line)
      if (log.length > 20) log.shift()
    },
  })
  void begun.ended.then(({ code, signal, stderr }) => {
    if (code !== 0) say(`the server ended with ${signal ?? code}: ${stderr}`)
  })
  return begun
}

/** Keeps a failed case as a seed. If the server has ended, open requests are lost, and a new server takes its place. */
async function onFailure({ fuzzCase, complaints }: Failure): Promise<void> {
  failures++
  const isGone = !server.isRunning()
  const about = isGone ? 'was under way when the server ended' : complaints.join('; ').slice(0, 200)
  const file = writeSeed(SEEDS, { ...fuzzCase, about })
  say(`${fuzzCase.kind}: ${about}: kept in ${file}`)
  if (!isGone) return
  restarting ??= restart()
  await restarting
}

let restarting: Promise<void> | undefined
async function restart(): Promise<void> {
  crashes++
  await server.ended
  server = await start()
  restarting = undefined
}

const samples: Usage[] = []
const sampling = setInterval(() => {
  const usage = server.usage()
  if (usage !== undefined) samples.push(usage)
}, A_SAMPLE)
say(`seed ${seed}, ${minutes} minutes`)
const begun = performance.now()
const end = begun + minutes * 60_000
const figures = await fuzz({
  url: () => server.url,
  isRunning: () => server.isRunning(),
  cases: casesOf(world, { seed, ...(kind !== undefined && { kind }) }),
  probes: world.probes,
  clients: CLIENTS,
  patience: PATIENCE,
  goesOn: () => performance.now() < end && failures < MAX_FAILURES,
  onFailure,
})
clearInterval(sampling)

const warm = samples.slice(Math.floor(samples.length * WARM_UP))
const memory = growthOf(
  warm.map(({ rss }) => rss),
  { slack: MEMORY_SLACK },
)
const handles = growthOf(
  warm.map((usage) => usage.handles),
  { slack: HANDLE_SLACK },
)
report(figures)
await server.kill('SIGTERM')
await dns.close()
await rm(folder, { recursive: true, force: true })
if (failures > 0 || crashes > 0 || memory.hasGrown || handles.hasGrown) process.exitCode = 1

function report({ cases, requests, probes, kinds, slowest }: Figures): void {
  const seconds = (performance.now() - begun) / 1000
  const counts = (all: Record<string, number>): string =>
    Object.entries(all)
      .map(([status, count]) => `${count} times ${status}`)
      .join(', ')
  say(
    `${cases} cases, ${requests} requests (${(requests / seconds).toFixed(0)} a second), ${probes} good ones between them`,
  )
  for (const [name, answers] of Object.entries(kinds).sort()) say(`  ${name}: ${counts(answers)}`)
  say(`slowest: ${slowest.milliseconds.toFixed(0)} ms, ${slowest.kind}`)
  const mebibytes = memory.medians.map((bytes) => (bytes / 2 ** 20).toFixed(0))
  say(`memory, medians of thirds: ${mebibytes.join(', ')} MiB${memory.hasGrown ? ': it grows' : ''}`)
  say(`handles, medians of thirds: ${handles.medians.join(', ')}${handles.hasGrown ? ': they grow' : ''}`)
  say(`failures: ${failures}, crashes: ${crashes}`)
  for (const line of failures > 0 ? log : []) say(`log: ${line.slice(0, 2000)}`)
}
