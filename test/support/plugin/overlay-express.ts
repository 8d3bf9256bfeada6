import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  Engine,
  KnexStorage,
  KnexStorageMigrations,
  type LookupService,
  type TopicManager,
} from '@bsv/overlay'
import { type ChainTracker, type LookupQuestion, MerklePath, type STEAK, Utils } from '@bsv/sdk'
import express, { type Express, type Request, type RequestHandler } from 'express'
import createKnex, { type Knex } from 'knex'
import { type Db, MongoClient } from 'mongodb'
import { openSqlite } from '../storage/sqlite-database.js'
import { type EngineVersion, HeldWrites, PhasedEngine } from './engines.js'

interface Migration {
  name?: string
  up(knex: Knex): Promise<void>
  down?(knex: Knex): Promise<void>
}

type KnexFactory = (knex: Knex) => { service: LookupService; migrations: Migration[] }

/** Options of the engine beside its parts. */
interface EngineParams {
  chainTracker?: ChainTracker | 'scripts only'
  syncConfiguration?: Record<string, string[] | 'SHIP' | false>
  logTime?: boolean
  logPrefix?: string
  throwOnBroadcastFailure?: boolean
}

/** The database in a folder of its own: `KNEX_URL` of the real one is always MySQL's. */
const SQLITE = 'sqlite:'

/**
 * Stands in for `OverlayExpress` of `@bsv/overlay-express`, which is in no registry that tests may ask: its methods with
 * their arguments, and `start` in its order, over each of the engines that operators run (`engines.ts`). It is no kinder than
 * the real one: it answers a submission before it has stored anything of it, tells nobody of a proof, and evicts without a
 * way back. Left out is what nothing here asks for: discovery (SHIP and SLAP), broadcasting and sync.
 *
 * Some things are otherwise. It trusts proofs unless it is given a chain tracker, since the real one asks the internet about
 * them. It takes `sqlite:<folder>` for a database. An empty address of MongoDB means none. And its port may be 0: where it listens is printed.
 */
export default class OverlayExpress {
  readonly app: Express = express()
  knex: Knex | undefined
  mongoDb: Db | undefined
  engine: Engine | undefined
  /** Which engine `configureEngine` makes; a generated program leaves it to the environment. */
  engineVersion = (process.env.OVERLAY_ENGINE ?? '0.4.6') as EngineVersion
  chainTracker: ChainTracker | 'scripts only' = 'scripts only'
  readonly adminToken: string
  /** For tests: holds back what the engine stores after its answers. */
  readonly writes = new HeldWrites()
  private readonly underWay = new Set<Promise<unknown>>()
  private readonly bans = new Set<string>()
  private arcApiKey = ''
  private needsMongo = true
  private port = 3000
  private network: 'main' | 'test' = 'main'
  private isSyncing = true
  private isEmbedded = false
  private params: EngineParams = {}
  private migrations: Migration[] = []
  private readonly managers: Record<string, TopicManager> = {}
  private readonly services: Record<string, LookupService> = {}
  private server: Server | undefined
  private mongo: MongoClient | undefined
  private closeKnex: (() => Promise<void>) | undefined

  constructor(
    readonly name: string,
    readonly privateKey: string,
    readonly advertisableFQDN: string,
    adminToken: string = randomUUID(),
  ) {
    this.adminToken = adminToken
  }

  configurePort(port: number): void {
    this.port = port
  }

  configureNetwork(network: 'main' | 'test'): void {
    this.network = network
  }

  configureVerboseRequestLogging(_enable: boolean): void {}

  configureArcApiKey(apiKey: string): void {
    this.arcApiKey = apiKey
  }

  configureChainTracker(chainTracker: ChainTracker | 'scripts only'): void {
    this.chainTracker = chainTracker
  }

  configureEnableGASPSync(enable: boolean): void {
    this.isSyncing = enable
  }

  async configureKnex(config: Knex.Config | string): Promise<void> {
    if (typeof config === 'string' && config.startsWith(SQLITE)) {
      this.isEmbedded = true
      const { writer, close } = await openSqlite(config.slice(SQLITE.length))
      this.knex = writer
      this.closeKnex = close
    } else {
      const knex = createKnex(typeof config === 'string' ? { client: 'mysql2', connection: config } : config)
      this.knex = knex
      this.closeKnex = () => knex.destroy()
    }
  }

