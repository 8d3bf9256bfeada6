import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Sql } from '../backend/src/facts/connection.js'
import type { WriterPlace } from '../src/server/store/start-writer.js'
import { MISSING_FOR_MARIADB } from '../test/support/services/mariadb.js'
import { MISSING_FOR_MONGO } from '../test/support/services/mongo.js'
import { withMariadb, withMongo } from './databases.js'
import { networkIn, withNetworkFolder } from './facts-network.js'
import type { Kind, Order, Setup, Written } from './shared-gateway.js'
import { inFolder, median, type Spent, sizesOf, timed } from './support.js'

/** How many clients write at once, to one gateway or to all together. */
const CLIENTS = 32
const GATEWAYS = 3
const ROUNDS = 4
/** The size of a set: a mint below this many nodes for each of 26 letters, and as many inscriptions. */
const PER_LETTER = 8
const SET = 26 * PER_LETTER
/** Each round uses two sets; this is the last one. */
const LAG_SET = 2 * ROUNDS
/** How many transactions of a set are written one after another. */
const ALONE = 40
const LAGS = 40
const BARE = 100
const BARE_BYTES = 20_000

/** A log in a folder, or one that gateways share. */
interface Log {
  name: string
  about: string
  /** The database of a shared log; absent for one in the folder of a gateway. */
  shared?: WriterPlace['shared']
  /** Inserts bytes, durably. */
  insert(bytes: Uint8Array): unknown
  /** The size of the database on its disk, in bytes; undefined if it has none. */
  size?: () => Promise<number>
  close(): unknown
}

const PARTS = { writes, 'from-zero': fromZero }

/**
 * Gateways that share a log, each in its own process: what they store a second, alone and together, compared with bare inserts
 * into the same database; how soon one finds what another has written; how long an empty one takes to start.
 */
export async function* shared(wanted: readonly string[] = []): AsyncGenerator<string> {
  yield `load average before: ${loadavg()[0]?.toFixed(1)}`
  const named = Object.entries(PARTS).filter(([part]) => wanted.includes(part))
  const logs = Object.keys(LOGS).filter((log) => wanted.includes(log))
  for (const [, run] of named.length > 0 ? named : Object.entries(PARTS))
    yield* run(logs.length > 0 ? logs : Object.keys(LOGS))
}

async function* writes(logs: readonly string[]): AsyncGenerator<string> {
  yield* onEach(logs, async function* (log, folder) {
    const inserts: number[] = []
    for (let count = 0; count < BARE; count++)
      inserts.push(await timed(() => log.insert(Buffer.alloc(BARE_BYTES, count))))
    const bare = 1000 / median(inserts)
    yield `${log.name} (${log.about}): ${bare.toFixed(0)} bare inserts of ${BARE_BYTES} bytes a second, one after another`
    const gateways: Gateway[] = []
    try {
      while (gateways.length < (log.shared === undefined ? 1 : GATEWAYS))
        gateways.push(await Gateway.start(log, { folder, isFirst: gateways.length === 0 }))
      yield* ratesOf(gateways, bare)
      yield* lagOf(gateways)
    } finally {
      for (const gateway of gateways) await gateway.end()
    }
  })
}

async function* ratesOf(gateways: Gateway[], bare: number): AsyncGenerator<string> {
  const [first] = gateways as [Gateway]
  for (const kind of ['mint', 'inscription'] as const) {
    const [alone, many, together]: Written[][][] = [[], [], []]
    for (let round = 0; round < ROUNDS; round++) {
      const [set, other] = [2 * round, 2 * round + 1]
      alone?.push([await first.write({ kind, set, write: numbers(0, ALONE), clients: 1 })])
      many?.push([await first.write({ kind, set, write: numbers(ALONE, SET), clients: CLIENTS })])
      if (gateways.length === 1) continue
      const clients = Math.ceil(CLIENTS / gateways.length)
      const share = (at: number): number[] =>
        numbers(0, SET).filter((index) => index % gateways.length === at)
      const writing = gateways.map((each, at) => each.write({ kind, set: other, write: share(at), clients }))
      together?.push(await Promise.all(writing))
    }
    yield `  ${kind}s, one after another: ${told(alone ?? [], bare)}`
    yield `  ${kind}s, ${CLIENTS} at once: ${told(many ?? [], bare)}`
    if (gateways.length > 1)
      yield `  ${kind}s, ${CLIENTS} at once to ${gateways.length} gateways: ${told(together ?? [], bare)}`
  }
}

