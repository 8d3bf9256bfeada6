import { inspect } from 'node:util'
import fc from 'fast-check'
import { EngineHost } from '../../histories/engine-host.js'
import type { Host } from '../../histories/host.js'
import { ServerHost } from '../../histories/server-host.js'
import type { Environment } from '../server/test-server.js'
import { livePlan, type PlanSize } from './live-plan.js'
import { LiveRun, NotAtRest } from './live-run.js'
import { WorldSources } from './world-sources.js'

/** `RUNS=200 SEED=7 npm test -- test/unit/chain/follow/live.test.ts` does more runs than the tests, and other ones; `ONLY=3` one of them. */
const { RUNS, SEED = '1', ONLY } = process.env

/** How many failures are shown of many runs. */
const MAX_SHOWN = 5

export interface LiveRuns {
  runs: number
  /** How many are under way at once: most of the time, a service waits for its sources. */
  parallel: number
  size: PlanSize
  /** Settings of a service, as those of its database. */
  env?(): Promise<Environment>
  /** The compiled command: with it, services are processes, and kills are kills. */
  main?: string
  /** Whether the first source is another host, which follows the same chain. */
  isBehindPeer?: boolean
  /** Where the database is of a host of another engine, which follows with the plugin. */
  engineDatabase?(): Promise<string>
}

/** Settings of a service that asks as often as it can. */
const HURRY = { CHAIN_SOURCE_RATE: '1000', FOLLOW_POLL_MS: '400', HEADERS_POLL_MS: '100' }

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
  const failures: string[] = []
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [at, plan] = next
      const { counts, failure } = await liveRun(plan, options)
      for (const [what, times] of Object.entries(counts)) happened[what] = (happened[what] ?? 0) + times
      if (failure !== undefined) failures.push(`SEED=${SEED} ONLY=${at}: ${failure}`)
      // After many runs, one wants to see which of them failed.
      if (failure !== undefined && RUNS === undefined) waiting.length = 0
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  if (RUNS !== undefined)
    process.stdout.write(`SEED=${SEED} ${failures.length} failures ${JSON.stringify(happened)}\n`)
  if (failures.length > 0) throw new Error(failures.slice(0, MAX_SHOWN).join('\n\n'))
  return happened
}

async function liveRun(
  plan: Parameters<typeof LiveRun.start>[0]['plan'],
  { env, main, isBehindPeer = false, engineDatabase }: LiveRuns,
): Promise<{ counts: Record<string, number>; failure?: string }> {
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
        if (engineDatabase !== undefined) {
          const follow = { ...HURRY, FOLLOW_ORDINALS: plan.follow, ...sources.settings(plan) }
          const database = { name: 'host', KNEX_URL: await engineDatabase(), MONGO_URL: '' }
          return opened(await EngineHost.start({ history, headers, database, follow }))
        }
        const start = async (more: Environment): Promise<ServerHost> => {
          const settings = { ...HURRY, FOLLOW_ORDINALS: plan.follow, ...sources.settings(plan), ...more }
          return opened(await ServerHost.start({ history, headers, main, env: settings }))
        }
        const peer = isBehindPeer ? await start({}) : undefined
        const overlay = peer && { CHAIN_SOURCES: `overlay=${peer.url},${sources.names}` }
        return await start({ ...overlay, ...(await env?.()) })
      },
    })
    return { counts: await run.run() }
  } catch (error) {
    return { counts: { failed: 1 }, failure: error instanceof NotAtRest ? error.message : inspect(error) }
  } finally {
    for (const each of open) await each.close()
  }
}