  async configureMongo(connectionString: string): Promise<void> {
    this.needsMongo = false
    if (connectionString === '') return
    this.mongo = await new MongoClient(connectionString).connect()
    this.mongoDb = this.mongo.db(`${this.name}_lookup_services`)
  }

  configureTopicManager(name: string, manager: TopicManager): void {
    this.managers[name] = manager
  }

  configureLookupService(name: string, service: LookupService): void {
    this.services[name] = service
  }

  configureLookupServiceWithKnex(name: string, factory: KnexFactory): void {
    const { service, migrations } = factory(this.connected())
    this.services[name] = service
    this.migrations.push(...migrations)
  }

  configureLookupServiceWithMongo(name: string, factory: (db: Db) => LookupService): void {
    if (this.mongoDb === undefined) throw new Error('configureMongo comes first')
    this.services[name] = factory(this.mongoDb)
  }

  configureEngineParams(params: EngineParams): void {
    this.params = { ...this.params, ...params }
  }

  async configureEngine(autoConfigureShipSlap = true): Promise<void> {
    const knex = this.connected()
    if (autoConfigureShipSlap && this.needsMongo)
      throw new TypeError('SHIP and SLAP need MongoDB: call configureMongo first')
    const own = this.isEmbedded ? KnexStorageMigrations.default.map(inSqlite) : KnexStorageMigrations.default
    this.migrations = [...own, ...this.migrations]
    const { syncConfiguration = {}, logTime, logPrefix } = this.params
    const off = Object.fromEntries(Object.keys(this.managers).map((name) => [name, false] as const))
    const EngineOfVersion = this.engineVersion === '0.4.6' ? Engine : PhasedEngine
    this.engine = new EngineOfVersion(
      this.managers,
      this.services,
      this.writes.over(new KnexStorage(knex)),
      this.params.chainTracker ?? this.chainTracker,
      `https://${this.advertisableFQDN}`,
      undefined,
      undefined,
      undefined,
      undefined,
      this.isSyncing ? syncConfiguration : off,
      logTime,
      logPrefix,
      this.params.throwOnBroadcastFailure,
    )
    if (this.engine instanceof PhasedEngine) this.engine.version = this.engineVersion
  }

  async start(): Promise<void> {
    const { app, engine } = this
    if (engine === undefined) throw new Error('the engine is not configured')
    app.use(express.json({ limit: '1gb', type: 'application/json' }))
    app.use(express.raw({ limit: '1gb', type: 'application/octet-stream' }))
    app.use(openToAll)
    app.get('/', (_request, response) => {
      response.send(this.name)
    })
    app.get(
      '/listTopicManagers',
      answering(() => engine.listTopicManagers()),
    )
    app.get(
      '/listLookupServiceProviders',
      answering(() => engine.listLookupServiceProviders()),
    )
    app.post('/submit', (request, response) => {
      this.submit(engine, request, (steak) => response.status(200).json(steak)).catch((error: Error) => {
        if (!response.headersSent) response.status(400).json({ status: 'error', message: error.message })
      })
    })
    app.post(
      '/lookup',
      answering(({ body }) => engine.lookup(body as LookupQuestion)),
    )
    if (this.arcApiKey !== '')
      app.post(
        '/arc-ingest',
        answering(({ body }) => ingested(engine, body)),
      )
    this.addAdminRoutes(engine)
    const migrations = this.migrations
    await this.connected().migrate.latest({
      migrationSource: {
        getMigrations: async () => migrations,
        // As the real one: a migration without a name is called after its place.
        getMigrationName: (migration: Migration) =>
          migration.name ?? `Migration at index ${migrations.indexOf(migration)}`,
        getMigration: async (migration: Migration) => migration as Knex.Migration,
      },
    })
    app.use((_request, response) => {
      response
        .status(404)
        .json({ status: 'error', code: 'ERR_ROUTE_NOT_FOUND', description: 'Route not found.' })
    })
    this.server = app.listen(this.port, '127.0.0.1')
    await once(this.server, 'listening')
    process.stdout.write(`${this.name} (${this.network}) is listening on ${this.url}\n`)
  }