/** The result of rounds in which some gateways wrote at once. */
function told(rounds: Written[][], bare: number): string {
  const rate = median(
    rounds.map((round) => (1000 * countOf(round)) / Math.max(...round.map(({ wall }) => wall))),
  )
  const cpu = median(rounds.map((round) => sum(round.map((each) => each.cpu)) / countOf(round)))
  const latencies = rounds.flat().flatMap((each) => each.latencies)
  const [middle, slow] = [median(latencies), quantile(latencies, 0.99)]
  return `${rate.toFixed(0)} a second (${(rate / bare).toFixed(2)} of bare inserts), ${cpu.toFixed(1)} ms of CPU each; answered in ${middle.toFixed(0)} ms (median), ${slow.toFixed(0)} (99 %)`
}

function countOf(round: Written[]): number {
  return sum(round.map(({ latencies }) => latencies.length))
}

/** How long after the answer to a write another gateway finds it. */
async function* lagOf([one, other]: Gateway[]): AsyncGenerator<string> {
  if (one === undefined || other === undefined) return
  const place = { kind: 'inscription', set: LAG_SET } as const
  const lags: number[] = []
  for (const index of numbers(0, LAGS)) {
    const seen = other.see({ ...place, see: index })
    const { at } = await one.write({ ...place, write: [index], clients: 1 })
    lags.push((await seen) - at)
  }
  yield `  from an answer until another gateway finds it: ${median(lags).toFixed(0)} ms (median), ${Math.max(...lags).toFixed(0)} (worst of ${LAGS})`
}

/** The start of an empty gateway, compared with one that has the log and derives its index again. */
async function* fromZero(logs: readonly string[]): AsyncGenerator<string> {
  yield* withNetworkFolder((network) => fromZeroIn(network, logs))
}

async function* fromZeroIn(network: string, logs: readonly string[]): AsyncGenerator<string> {
  networkIn(network)
  yield* onEach(logs, async function* (log, folder) {
    const first = await Gateway.start(log, { folder, network })
    const filled = await first.ask<Spent & { count: number }>({ fill: network })
    await first.end()
    const { count } = filled
    const inDatabase = await log.size?.()
    const sizes = Object.entries(sizesOf(first.folder)).map(
      ([file, size]) => `${file} ${(size / count / 1000).toFixed(2)} KB`,
    )
    if (inDatabase !== undefined) sizes.push(`database ${(inDatabase / count / 1000).toFixed(2)} KB`)
    yield `${log.name} (${log.about}): ${count} transactions, stored in ${(filled.wall / 1000).toFixed(0)} s; for each ${sizes.join(', ')}`
    for (const file of readdirSync(first.folder))
      if (file.startsWith('index-')) rmSync(join(first.folder, file))
    const derived = await Gateway.start(log, { folder, network, at: first.folder })
    await derived.end()
    yield `  the index derived again of a log that is there: ${perTransaction(derived, count)}`
    if (log.shared === undefined) return
    const empty = await Gateway.start(log, { folder, network })
    await empty.end()
    yield `  started with nothing: ${perTransaction(empty, count)}, ${(empty.started.wall / derived.started.wall).toFixed(2)} times as long`
  })
}

function perTransaction({ started: { wall, cpu } }: Gateway, count: number): string {
  return `${(wall / 1000).toFixed(1)} s, ${(wall / count).toFixed(3)} ms a transaction (${(cpu / count).toFixed(3)} of CPU)`
}

/** A process with the writer and the index of a gateway. */
class Gateway {
  private constructor(
    readonly folder: string,
    private readonly child: ChildProcess,
    /** The time of its start, once its code was loaded. */
    readonly started: Spent,
  ) {}

