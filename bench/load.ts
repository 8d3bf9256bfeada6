import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import autocannon from 'autocannon'
import type { ServerUsage } from './started-server.js'
import { median } from './support.js'

/** Many and short, because other load on the machine comes and goes within seconds. */
const ROUNDS = 31
const SECONDS = 0.4
/** How often autocannon checks whether a round is over, in milliseconds. */
const CHECKING = 50
const CONNECTIONS = 16

/** Requests to load a server with, repeated in their order. */
export interface Target {
  /** `http://host:port` */
  origin: string
  paths: string[]
  /** The process that answers, if it answers the message `cpu` with `process.cpuUsage()`. */
  server?: ChildProcess
  /** Headers of requests for long bodies. */
  headers?: Record<string, string>
  /** The length of its bodies, if they are long: then a round has as many requests as add up to {@link LONG_BYTES}. */
  length?: number
}

/** The result of a target in one round. */
export interface Round {
  /** Requests a second. */
  rate: number
  /** The processor time of the server per request, in microseconds; NaN if it is unknown. */
  cpu: number
}

/** Runs with another process of this folder, and its message when it is ready. */
export async function* withProcess<Ready, Result>(
  file: string,
  parameters: string[],
  run: (ready: Ready, process: ChildProcess) => AsyncGenerator<Result>,
): AsyncGenerator<Result> {
  const child = fork(new URL(file, import.meta.url), parameters, {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  try {
    const [ready] = (await once(child, 'message')) as [Ready]
    yield* run(ready, child)
  } finally {
    // Another process may open its files next.
    const ended = once(child, 'exit')
    if (child.kill()) await ended
  }
}

/** The resources that a `started-server.js` process has used. */
export async function usageOf(child: ChildProcess): Promise<ServerUsage> {
  child.send('usage')
  const [used] = (await once(child, 'message')) as [ServerUsage]
  return used
}

/** Loads each target in short rounds, alternating. A first round, in which code is compiled, does not count. */
export async function roundsByTurns<Name extends string>(
  targets: Record<Name, Target>,
  rounds = ROUNDS,
): Promise<Record<Name, Round[]>> {
  const results = Object.entries<Target>(targets).map(([name, target]) => ({
    name,
    target,
    rounds: [] as Round[],
  }))
  for (const { target } of results) await load(target)
  for (let round = 0; round < rounds; round++) {
    for (const { target, rounds } of results) rounds.push(await load(target))
  }
  return Object.fromEntries(results.map(({ name, rounds }) => [name, rounds])) as Record<Name, Round[]>
}

/**
 * How many times as fast one target is as another: the median over the rounds, each compared with the same round of the other.
 */
export function speedRatio(own: Round[], base: Round[]): number {
  return median(own.map(({ rate }, round) => rate / (base[round]?.rate ?? Number.NaN)))
}

/** The same for processor time per request, which a loaded machine and the client's own work change less than speed. */
export function cpuRatio(own: Round[], base: Round[]): number {
  return median(own.map(({ cpu }, round) => (base[round]?.cpu ?? Number.NaN) / cpu))
}

async function load(target: Target): Promise<Round> {
  const { origin, paths, server, length, headers = {} } = target
  if (length !== undefined) return await loadLong({ origin, paths, server, length, headers })
  const before = await cpuOf(server)
  const result = await autocannon({
    url: origin,
    requests: paths.map((path) => ({ path })),
    connections: CONNECTIONS,
    duration: SECONDS,
    sampleInt: CHECKING,
  })
  const cpu = (await cpuOf(server)) - before
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${origin}${paths[0]}: ${result.non2xx} wrong answers, ${result.errors} errors`)
  // Not autocannon's average, which counts whole seconds.
  const { total } = result.requests
  return { rate: (total * 1000) / (result.finish.getTime() - result.start.getTime()), cpu: cpu / total }
}

/**
 * A round of long bodies, with Node's own client: autocannon takes longer to read them than the server to send them, and leaves
 * many half-sent when the time is over, which costs the server as much.
 */
async function loadLong(target: Target & { length: number }): Promise<Round> {
  const { origin, paths, server, length, headers = {} } = target
  const agent = new Agent({ keepAlive: true, maxSockets: LONG_CONNECTIONS })
  const total = Math.max(Math.floor(LONG_BYTES / length), LONG_CONNECTIONS)
  const [before, since] = [await cpuOf(server), performance.now()]
  const ask = async (number: number): Promise<void> => {
    const [answer] = await once(
      get(`${origin}${paths[number % paths.length]}`, { agent, headers }),
      'response',
    )
    let received = 0
    for await (const chunk of answer) received += chunk.length
    if (received !== length) throw new Error(`${origin}: ${received} bytes of ${length}`)
  }
  // Waiting requests are sent as connections become free.
  await Promise.all(Array.from({ length: total }, (_, number) => ask(number)))
  const rate = (total * 1000) / (performance.now() - since)
  agent.destroy()
  return { rate, cpu: ((await cpuOf(server)) - before) / total }
}

/** How many bytes a round of long bodies has, and on how many connections. */
const LONG_BYTES = 32 * 1024 * 1024
const LONG_CONNECTIONS = 4

/** The processor time that a process has used, in microseconds. */
async function cpuOf(server: ChildProcess | undefined): Promise<number> {
  if (server === undefined) return Number.NaN
  server.send('cpu')
  const [{ user, system }] = (await once(server, 'message')) as [NodeJS.CpuUsage]
  return user + system
}
