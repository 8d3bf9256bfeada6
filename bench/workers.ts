import { readFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openNode } from '../src/server/node.js'
import { type ServerProcess, startServerProcess } from '../test/support/server/server-process.js'
import { GrownTree, type Readings } from './grown-tree.js'
import { loadTogether } from './load.js'
import { configFor, median, SILENT, settingsFor, withFolder } from './support.js'

const ROUNDS = 9
/** Keeps readers busy where the client has no core of its own: one that waits takes longer for each request. */
const PIPELINING = 8
const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))
/** What has work at once: two readers, and as many threads of the client. */
const CORES = 4

/** How many inscriptions a second are submitted while readers answer. */
const ADMITTED = 50

/**
 * Requests a second that two readers answer against one process, and the processor time of all their processes for each request,
 * where there are not enough cores for the client as well: 4 KiB of content, a name and the metadata of tips, from memory; and
 * 4 KiB from two readers while inscriptions are submitted against the same two while nothing is. By turns.
 */
export async function* workers(): AsyncGenerator<string> {
  if (process.platform !== 'linux') {
    yield 'left out: processor time is read from /proc'
    return
  }
  const cores = availableParallelism()
  yield `${cores} cores for servers and client together; load average before: ${(loadavg()[0] ?? Number.NaN).toFixed(1)}`
  yield* await withFolder(measure)
  if (cores < CORES)
    yield `two readers and two threads of the client have work at once: the speed is to be had on ${CORES} cores or more, not on ${cores}`
}

async function measure(folder: string): Promise<string[]> {
  const tree = new GrownTree()
  const { chain, readings, submissions } = tree
  const [one, two, other] = [join(folder, 'one'), join(folder, 'two'), join(folder, 'other')]
  const node = await openNode({ config: configFor(chain, one), logger: SILENT })
  for (const each of submissions) await node.overlay.engine.submit(each)
  await node.close()
  for (const copy of [two, other]) await cp(one, copy, { recursive: true })
  const start = (store: string, WORKERS: string): Promise<ServerProcess> =>
    startServerProcess({ main: MAIN, env: { ...settingsFor(chain, store), LOG_LEVEL: 'info', WORKERS } })
  const [alone, together, beside] = [await start(one, '1'), await start(two, '2'), await start(other, '1')]
  try {
    await bothRun(together)
    const lines: string[] = []
    for (const what of ['4 KiB', 'origin', 'tip metadata'] as const)
      lines.push(...(await compare(what, { alone, together, beside, paths: readings[what] })))
    lines.push(await compareWhileAdmitting(together, { tree, paths: readings['4 KiB'] }))
    return lines
  } finally {
    await alone.kill('SIGTERM')
    await together.kill('SIGTERM')
    await beside.kill('SIGTERM')
  }
}

async function bothRun({ url }: ServerProcess): Promise<void> {
  const running = async (): Promise<number> => {
    const health = (await (await fetch(`${url}/health`)).json()) as { readers: { running: number } }
    return health.readers.running
  }
  while ((await running()) < 2) await setTimeout(10)
}

async function compare(
  what: keyof Readings,
  {
    alone,
    together,
    beside,
    paths,
  }: Record<'alone' | 'together' | 'beside', ServerProcess> & { paths: string[] },
): Promise<string[]> {
  const rounds: { alone: Round; together: Round; apart: Round }[] = []
  // In a first round, code is compiled.
  for (let round = 0; round <= ROUNDS; round++) {
    const all = {
      alone: await loaded([alone], paths),
      together: await loaded([together], paths),
      apart: await loaded([alone, beside], paths),
    }
    if (round > 0) rounds.push(all)
  }
  const of = (server: 'alone' | 'together' | 'apart', value: keyof Round): string =>
    median(rounds.map((round) => round[server][value])).toFixed(0)
  const speed = median(rounds.map(({ alone, together }) => together.rate / alone.rate)).toFixed(2)
  const cpu = median(rounds.map(({ alone, together }) => (2 * alone.cpu) / together.cpu)).toFixed(2)
  // What the process with the most work takes of the processor limits the speed where each has a core.
  const most = ({ cpu, busiest }: Round): number => cpu * busiest
  const fallen = median(rounds.map(({ alone, together }) => most(alone) / most(together))).toFixed(2)
  const ideal = median(rounds.map(({ apart, together }) => apart.cpu / together.cpu)).toFixed(2)
  return [
    `${what}: one process answers ${of('alone', 'rate')} a second with ${of('alone', 'cpu')} µs of CPU each, two readers ${of('together', 'rate')} with ${of('together', 'cpu')} µs, two unrelated servers ${of('apart', 'rate')} with ${of('apart', 'cpu')} µs (medians of ${ROUNDS})`,
    `${what} from two readers against one process: ${cpu} by CPU per request, which is the speed where each has a core and as many connections (wanted: 1.8); ${fallen} by that of the busiest process, as these connections fell; ${speed} by speed on these cores`,
    `${what} from two readers against two unrelated servers that share nothing: ${ideal} by CPU per request`,
  ]
}

