import { loadavg } from 'node:os'
import { ENGINE_VERSIONS, type EngineVersion } from '../test/support/plugin/engines.js'
import { HostMaterial, type Kind, type Submission } from './host-material.js'
import { DATABASES, Host, type Place } from './host-places.js'
import type { HostSetup } from './host-process.js'
import { waits } from './host-waits.js'
import { median } from './support.js'

const TOPICS = ['tm_names', 'tm_ordinals']
/** The real engine, and the stand-in for the newest. */
const MEASURED = ['0.4.6', '2.6.3'] as const
const KINDS = ['inscription', 'mint'] as const
const SERVICE: Record<Kind, string> = { mint: 'ls_names', inscription: 'ls_ordinals' }
/** Short rounds, by turns, as the machine is not equally fast all the time. */
const ROUNDS = 9
const A_ROUND: Record<Kind, number> = { inscription: 40, mint: 20 }
/**
 * How many submissions come before the first round. Each thread compiles frequent code by itself, over some thousands of them,
 * which would count against the plugin.
 */
const WARM_UP: Record<Kind, number> = { inscription: 4000, mint: 300 }
const LAGS = 45
/** The admitted outputs of a mint, and of an inscription; mints are longer than `longer`. */
const ADMITTED: HostSetup['admitted'] = {
  longer: 10_000,
  mints: { tm_names: [0, 1, 2], tm_ordinals: [0, 1, 2] },
  others: { tm_ordinals: [0] },
}

/**
 * The plugin in a host of the overlay engine, compared with one that does nothing: processor time of the process (all threads)
 * for a submission over HTTP, and the time from the engine's answer until a lookup finds the output.
 */
export async function* host(wanted: readonly string[] = []): AsyncGenerator<string> {
  yield `load average before: ${loadavg()[0]?.toFixed(1)}`
  const chosen = <Name extends string>(names: readonly Name[]): readonly Name[] => {
    const some = names.filter((name) => wanted.includes(name))
    return some.length > 0 ? some : names
  }
  const parts = chosen(['submissions', 'waits'])
  const engines = wanted.some((each) => ENGINE_VERSIONS.includes(each as EngineVersion))
    ? chosen(ENGINE_VERSIONS)
    : MEASURED
  for (const name of chosen(Object.keys(DATABASES) as (keyof typeof DATABASES)[]))
    for (const engine of engines)
      yield* DATABASES[name](async function* (place) {
        const title = `${engine} on ${name}`
        if (parts.includes('submissions')) yield* compared(title, { ...place, engine, kinds: chosen(KINDS) })
        if (parts.includes('waits') && engine === MEASURED[0]) yield* waits(title, { ...place, engine })
      })
}

async function* compared(
  title: string,
  { engine, kinds, ...place }: Place & { engine: EngineVersion; kinds: readonly Kind[] },
): AsyncGenerator<string> {
  const material = new HostMaterial()
  const setup = { ...place, engine, deployment: material.chain.deployment, admitted: ADMITTED }
  const hosts: Host[] = []
  try {
    for (const plugin of ['nothing', 'ours'] as const) hosts.push(await Host.start({ ...setup, plugin }))
    for await (const beef of material.tree()) for (const each of hosts) await each.submit(beef, TOPICS)
    for (const kind of kinds) {
      const [cpu, lags]: number[][][] = [[], []].map(() => hosts.map(() => []))
      for (let round = -1; round < ROUNDS; round++) {
        const some = await made(material, kind, round < 0 ? WARM_UP[kind] : A_ROUND[kind])
        for (const at of inTurn(round)) {
          const cost = await costOf(hosts[at] as Host, kind, some)
          if (round >= 0) cpu?.[at]?.push(cost)
        }
      }
      for (const [round, { beef, query }] of (await made(material, kind, LAGS)).entries())
        for (const at of inTurn(round))
          lags?.[at]?.push(
            await (hosts[at] as Host).ask({ beef, topics: TOPICS, find: { service: SERVICE[kind], query } }),
          )
      yield `${title}, ${kind}: ${comparison(cpu, 'ms of CPU', 2)}; found ${comparison(lags, 'ms after the answer', 1)}`
    }
  } finally {
    for (const each of hosts) await each.end()
  }
}

/** The order of both hosts in a round. */
function inTurn(round: number): readonly number[] {
  return round % 2 === 0 ? [0, 1] : [1, 0]
}

/** Compares a plugin that does nothing with ours: each measurement with the one that was made beside it. */
function comparison([nothing = [], ours = []]: number[][] = [], unit: string, digits: number): string {
  const [base, own] = [median(nothing), median(ours)]
  const ratio = median(ours.map((each, at) => each / (nothing[at] ?? Number.NaN)))
  return `${base.toFixed(digits)} and ${own.toFixed(digits)} ${unit}, ratio ${ratio.toFixed(2)} (wanted: at most 1.3)`
}

/** The processor time of all threads for a submission, in milliseconds, until the last one was found and the engine is idle. */
async function costOf(host: Host, kind: Kind, some: readonly Submission[]): Promise<number> {
  const found = some.slice(-1).map(({ query }) => ({ service: SERVICE[kind], query }))
  const before = await host.ask<number>({ cpuAfter: [] })
  for (const { beef } of some) await host.submit(beef, TOPICS)
  return ((await host.ask<number>({ cpuAfter: found })) - before) / some.length
}

async function made(material: HostMaterial, kind: Kind, count: number): Promise<Submission[]> {
  const found: Submission[] = []
  while (found.length < count) found.push(await material.next(kind))
  return found
}
