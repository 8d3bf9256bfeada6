import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Engine, LookupService, TopicManager } from '@bsv/overlay'
import express, { type Express, type Request, type Response } from 'express'
import createKnex, { type Knex } from 'knex'
import { MongoClient } from 'mongodb'
import createNamesLookupService from '../../../backend/src/lookup-services/NamesLookupServiceFactory.js'
import createNamesLookupServiceOnMongo from '../../../backend/src/lookup-services/NamesLookupServiceMongoFactory.js'
import createOrdinalsLookupService from '../../../backend/src/lookup-services/OrdinalsLookupServiceFactory.js'
import createOrdinalsLookupServiceOnMongo from '../../../backend/src/lookup-services/OrdinalsLookupServiceMongoFactory.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { attachGateway } from '../../../src/gateway/attach-gateway.js'
import { attachSync } from '../../../src/gateway/attach-sync.js'
import { attachFollower, storesOf } from '../../../src/plugin/index.js'
import { PhasedEngine, type SubmitMode } from './engines.js'
import type { GaspHostSettings } from './gasp-host.js'

/** A folder with another release of the engine, which is in no registry that tests may ask: to try it by hand. */
const { OVERLAY_ENGINE } = process.env

/** An engine from 0.6 on, around the GASP of 0.4.6, which is the same but that it says that it asks for a sync. */
class ModalEngine extends PhasedEngine {
  constructor(...[managers, ...rest]: ConstructorParameters<typeof Engine>) {
    super(managers, ...rest)
    for (const [topic, manager] of Object.entries(managers)) {
      const asked = (manager.identifyAdmissibleOutputs as (...args: unknown[]) => unknown).bind(manager)
      this.managers[topic] = Object.assign(Object.create(manager) as TopicManager, {
        identifyAdmissibleOutputs: (
          beef: number[],
          previousCoins: number[],
          offChainValues?: number[],
          mode: SubmitMode = 'historical-tx',
        ) => asked(beef, previousCoins, offChainValues, mode),
      })
    }
  }
}

/** The process that `startGaspHost` starts. */
async function run(): Promise<void> {
  const settings = readSettings()
  const overlay = (await import(OVERLAY_ENGINE ?? '@bsv/overlay')) as typeof import('@bsv/overlay')
  const EngineClass =
    OVERLAY_ENGINE !== undefined || settings.engine === '0.4.6' ? overlay.Engine : ModalEngine
  const { knexUrl, logUrl, deployment, peers, follow } = settings
  const knex = createKnex({ client: 'mysql2', connection: knexUrl })
  const { names, ordinals, database } = await openPlugin(knex, { logUrl, deployment })
  await migrate(knex, overlay.KnexStorageMigrations.default as Migration[])
  const engine = new EngineClass(
    { tm_names: new NamesTopicManager({ deployment }), tm_ordinals: new OrdinalsTopicManager() },
    { ls_names: names as LookupService, ls_ordinals: ordinals as LookupService },
    new overlay.KnexStorage(knex),
    // The paths of a fake chain lead to no block that a tracker knows.
    'scripts only',
    'https://overlay.test',
    undefined,
    undefined,
    undefined,
    undefined,
    { tm_names: peers, tm_ordinals: peers },
  )
  const app = express()
  const stores = storesOf(database)
  const follower = follow && attachFollower(database, { settings: follow, engine })
  attachGateway(app, stores, { deployment, ...(follower && { follower }) })
  app.get('/follower', (_request, response) => void response.json(follower?.status()))
  if (settings.attached) attachSync(app, stores)
  engineRoutes(app, engine)
  const server: Server = app.listen(0, '127.0.0.1', () => {
    process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
  })
}

/** The plugin's services: over the engine's connection, or one of their own. */
async function openPlugin(
  knex: Knex,
  { logUrl, deployment }: Pick<GaspHostSettings, 'logUrl' | 'deployment'>,
) {
  if (logUrl?.startsWith('mongodb:')) {
    const db = (await new MongoClient(logUrl).connect()).db()
    return {
      names: createNamesLookupServiceOnMongo(db, { deployment, engineDatabase: knex }),
      ordinals: createOrdinalsLookupServiceOnMongo(db, { engineDatabase: knex }),
      database: db,
    }
  }
  const own = logUrl === undefined ? knex : createKnex({ client: 'mysql2', connection: logUrl })
  return {
    names: createNamesLookupService(own, { deployment }).service,
    ordinals: createOrdinalsLookupService(own).service,
    database: own,
  }
}

interface Migration {
  name?: string
}

async function migrate(knex: Knex, migrations: Migration[]): Promise<void> {
  await knex.migrate.latest({
    migrationSource: {
      getMigrations: async () => migrations,
      getMigrationName: ({ name = '' }: Migration) => name,
      getMigration: async (migration: Migration) => migration as Knex.Migration,
    },
  })
}

function readSettings(): GaspHostSettings {
  const read = JSON.parse(process.env.GASP_HOST ?? '{}') as GaspHostSettings
  const marker = Uint8Array.from(Buffer.from(String(read.deployment.marker), 'hex'))
  return { ...read, deployment: { ...read.deployment, marker } }
}

/** The routes of OverlayExpress that matter here, with its bodies and its answers. */
function engineRoutes(app: Express, engine: Engine): void {
  app.use(express.json({ limit: '1gb', type: 'application/json' }))
  app.use(express.raw({ limit: '1gb', type: 'application/octet-stream' }))
  const submitted = (request: Request) => ({
    beef: Array.from(request.body as Uint8Array),
    topics: JSON.parse(String(request.headers['x-topics'])) as string[],
  })
  // Answers once everything is stored. The real one answers before, which has tests of its own.
  app.post(
    '/submit',
    answering((request) => engine.submit(submitted(request))),
  )
  app.post(
    '/lookup',
    answering(({ body }) => engine.lookup(body)),
  )
  app.post(
    '/requestSyncResponse',
    answering((request) =>
      engine.provideForeignSyncResponse(request.body, String(request.headers['x-bsv-topic'])),
    ),
  )
  app.post(
    '/requestForeignGASPNode',
    answering(({ body: { graphID, txid, outputIndex } }) =>
      engine.provideForeignGASPNode(graphID, txid, outputIndex),
    ),
  )
  app.post(
    '/admin/startGASPSync',
    answering(async () => {
      await engine.startGASPSync()
      return { status: 'success' }
    }),
  )
}

/** Whatever goes wrong is 400, with its message. */
function answering(work: (request: Request) => Promise<unknown>) {
  return (request: Request, response: Response): void => {
    work(request).then(
      (answer) => response.status(200).json(answer),
      (error: Error) => response.status(400).json({ status: 'error', message: error.message }),
    )
  }
}

await run()
