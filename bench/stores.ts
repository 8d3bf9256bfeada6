import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { MISSING_FOR_MARIADB } from '../test/support/services/mariadb.js'
import { MISSING_FOR_MONGO } from '../test/support/services/mongo.js'
import { type Database, withMariadb, withMongo } from './databases.js'
import { withProcess } from './load.js'
import { median } from './support.js'

const ROUNDS = 11
const MINTS_A_ROUND = 5

/** Where a log may be. */
interface Place {
  name: 'a folder' | 'MariaDB' | 'MongoDB'
  /** The programmes that this machine lacks for it. */
  missing: string[]
  with(run: (database: Database) => AsyncGenerator<string>): AsyncGenerator<string>
}

/** All of them, those that are not installed included. */
const PLACES: Place[] = [
  { name: 'a folder', missing: [], with: (run) => run({ about: 'SQLite', url: '' }) },
  { name: 'MariaDB', missing: MISSING_FOR_MARIADB, with: (run) => withMariadb({ isDurable: true }, run) },
  { name: 'MongoDB', missing: MISSING_FOR_MONGO, with: withMongo },
]

/** A server whose log is there, in a process of its own. */
interface Measured {
  name: string
  about: string
  process: ChildProcess
}

/** How long a mint takes to be admitted, submitted one after another, by turns for each place that a log may be. */
export async function* stores(): AsyncGenerator<string> {
  for (const { name, missing } of PLACES)
    if (missing.length > 0) yield `${name} is left out: there is no ${missing.join(', no ')} here`
  const load = loadavg()[0] ?? Number.NaN
  yield `${availableParallelism()} cores for all processes together; load average before: ${load.toFixed(1)}`
  yield* withEach(PLACES.filter(({ missing }) => missing.length === 0))
}

async function* withEach([place, ...others]: Place[], ready: Measured[] = []): AsyncGenerator<string> {
  if (place === undefined) {
    yield* compareMints(ready)
    return
  }
  const { name } = place
  yield* place.with(({ about, url }) =>
    withProcess('./stores-server.js', [name, url], async function* (_ready, process) {
      yield* withEach(others, [...ready, { name, about, process }])
    }),
  )
}

async function* compareMints(stores: Measured[]): AsyncGenerator<string> {
  const times = stores.map(({ name, about }): [string, number[]] => [`${name} (${about})`, []])
  for (let round = 0; round < ROUNDS; round++)
    for (const [index, { process }] of stores.entries()) {
      const taken: number[] = []
      while (taken.length < MINTS_A_ROUND) {
        process.send('admit')
        const [time] = (await once(process, 'message')) as [number]
        taken.push(time)
      }
      times[index]?.[1].push(median(taken))
    }
  const [first] = times
  for (const [name, all] of times) {
    const took = median(all)
    const ratio = median(all.map((own, round) => own / (first?.[1][round] ?? Number.NaN)))
    yield `${name}: a mint in ${took.toFixed(1)} ms, ${(1000 / took).toFixed(0)} a second one after another, ${ratio.toFixed(2)} times as long as the first`
  }
}
