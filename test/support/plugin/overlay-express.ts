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
import type { ChainTracker, LookupQuestion, STEAK } from '@bsv/sdk'
import express, { type Express, type Request, type RequestHandler } from 'express'
import createKnex, { type Knex } from 'knex'
import { type Db, MongoClient } from 'mongodb'
import { connectSqlite } from '../../../src/server/store/open-database.js'
import { MemoryStorage } from '../storage/memory-storage.js'

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
 * their arguments, and `start` in its order, over the real engine. Left out is what nothing here asks for: discovery (SHIP
 * and SLAP), broadcasting, sync and the operator's routes.
 *
 * Some things are otherwise. It trusts proofs, since the real one asks the internet about them. It takes
 * `sqlite:<folder>` for a database, where the engine's storage is in memory, since its migrations run on MySQL alone. Its
 * database in MongoDB may be none. And its port may be 0: where it listens is printed.
 */
export default class OverlayExpress {
  readonly app: Express = express()
  knex: Knex | undefined
  mongoDb: Db | undefined
  engine: Engine | undefined
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
    readonly adminToken?: string,
  ) {}

  configurePort(port: number): void {
    this.port = port
  }

  configureNetwork(network: 'main' | 'test'): void {
    this.network = network
  }

  configureVerboseRequestLogging(_enable: boolean): void {}

  configureArcApiKey(_apiKey: string): void {}

  configureEnableGASPSync(enable: boolean): void {
    this.isSyncing = enable
  }

  async configureKnex(config: Knex.Config | string): Promise<void> {
    if (typeof config === 'string' && config.startsWith(SQLITE)) {
      this.isEmbedded = true
      const { writer, close } = await connectSqlite(config.slice(SQLITE.length))
      this.knex = writer
      this.closeKnex = close
    } else {
      const knex = createKnex(typeof config === 'string' ? { client: 'mysql2', connection: config } : config)
      this.knex = knex
      this.closeKnex = () => knex.destroy()
    }
  }

  async configureMongo(connectionString: string): Promise<void> {
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

  async configureEngine(_autoConfigureShipSlap = true): Promise<void> {
    const knex = this.connected()
    if (!this.isEmbedded) this.migrations = [...KnexStorageMigrations.default, ...this.migrations]
    const { syncConfiguration = {}, chainTracker = 'scripts only', logTime, logPrefix } = this.params
    const off = Object.fromEntries(Object.keys(this.managers).map((name) => [name, false] as const))
    this.engine = new Engine(
      this.managers,
      this.services,
      this.isEmbedded ? new MemoryStorage() : new KnexStorage(knex),
      chainTracker,
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
    app.post(
      '/submit',
      answering((request) => submitted(engine, request)),
    )
    app.post(
      '/lookup',
      answering(({ body }) => engine.lookup(body as LookupQuestion)),
    )
    const migrations = this.migrations
    await this.connected().migrate.latest({
      migrationSource: {
        getMigrations: async () => migrations,
        getMigrationName: ({ name = '' }: Migration) => name,
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

  /** Where it listens, once it has started. */
  get url(): string {
    return `http://127.0.0.1:${(this.started().address() as AddressInfo).port}`
  }

  /** Not of the real one, which ends with its process. */
  async stop(): Promise<void> {
    const server = this.started()
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
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

async function submitted(engine: Engine, request: Request): Promise<STEAK> {
  const topics = JSON.parse(String(request.headers['x-topics'])) as string[]
  return await engine.submit(
    { beef: Array.from(request.body as Uint8Array), topics },
    undefined,
    'current-tx',
  )
}
