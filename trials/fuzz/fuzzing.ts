import { setTimeout as sleep } from 'node:timers/promises'
import type { InFlightRequest } from './exchange.js'
import { exchange } from './exchange.js'
import { judge } from './judge.js'
import type { FuzzCase } from './kinds.js'
import { wrongWith } from './probe.js'
import type { Probe } from './world.js'

/** The result of a case that failed at its last request. */
export interface Failure {
  fuzzCase: FuzzCase
  complaints: string[]
}

/** Statistics of requests and answers. */
export interface Figures {
  cases: number
  requests: number
  /** Good requests that were sent in between. */
  probes: number
  /** How often each class of input was answered with each status. */
  kinds: Record<string, Record<string, number>>
  slowest: { milliseconds: number; kind: string }
}

export interface FuzzingOptions {
  /** The current URL of the server, which may change after a crash. */
  url: () => string
  cases: Iterator<FuzzCase>
  probes: readonly Probe[]
  /** Whether the server runs. */
  isRunning: () => boolean
  /** How many cases are under way at once. */
  clients: number
  /** How long an answer may take, in milliseconds. */
  patience: number
  /** Whether to go on; asked before every case. */
  goesOn: () => boolean
  onFailure: (failure: Failure) => Promise<void>
}

/** Sends cases, several at once, with good requests in between; judges every answer. */
export async function fuzz(options: FuzzingOptions): Promise<Figures> {
  const figures: Figures = {
    cases: 0,
    requests: 0,
    probes: 0,
    kinds: {},
    slowest: { milliseconds: 0, kind: '' },
  }
  const clients = Array.from({ length: options.clients }, () => sendCases(options, figures))
  let isDone = false
  const probing = askGoodRequests(options, figures, () => !isDone)
  await Promise.all(clients)
  isDone = true
  await probing
  return figures
}

async function sendCases(options: FuzzingOptions, figures: Figures): Promise<void> {
  while (options.goesOn()) {
    const next = options.cases.next()
    if (next.done === true) return
    const fuzzCase = next.value
    figures.cases++
    for (const [at, request] of fuzzCase.requests.entries()) {
      const answered = await exchange(options.url(), request, options)
      const { statuses, complaints } = judge(request, answered)
      count(figures, { fuzzCase, answered, statuses })
      // A client that sends no valid request has no right to an answer, but the server must still run.
      if (answered.end === 'reset' && !(await isStillRunning(options))) complaints.push('the server ended')
      if (complaints.length === 0) continue
      const upToHere = { ...fuzzCase, requests: fuzzCase.requests.slice(0, at + 1) }
      await options.onFailure({ fuzzCase: upToHere, complaints })
      break
    }
  }
}

async function isStillRunning({ isRunning }: FuzzingOptions): Promise<boolean> {
  await sleep(UNTIL_HEARD)
  return isRunning()
}

/** How much later than its connections the end of a process may be noticed, in milliseconds. */
const UNTIL_HEARD = 50

function count(
  figures: Figures,
  { fuzzCase, answered, statuses }: { fuzzCase: FuzzCase; answered: InFlightRequest; statuses: number[] },
): void {
  figures.requests++
  const counts = figures.kinds[fuzzCase.kind] ?? {}
  figures.kinds[fuzzCase.kind] = counts
  for (const status of statuses.length > 0 ? statuses : ['none']) counts[status] = (counts[status] ?? 0) + 1
  const { milliseconds } = answered
  if (milliseconds > figures.slowest.milliseconds) figures.slowest = { milliseconds, kind: fuzzCase.kind }
}

async function askGoodRequests(
  options: FuzzingOptions,
  figures: Figures,
  goesOn: () => boolean,
): Promise<void> {
  const { probes, url, patience } = options
  while (goesOn()) {
    const probe = probes[figures.probes % probes.length]
    if (probe === undefined) return
    figures.probes++
    const wrong = await wrongWith(probe, { url: url(), patience })
    if (wrong === undefined) continue
    const fuzzCase = { kind: 'good requests', requests: [probe.request] }
    await options.onFailure({ fuzzCase, complaints: [wrong] })
  }
}
