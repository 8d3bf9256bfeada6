import { availableParallelism, loadavg } from 'node:os'
import { MISSING_FOR_MARIADB } from '../test/support/services/mariadb.js'
import { withMariadb } from './databases.js'
import { loadTogether, withProcess } from './load.js'
import type { ProcessesReady } from './processes-server.js'
import { median } from './support.js'

const ROUNDS = 7
const PROCESSES = 4
/** As many as there are processes that have work then: the servers, the client and the database. */
const CORES = PROCESSES + 2

/**
 * Requests a second that four server processes on one MariaDB answer, against one of them: 4 KiB of content and the metadata
 * of tips, asked by the same client of either, by turns.
 */
export async function* processes(): AsyncGenerator<string> {
  if (MISSING_FOR_MARIADB.length > 0) {
    yield `left out: there is no ${MISSING_FOR_MARIADB.join(', no ')} here`
    return
  }
  const cores = availableParallelism()
  const load = loadavg()[0] ?? Number.NaN
  yield `${cores} cores for all processes together; load average before: ${load.toFixed(1)}`
  yield* withMariadb({}, ({ url }) => withServers(url, PROCESSES, measure))
  if (cores < CORES)
    yield `${PROCESSES} servers, the client and MariaDB have work at once: the figure is to be had on ${CORES} cores or more, not on ${cores}`
}

async function* withServers(
  url: string,
  count: number,
  run: (servers: ProcessesReady[]) => AsyncGenerator<string>,
  ready: ProcessesReady[] = [],
): AsyncGenerator<string> {
  if (ready.length === count) {
    yield* run(ready)
    return
  }
  const what = ready.length === 0 ? 'fill' : 'open'
  yield* withProcess('./processes-server.js', [url, what], async function* (last: ProcessesReady) {
    yield* withServers(url, count, run, [...ready, last])
  })
}

async function* measure(servers: ProcessesReady[]): AsyncGenerator<string> {
  const [first] = servers
  if (first === undefined) return
  const { readings } = first
  for (const [name, paths] of Object.entries({
    '4 KiB': readings['4 KiB'],
    'tip metadata': readings['tip metadata'],
  })) {
    const alone: number[] = []
    const together: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      alone.push(await loadTogether(servers.map(() => ({ origin: first.url, paths }))))
      together.push(await loadTogether(servers.map(({ url }) => ({ origin: url, paths }))))
    }
    const ratio = median(together.map((rate, round) => rate / (alone[round] ?? Number.NaN)))
    yield `${name}: one process answers ${median(alone).toFixed(0)} a second, ${PROCESSES} answer ${median(together).toFixed(0)} (medians of ${ROUNDS})`
    yield `${name} ratio ${ratio.toFixed(2)} (wanted: at least 1.7)`
  }
}
