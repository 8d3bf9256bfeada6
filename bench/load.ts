import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import autocannon from 'autocannon'
import { median } from './support.js'

/** Many and short: what else the machine does comes and goes within seconds. */
const ROUNDS = 11
const SECONDS = 1
const CONNECTIONS = 16

/** Requests to load a server with, asked over and over in their order. */
export interface Target {
  /** `http://host:port` */
  origin: string
  paths: string[]
  method?: 'GET' | 'POST'
  body?: string
}

/** Runs with another process of this folder, and what it sends when it is ready. */
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
    child.kill()
  }
}

/** The memory in use of a process that answers any message with it, in bytes. */
export async function memoryOf(child: ChildProcess): Promise<number> {
  child.send('memory')
  const [size] = (await once(child, 'message')) as [number]
  return size
}

/** Requests a second that each target answers, by turns: medians. */
export async function ratesByTurns<Name extends string>(
  targets: Record<Name, Target>,
): Promise<Record<Name, number>> {
  const rates = Object.entries(await roundsByTurns<string>(targets, ROUNDS))
  return Object.fromEntries(rates.map(([name, all]) => [name, median(all)])) as Record<Name, number>
}

/** Requests a second that each target answers, by turns: of every round. */
export async function roundsByTurns<Name extends string>(
  targets: Record<Name, Target>,
  rounds: number,
): Promise<Record<Name, number[]>> {
  const rates = new Map<string, number[]>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, target] of Object.entries<Target>(targets)) {
      rates.set(name, [...(rates.get(name) ?? []), await load(target)])
    }
  }
  return Object.fromEntries(rates) as Record<Name, number[]>
}

/** Requests a second that targets answer which are loaded at once, each by a thread of its own: of all of them. */
export async function loadTogether(targets: Target[]): Promise<number> {
  const options = { workers: 1, connections: CONNECTIONS / targets.length }
  const rates = await Promise.all(targets.map((target) => load(target, options)))
  return rates.reduce((sum, rate) => sum + rate, 0)
}

async function load(
  { origin, paths, method = 'GET', body }: Target,
  options: { workers?: number; connections?: number } = {},
): Promise<number> {
  const requests = paths.map((path) => ({
    path,
    method,
    ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
  }))
  const result = await autocannon({
    url: origin,
    requests,
    connections: CONNECTIONS,
    duration: SECONDS,
    ...options,
  })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${origin}${paths[0]}: ${result.non2xx} wrong answers, ${result.errors} errors`)
  return result.requests.average
}

/** What is printed of rates. */
export function shown(rates: Record<string, number>): string {
  const all = Object.entries(rates).map(([name, rate]) => `${name} ${rate.toFixed(0)}`)
  return `requests a second (medians of ${ROUNDS}): ${all.join(', ')}`
}