async function compareWhileAdmitting(
  server: ServerProcess,
  { tree, paths }: { tree: GrownTree; paths: string[] },
): Promise<string> {
  const rounds: { idle: Round; admitting: Round }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const idle = await loaded([server], paths)
    const files = Array.from({ length: 2 * ADMITTED }, () => tree.nextFile())
    const stop = submitSteadily(server, files)
    rounds.push({ idle, admitting: await loaded([server], paths) })
    await stop()
  }
  const ratio = (of: (round: Round) => number): string =>
    median(rounds.map(({ idle, admitting }) => of(admitting) / of(idle))).toFixed(2)
  const apart = median(rounds.map(({ idle, admitting }) => idle.reader / admitting.reader)).toFixed(2)
  return `4 KiB while ${ADMITTED} inscriptions a second are admitted: ${ratio(({ rate }) => rate)} times the speed of the same readers while nothing is, on these cores; ${apart} by the CPU per request of the reader that did most, which is the speed where each process has a core (wanted: 0.9)`
}

/** Submits so many a second. @returns Stops that, and resolves when all that were sent are answered. */
function submitSteadily({ url }: ServerProcess, files: ReturnType<GrownTree['nextFile']>[]) {
  const answers: Promise<Response>[] = []
  const timer = setInterval(() => {
    const file = files.shift()
    if (file === undefined) return
    const headers = { 'content-type': 'application/octet-stream', 'x-topics': JSON.stringify(file.topics) }
    answers.push(fetch(`${url}/submit`, { method: 'POST', headers, body: Buffer.from(file.beef) }))
  }, 1000 / ADMITTED)
  return async (): Promise<void> => {
    clearInterval(timer)
    for (const { status } of await Promise.all(answers))
      if (status !== 200) throw new Error(`an inscription was answered ${status}`)
  }
}

/**
 * Requests a second, processor time of each in microseconds, the share of the process that did most, and the processor time of
 * the reader that did most for each request of all, in microseconds.
 */
interface Round {
  rate: number
  cpu: number
  busiest: number
  reader: number
}

/** Loads one server, or two, from two threads. */
async function loaded(
  [server, other = server]: [ServerProcess, ServerProcess?],
  paths: string[],
): Promise<Round> {
  const pids = [...new Set([server.pid, other.pid])]
  const before = pids.flatMap(cpuOfEach)
  const since = performance.now()
  const targets = [server, other].map(({ url }) => ({ origin: url, paths }))
  const rate = await loadTogether(targets, PIPELINING)
  const seconds = (performance.now() - since) / 1000
  const after = pids.flatMap(cpuOfEach)
  const spent = after.map((cpu, index) => cpu - (before[index] ?? 0))
  const sum = spent.reduce((all, each) => all + each, 0)
  const requests = rate * Math.min(seconds, 1)
  const [, ...readers] = spent
  return {
    rate,
    cpu: sum / requests,
    busiest: Math.max(...spent) / sum,
    reader: Math.max(...readers) / requests,
  }
}

/** Processor time of a process and its children, in microseconds, to ten milliseconds. */
function cpuOfEach(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    .trim()
    .split(' ')
    .filter(Boolean)
  return [pid, ...children].map((each) => {
    const fields = readFileSync(`/proc/${each}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return 10_000 * (Number(fields[11]) + Number(fields[12]))
  })
}
