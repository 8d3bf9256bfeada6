import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { ENGINE_VERSIONS, type EngineVersion } from '../test/support/plugin/engines.js'
import { ask, submission } from '../test/support/server/test-server.js'
import { MISSING_FOR_MARIADB } from '../test/support/services/mariadb.js'
import { MISSING_FOR_MONGO } from '../test/support/services/mongo.js'
import { withMariadb, withMongo } from './databases.js'
import { HostMaterial, type Kind, type Submission } from './host-material.js'
import type { HostSetup, Order } from './host-process.js'
import { median } from './support.js'

const TOPICS = ['tm_names', 'tm_ordinals']
const KINDS = ['inscription', 'mint'] as const
const SERVICE: Record<Kind, string> = { mint: 'ls_names', inscription: 'ls_ordinals' }
const ROUNDS = 5
/** How many are submitted in a round, one after another; and before the first one. */
const A_ROUND: Record<Kind, number> = { inscription: 60, mint: 30 }
const WARM_UP = 60
const LAGS = 15
/** What is admitted of a mint, and of an inscription; a mint is longer than this. */
const ADMITTED: HostSetup['admitted'] = {
  longer: 10_000,
  mints: { tm_names: [0, 1, 2], tm_ordinals: [0, 1, 2] },
  others: { tm_ordinals: [0] },
}

type Place = Pick<HostSetup, 'knexUrl' | 'mongoUrl'>

/**
 * The plugin in a host of the overlay engine, with one that does nothing in its place: processor time of the process (all threads)
 * for a submission over HTTP, and the time from the engine's answer until a lookup finds it.
 */
export async function* host(wanted: readonly string[] = []): AsyncGenerator<string> {
  yield `load average before: ${loadavg()[0]?.toFixed(1)}`
  const chosen = <Name extends string>(names: readonly Name[]): readonly Name[] => {
    const some = names.filter((name) => wanted.includes(name))
    return some.length > 0 ? some : names
  }
  const engines = chosen(ENGINE_VERSIONS).filter(
    (engine) => wanted.includes(engine) || engine === ENGINE_VERSIONS[0] || engine === ENGINE_VERSIONS.at(-1),
  )
  for (const name of chosen(Object.keys(DATABASES) as (keyof typeof DATABASES)[]))
    for (const engine of engines)
      yield* DATABASES[name]((place) =>
        compared(`${engine} on ${name}`, { ...place, engine, kinds: chosen(KINDS) }),
      )
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
    for await (const beef of material.tree()) for (const each of hosts) await each.submit(beef)
    for (const kind of kinds) {
      const cpu: number[][] = hosts.map(() => [])
      const lags: number[][] = hosts.map(() => [])
      for (let round = -1; round < ROUNDS; round++) {
        const some = await made(material, kind, round < 0 ? WARM_UP : A_ROUND[kind])
        for (const [at, each] of hosts.entries()) {
          const took = await each.cpuOf(kind, some)
          if (round >= 0) cpu[at]?.push(took)
        }
      }
      for (const each of await made(material, kind, LAGS))
        for (const [at, host] of hosts.entries()) lags[at]?.push(await host.lagOf(kind, each))
      yield `${title}, ${kind}: ${told(cpu, 'ms of CPU', 2)}; found ${told(lags, 'ms after the answer', 1)}`
    }
  } finally {
    for (const each of hosts) await each.end()
  }
}

/** Of a plugin that does nothing, and of ours. */
function told([nothing = [], ours = []]: number[][], unit: string, digits: number): string {
  const [base, own] = [median(nothing), median(ours)]
  return `${base.toFixed(digits)} and ${own.toFixed(digits)} ${unit}, ratio ${(own / base).toFixed(2)} (wanted: at most 1.3)`
}

async function made(material: HostMaterial, kind: Kind, count: number): Promise<Submission[]> {
  const found: Submission[] = []
  while (found.length < count) found.push(await material.next(kind))
  return found
}

/** A process with a host. */
class Host {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    private readonly url: string,
  ) {}

  static async start(setup: HostSetup): Promise<Host> {
    const folder = mkdtempSync(join(tmpdir(), 'minetree-bench-'))
    const profiles = process.env.BENCH_PROFILES
    const child = fork(new URL('./host-process.js', import.meta.url), [], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      serialization: 'advanced',
      execArgv:
        profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profiles, setup.plugin)}`],
      env: { ...process.env, INDEX_DIR: folder },
    })
    const { knexUrl = `sqlite:${folder}`, ...place } = await ownPlace(setup, setup.plugin)
    child.send({ ...setup, ...place, knexUrl } satisfies HostSetup)
    const [url] = (await once(child, 'message')) as [string]
    return new Host(child, folder, url)
  }

  async submit(beef: Uint8Array, topics = TOPICS): Promise<void> {
    const { status, body } = await ask(this.url, '/submit', submission(beef, topics))
    if (status !== 200) throw new Error(`a submission was answered ${status}: ${body}`)
  }

  /** Processor time for each of some submissions, in milliseconds. */
  async cpuOf(kind: Kind, some: readonly Submission[]): Promise<number> {
    const last = some.at(-1) as Submission
    const before = await this.ask<number>({ settle: [] })
    for (const { beef } of some) await this.submit(beef)
    const after = await this.ask<number>({ settle: [{ service: SERVICE[kind], query: last.query }] })
    return (after - before) / some.length
  }

  async lagOf(kind: Kind, { beef, query }: Submission): Promise<number> {
    return await this.ask({ beef, topics: TOPICS, find: { service: SERVICE[kind], query } })
  }

  async ask<Answer>(order: Order): Promise<Answer> {
    this.child.send(order)
    const [answer] = (await once(this.child, 'message')) as [Answer]
    return answer
  }

  async end(): Promise<void> {
    const ended = once(this.child, 'exit')
    this.child.disconnect()
    await ended
    rmSync(this.folder, { recursive: true, force: true })
  }
}

type Run = (place: Place) => AsyncGenerator<string>

/** Where hosts keep what they have. Without its database, one is left out. With MongoDB, the engine is on MariaDB. */
const DATABASES = {
  sqlite: (run: Run) => run({}),
  async *mariadb(run: Run): AsyncGenerator<string> {
    if (MISSING_FOR_MARIADB.length > 0) yield `MariaDB is left out: no ${MISSING_FOR_MARIADB.join(', no ')}`
    else yield* withMariadb({ isDurable: true }, ({ url }) => run({ knexUrl: url }))
  },
  async *mongodb(run: Run): AsyncGenerator<string> {
    if (MISSING_FOR_MONGO.length > 0) yield `MongoDB is left out: no ${MISSING_FOR_MONGO.join(', no ')}`
    else yield* DATABASES.mariadb((place) => withMongo(({ url }) => run({ ...place, mongoUrl: url })))
  },
}

/** The same place for a host of its own. */
async function ownPlace({ knexUrl, ...others }: Place, name: string): Promise<Place> {
  if (knexUrl === undefined) return others
  const connection = await createConnection(knexUrl)
  await connection.query(`create database ${name}`)
  await connection.end()
  return { ...others, knexUrl: new URL(name, knexUrl).href }
}
