import fc from 'fast-check'
import type { Host } from '../../../trials/histories/host.js'
import { ServerHost } from '../../../trials/histories/server-host.js'
import type { Environment } from '../server/test-server.js'
import { livePlan } from './live-plan.js'
import { LiveRun } from './live-run.js'
import { WorldSources } from './world-sources.js'

/** `RUNS=200 SEED=7 npm test -- test/unit/follow/live.test.ts` does more runs than the tests, and other ones; `ONLY=3` one of them. */
const { RUNS, SEED = '1', ONLY } = process.env

export interface LiveRuns {
  runs: number
  /** How many are under way at once: most of the time, a service waits for its sources. */
  parallel: number
  /** How many transactions a history has at most, and how much happens to it. */
  size: { deeds: number; events: number }
  /** Settings of a service, as those of its database. */
  env?(): Promise<Environment>
  /** The compiled command: with it, services are processes, and kills are kills. */
  main?: string
}

/** Settings of a service that asks as often as it can. */
const HURRY = { CHAIN_SOURCE_RATE: '1000', FOLLOW_POLL_MS: '50', HEADERS_POLL_MS: '50' }

/**
 * Lets services follow random chains, and expects each to be equal to the model at rest.
 *
 * @returns how often each thing has happened.
 */
export async function expectLiveRuns(options: LiveRuns): Promise<Record<string, number>> {
  const { size, parallel } = options
  const numRuns = Number(RUNS ?? options.runs)
  const plans = fc.sample(livePlan(size), { seed: Number(SEED), numRuns })
  const waiting = [...plans.entries()].filter(([at]) => ONLY === undefined || at === Number(ONLY))
  const happened: Record<string, number> = {}
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [at, plan] = next
      const counts = await liveRun(plan, options).catch((error: unknown) => {
        waiting.length = 0
        throw new Error(`run ${at} of SEED=${SEED}: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        })
      })
      for (const [what, times] of Object.entries(counts)) happened[what] = (happened[what] ?? 0) + times
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  if (RUNS !== undefined) process.stdout.write(`SEED=${SEED} ${JSON.stringify(happened, undefined, 2)}\n`)
  return happened
}

async function liveRun(
  plan: Parameters<typeof LiveRun.start>[0]['plan'],
  { env, main }: LiveRuns,
): Promise<Record<string, number>> {
  const open: { close(): Promise<void> }[] = []
  const opened = <Part extends { close(): Promise<void> }>(part: Part): Part => {
    open.unshift(part)
    return part
  }
  try {
    const run = await LiveRun.start({
      plan,
      sources: async (world) => opened(await WorldSources.start(world, ['junglebus', 'whatsonchain'])),
      async open({ history, headers, sources }): Promise<Host> {
        const settings = {
          ...HURRY,
          CHAIN_SOURCES: sources.settings,
          FOLLOW_ORDINALS: plan.follow,
          ...(await env?.()),
        }
        return opened(await ServerHost.start({ history, headers, main, env: settings }))
      },
    })
    return await run.run()
  } finally {
    for (const each of open) await each.close()
  }
}