  /** @param options.at Its folder; by default, a new one. */
  static async start(
    { shared }: Log,
    { folder: parent, at, ...setup }: { folder: string; at?: string; isFirst?: boolean; network?: string },
  ): Promise<Gateway> {
    const folder = at ?? mkdtempSync(join(parent, 'gateway-'))
    const sets =
      setup.network === undefined ? { perLetter: PER_LETTER, sets: LAG_SET + 1 } : { perLetter: 0, sets: 0 }
    const setting: Setup = { folder, ...sets, ...setup, ...(shared && { shared }) }
    const child = fork(new URL('./shared-gateway.js', import.meta.url), [JSON.stringify(setting)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const gateway = new Gateway(folder, child, await answerOf<Spent>(child))
    return gateway
  }

  async ask<Answer>(order: Order): Promise<Answer> {
    const answer = answerOf<Answer>(this.child)
    this.child.send(order)
    return await answer
  }

  write(order: { kind: Kind; set: number; write: number[]; clients: number }): Promise<Written> {
    return this.ask(order)
  }

  see(order: { kind: Kind; set: number; see: number }): Promise<number> {
    return this.ask(order)
  }

  async end(): Promise<void> {
    if (!this.child.connected) return
    const ended = once(this.child, 'exit')
    this.child.disconnect()
    await ended
  }
}

async function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const onExit = (code: number): void => reject(new Error(`a gateway of the bench ended with ${code}`))
    child.once('exit', onExit)
    child.once('message', (answer) => {
      child.off('exit', onExit)
      resolve(answer as Answer)
    })
  })
}

/** Runs with a log and a folder on the disk for gateways. */
type RunWith = (log: Log, folder: string) => AsyncGenerator<string>

/** Runs with each of these kinds of logs. */
async function* onEach(logs: readonly string[], run: RunWith): AsyncGenerator<string> {
  const runWith = async function* (log: Log): AsyncGenerator<string> {
    try {
      yield* inFolder((folder) => run(log, folder))
    } finally {
      await log.close()
    }
  }
  for (const name of logs) yield* LOGS[name as keyof typeof LOGS](runWith)
}

/** The kinds of logs. One whose database is missing is left out; `BENCH_MONGO` is the URL of a server to use for MongoDB. */
const LOGS = {
  async *sqlite(run: (log: Log) => AsyncGenerator<string>): AsyncGenerator<string> {
    yield* inFolder((folder) => run(bareSqlite(folder)))
  },
  async *mariadb(run: (log: Log) => AsyncGenerator<string>): AsyncGenerator<string> {
    if (MISSING_FOR_MARIADB.length > 0)
      yield `MariaDB is left out: there is no ${MISSING_FOR_MARIADB.join(', no ')} here`
    else
      yield* withMariadb({ isDurable: true }, async function* ({ about, url }) {
        yield* run(await bareMysql(about, url))
      })
  },
  async *mongodb(run: (log: Log) => AsyncGenerator<string>): AsyncGenerator<string> {
    const given = process.env.BENCH_MONGO
    if (given !== undefined) yield* run(await bareMongo('the server of BENCH_MONGO', given))
    else if (MISSING_FOR_MONGO.length > 0)
      yield `MongoDB is left out: there is no ${MISSING_FOR_MONGO.join(', no ')} here`
    else
      yield* withMongo(async function* ({ about, url }) {
        yield* run(await bareMongo(about, url))
      })
  },
}

function bareSqlite(folder: string): Log {
  const sql = new Sql(join(folder, 'bare.db'))
  sql.exec('pragma journal_mode = wal; pragma synchronous = full; create table bare (bytes blob)')
  return {
    ...{ name: 'SQLite', about: 'in the folder of the gateway' },
    insert: (bytes) => sql.run('insert into bare values (?)', bytes),
    close: () => sql.close(),
  }
}

async function bareMysql(about: string, url: string): Promise<Log> {
  const pool = createPool({ uri: url, connectionLimit: 1 })
  await pool.query('create table bare (id int auto_increment primary key, bytes mediumblob)')
  return {
    ...{ name: 'MariaDB', about: `${about}, innodb_flush_log_at_trx_commit = 1` },
    shared: { knexUrl: url },
    insert: (bytes) => pool.query('insert into bare (bytes) values (?)', [Buffer.from(bytes)]),
    size: async () => {
      await pool.query('analyze table minetree_log, minetree_chunk')
      const [[found]] = await pool.query<RowDataPacket[]>(SIZE)
      return Number(found?.bytes)
    },
    close: () => pool.end(),
  }
}

const SIZE = `select sum(data_length + index_length) as bytes from information_schema.tables where table_schema = database()`

async function bareMongo(about: string, url: string): Promise<Log> {
  const client = await new MongoClient(url).connect()
  const bare = client.db().collection('bare', { writeConcern: { w: 'majority', journal: true } })
  return {
    ...{ name: 'MongoDB', about },
    shared: { mongoUrl: url },
    insert: (bytes) => bare.insertOne({ bytes: Buffer.from(bytes) }),
    close: () => client.close(),
  }
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

function sum(values: number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

function quantile(values: number[], share: number): number {
  return values.sort((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN
}