  /** Answers as soon as the engine says what it admits, which it stores after that. */
  private async submit(
    engine: Engine,
    { headers, body }: Request,
    answer: (steak: STEAK) => void,
  ): Promise<void> {
    const topics = JSON.parse(String(headers['x-topics'])) as string[]
    let beef = Array.from(body as Uint8Array)
    let offChainValues: number[] | undefined
    if (headers['x-includes-off-chain-values'] === 'true') {
      const reader = new Utils.Reader(beef)
      beef = reader.read(reader.readVarIntNum())
      offChainValues = reader.read()
    }
    const submission = this.writes.during(() =>
      engine.submit({ beef, topics, offChainValues }, answer, 'current-tx', offChainValues),
    )
    this.underWay.add(submission)
    try {
      await submission
    } finally {
      this.underWay.delete(submission)
    }
  }

  private addAdminRoutes(engine: Engine): void {
    const evict = async (txid: string, vout: number): Promise<void> => {
      for (const service of Object.values(engine.lookupServices)) await service.outputEvicted(txid, vout)
    }
    const admin = (path: string, work: (body: Record<string, unknown>) => Promise<void>): void => {
      this.app.post(path, (request, response, next) => {
        if (request.headers.authorization !== `Bearer ${this.adminToken}`) response.sendStatus(401)
        else
          answering(async ({ body }) => {
            await work(body as Record<string, unknown>)
            return { status: 'success' }
          })(request, response, next)
      })
    }
    const banned = async (body: Record<string, unknown>): Promise<string> => {
      if (this.mongoDb === undefined) throw new Error('Ban service not available (MongoDB not configured)')
      return String(body.value)
    }
    admin('/admin/evictOutpoint', ({ txid, outputIndex }) => evict(String(txid), Number(outputIndex)))
    if (!this.engineVersion.startsWith('2.')) return
    admin('/admin/ban', async (body) => {
      const value = await banned(body)
      const [txid = '', vout] = value.split('.')
      this.bans.add(value)
      await evict(txid, Number(vout))
    })
    // The list is all that it changes.
    admin('/admin/unban', async (body) => void this.bans.delete(await banned(body)))
  }

  /** Not of the real one: resolves when the engine has stored all that it has answered. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.underWay)
  }

  /** Where it listens, once it has started. */
  get url(): string {
    return `http://127.0.0.1:${(this.started().address() as AddressInfo).port}`
  }

  /** Not of the real one, which ends with its process. */
  async stop(): Promise<void> {
    await this.idle()
    await this.kill()
  }

  /** Not of the real one: ends without waiting for what its engine has answered. */
  async kill(): Promise<void> {
    const server = this.started()
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
    for (const service of Object.values(this.services) as (LookupService & { close?: () => Promise<void> })[])
      await service.close?.()
    await this.closeKnex?.()
    await this.mongo?.close()
  }

  private started(): Server {
    if (this.server === undefined) throw new Error('it is not started')
    return this.server
  }

  private connected(): Knex {
    if (this.knex === undefined) throw new Error('configureKnex comes first')
    return this.knex
  }
}

const openToAll: RequestHandler = (request, response, next) => {
  for (const what of ['Origin', 'Headers', 'Methods']) response.header(`Access-Control-Allow-${what}`, '*')
  response.header('Access-Control-Expose-Headers', '*')
  if (request.method === 'OPTIONS') response.sendStatus(200)
  else next()
}

/** Whatever goes wrong is 400, with its message. */
function answering(work: (request: Request) => Promise<unknown>): RequestHandler {
  return (request, response) => {
    work(request).then(
      (answer) => response.status(200).json(answer),
      (error: Error) => response.status(400).json({ status: 'error', message: error.message }),
    )
  }
}

async function ingested(engine: Engine, body: unknown): Promise<object> {
  const { txid, merklePath } = body as { txid: string; merklePath: string }
  // The engine's types are those of its own copy of the SDK.
  const path = MerklePath.fromHex(merklePath) as unknown as Parameters<Engine['handleNewMerkleProof']>[1]
  await engine.handleNewMerkleProof(txid, path)
  return { status: 'success', message: 'Transaction status updated' }
}

/** A migration of the engine, which are for MySQL, in SQLite. */
function inSqlite({ name, up }: Migration): Migration {
  const raw = (knex: Knex) => (sql: string) => knex.raw(sql.replace('INSERT IGNORE', 'INSERT OR IGNORE'))
  const translated = (knex: Knex): Knex =>
    new Proxy(knex, {
      get: (target, property) => {
        if (property === 'raw') return raw(target)
        // By its name they tell which database it is.
        return property === 'client' ? { config: { client: 'sqlite3' } } : Reflect.get(target, property)
      },
    })
  return { ...(name !== undefined && { name }), up: (knex) => up(translated(knex)), async down() {} }
}
