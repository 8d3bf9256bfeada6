import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { MISSING_FOR_MARIADB } from '../test/support/services/mariadb.js'
import { MISSING_FOR_MONGO } from '../test/support/services/mongo.js'
import { type Database, withMariadb, withMongo } from './databases.js'
import type { Readings } from './grown-tree.js'
import { roundsByTurns, type Target, withProcess } from './load.js'
import type { EngineName, StoresReady } from './stores-server.js'
import { median } from './support.js'

const ROUNDS = 11
const MINTS_A_ROUND = 5

/** A kind of database that a store may be on. */
interface Engine {
  name: EngineName
  /** The programmes that this machine lacks for it. */
  missing: string[]
  with(run: (database: Database) => AsyncGenerator<string>): AsyncGenerator<string>
}

/** The engines, those that are not installed included. */
export const ENGINES: Engine[] = [
  { name: 'SQLite', missing: [], with: (run) => run({ about: 'in a file, in the process itself', url: '' }) },
  { name: 'MariaDB', missing: MISSING_FOR_MARIADB, with: (run) => withMariadb({ isDurable: true }, run) },
  { name: 'MongoDB', missing: MISSING_FOR_MONGO, with: withMongo },
]

/** A store that is ready, in a process of its own. */
interface Measured extends StoresReady {
  name: string
  about: string
  process: ChildProcess
}

/**
 * What reads and mints cost on each kind of database against SQLite: a lookup of an origin, the metadata of a tip, 4 KiB of
 * content; the same tree on each, one process each, by turns. Reads twice: from the store each time, as the gateway of a
 * plugin has them, and of our server, which keeps answers in memory.
 */
export async function* stores(): AsyncGenerator<string> {
  for (const { name, missing } of ENGINES)
    if (missing.length > 0) yield `${name} is left out: there is no ${missing.join(', no ')} here`
  const load = loadavg()[0] ?? Number.NaN
  yield `${availableParallelism()} cores for all processes together; load average before: ${load.toFixed(1)}`
  yield* withEach(
    ENGINES.filter(({ missing }) => missing.length === 0),
    measure,
  )
}

async function* withEach(
  [engine, ...others]: Engine[],
  run: (stores: Measured[]) => AsyncGenerator<string>,
  ready: Measured[] = [],
): AsyncGenerator<string> {
  if (engine === undefined) {
    yield* run(ready)
    return
  }
  const { name } = engine
  yield* engine.with(({ about, url }) =>
    withProcess('./stores-server.js', [name, url], async function* (last: StoresReady, process) {
      yield* withEach(others, run, [...ready, { ...last, name, about, process }])
    }),
  )
}

async function* measure(stores: Measured[]): AsyncGenerator<string> {
  for (const { name, about } of stores) yield `${name}: ${about}`
  const [first] = stores
  if (first === undefined) return
  yield `requests a second from the store, as by \`attachGateway\` in a host (medians of ${ROUNDS})`
  yield* compareReads(
    stores.map(({ name, plugin }) => ({ name, origin: plugin })),
    first.readings,
  )
  yield `requests a second of our server, which keeps answers in memory (medians of ${ROUNDS})`
  yield* compareReads(
    stores.map(({ name, server }) => ({ name, origin: server })),
    first.readings,
  )
  yield* compareMints(stores)
}

async function* compareReads(
  hosts: { name: string; origin: string }[],
  readings: Readings,
): AsyncGenerator<string> {
  for (const [reading, paths] of Object.entries<string[]>({ ...readings })) {
    const targets = hosts.map(({ name, origin }): [string, Target] => [name, { origin, paths }])
    const rounds = Object.entries(await roundsByTurns(Object.fromEntries(targets), ROUNDS))
    const rates = rounds.map(([name, all]): [string, number[]] => [name, all.map(({ rate }) => rate)])
    const shown = rates.map(([name, all]) => `${name} ${median(all).toFixed(0)}`).join(', ')
    yield `${reading}: ${shown}${ratios(rates, (own, base) => own / base)} (wanted: at least 0.3)`
  }
}

/** How long mints take to be admitted, by turns. */
async function* compareMints(stores: Measured[]): AsyncGenerator<string> {
  const times = stores.map(({ name }): [string, number[]] => [name, []])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, { process }] of stores.entries()) {
      const taken: number[] = []
      while (taken.length < MINTS_A_ROUND) {
        process.send('admit')
        const [time] = (await once(process, 'message')) as [number]
        taken.push(time)
      }
      times[index]?.[1].push(median(taken))
    }
  }
  const shown = times.map(([name, all]) => `${name} ${median(all).toFixed(1)} ms`).join(', ')
  yield `admit one mint: ${shown}${ratios(times, (own, base) => base / own)} (medians of ${ROUNDS} times ${MINTS_A_ROUND})`
}

/** How fast each is against the first in the same round: medians. */
function ratios(
  rounds: [name: string, values: number[]][],
  ratio: (own: number, base: number) => number,
): string {
  const [first, ...others] = rounds
  const shown = others.map(([name, values]) => {
    const all = values.map((own, round) => ratio(own, first?.[1][round] ?? Number.NaN))
    return `; ${name} ratio ${median(all).toFixed(2)}`
  })
  return shown.join('')
}
