import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { ask, submission } from '../test/support/server/test-server.js'
import { MISSING_FOR_MARIADB } from '../test/support/services/mariadb.js'
import { MISSING_FOR_MONGO } from '../test/support/services/mongo.js'
import { withMariadb, withMongo } from './databases.js'
import type { HostSetup, Order } from './host-process.js'

export type Place = Pick<HostSetup, 'knexUrl' | 'mongoUrl'>

/** A process that runs a host. */
export class Host {
  private readonly ended: Promise<undefined>

  private constructor(
    private readonly setup: HostSetup,
    private readonly folder: string,
    private readonly child: ChildProcess,
    private readonly url: string,
  ) {
    this.ended = once(child, 'exit').then(() => undefined)
  }

  /** Starts a host with a separate database and folder. */
  static async start(setup: HostSetup): Promise<Host> {
    const folder = mkdtempSync(join(tmpdir(), 'minetree-bench-'))
    const { knexUrl = `sqlite:${folder}`, ...place } = await ownPlace(setup, setup.plugin)
    return await Host.startIn(folder, { ...setup, ...place, knexUrl })
  }

  /** Starts another process with the same database, which reads the log and derives the index again. */
  async startAgain(): Promise<Host> {
    await this.stop()
    for (const name of readdirSync(this.folder))
      if (!name.startsWith('minetree.sqlite')) rmSync(join(this.folder, name), { recursive: true })
    return await Host.startIn(this.folder, this.setup)
  }

  private static async startIn(folder: string, setup: HostSetup): Promise<Host> {
    const profiles = process.env.BENCH_PROFILES
    const child = fork(new URL('./host-process.js', import.meta.url), [], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      serialization: 'advanced',
      execArgv:
        profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profiles, setup.plugin)}`],
      env: { ...process.env, INDEX_DIR: folder },
    })
    child.send(setup)
    const [url] = (await once(child, 'message')) as [string]
    return new Host(setup, folder, child, url)
  }

  async submit(beef: Uint8Array, topics: string[]): Promise<void> {
    const { status, body } = await ask(this.url, '/submit', submission(beef, topics))
    if (status !== 200) throw new Error(`a submission was answered ${status}: ${body}`)
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  async ask<Answer>(order: Order): Promise<Answer> {
    this.child.send(order)
    const answer = await Promise.race([once(this.child, 'message'), this.ended])
    if (answer === undefined) throw new Error('a host has ended')
    return answer[0] as Answer
  }

  private async stop(): Promise<void> {
    this.child.disconnect()
    await this.ended
  }

  async end(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

type Run = (place: Place) => AsyncGenerator<string>

/** Where hosts keep their data. One whose database is missing is left out. With MongoDB, the engine is on MariaDB. */
export const DATABASES = {
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

/** The same place, with a separate database for a host. */
async function ownPlace({ knexUrl, ...others }: Place, name: string): Promise<Place> {
  if (knexUrl === undefined) return others
  const connection = await createConnection(knexUrl)
  await connection.query(`create database ${name}`)
  await connection.end()
  return { ...others, knexUrl: new URL(name, knexUrl).href }
}
