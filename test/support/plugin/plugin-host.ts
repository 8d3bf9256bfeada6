import type { Knex } from 'knex'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import {
  attachHostListener,
  createNamesLookupService,
  createNamesLookupServiceOnMongo,
  createOrdinalsLookupService,
  createOrdinalsLookupServiceOnMongo,
  NamesTopicManager,
  OrdinalsTopicManager,
  storesOf,
} from '../../../src/plugin/index.js'
import { ask, posted, submission } from '../server/test-server.js'
import type { EngineVersion } from './engines.js'
import { untilOpen } from './hosted.js'
import OverlayExpress from './overlay-express.js'

/** The databases of a host; without an address of MongoDB, the lookup services are on SQL. */
export interface HostDatabase {
  /** The host's name, after which it calls its database in MongoDB. */
  name: string
  KNEX_URL: string
  MONGO_URL: string
}

export interface HostOptions {
  deployment: Deployment
  engine: EngineVersion
  database: HostDatabase
  /** Whether the host passes on what it hears of proofs and bans; a generated program does not. */
  listens?: boolean
  /** Configures what else the host runs, after the plugin's services. */
  configure?: (host: OverlayExpress) => void
  /** Adds what needs the engine, before the host starts. */
  attach?: (host: OverlayExpress) => void
}

/** A host with the plugin. */
export async function startPluginHost(options: HostOptions): Promise<PluginHost> {
  const { deployment, engine, database, listens = false, configure, attach } = options
  const host = new OverlayExpress(database.name, '11', 'overlay.test', 'secret')
  host.engineVersion = engine
  host.configurePort(0)
  host.configureArcApiKey('key')
  await host.configureKnex(database.KNEX_URL)
  await host.configureMongo(database.MONGO_URL)
  configurePlugin(host, deployment)
  configure?.(host)
  await host.configureEngine()
  const { mongoDb, knex } = host
  if (listens)
    attachHostListener(host.app, storesOf(mongoDb ?? (knex as Knex)), {
      chainTracker: host.chainTracker,
      retryAfter: 5,
    })
  attach?.(host)
  await host.start()
  return new PluginHost(host)
}

/** Wires the plugin as LARS does: topic managers without a store, services by their factories. */
export function configurePlugin(host: OverlayExpress, deployment: Deployment): void {
  host.configureTopicManager('tm_names', new NamesTopicManager({ deployment }))
  host.configureTopicManager('tm_ordinals', new OrdinalsTopicManager())
  if (host.mongoDb === undefined) {
    host.configureLookupServiceWithKnex('ls_names', (knex) => createNamesLookupService(knex, { deployment }))
    host.configureLookupServiceWithKnex('ls_ordinals', createOrdinalsLookupService)
    return
  }
  const engineDatabase = host.knex as Knex
  host.configureLookupServiceWithMongo('ls_names', (db) =>
    createNamesLookupServiceOnMongo(db, { deployment, engineDatabase }),
  )
  host.configureLookupServiceWithMongo('ls_ordinals', (db) =>
    createOrdinalsLookupServiceOnMongo(db, { engineDatabase }),
  )
}

/** What clients and operators do with a host, over HTTP. */
export class PluginHost {
  constructor(readonly host: OverlayExpress) {}

  get writes(): OverlayExpress['writes'] {
    return this.host.writes
  }

  /** Submits to both topics. Returns what they admit, by its answer. */
  async submit(
    beef: Uint8Array,
    topics: string[] = ['tm_names', 'tm_ordinals'],
  ): Promise<Record<string, number[]>> {
    const { status, json } = await ask(this.host.url, '/submit', submission(beef, topics))
    if (status !== 200) throw new Error(JSON.stringify(json))
    const steak = Object.entries(json as Record<string, { outputsToAdmit: number[] }>)
    return Object.fromEntries(steak.map(([topic, { outputsToAdmit }]) => [topic, outputsToAdmit]))
  }

  /** Resolves when the host has stored everything that it has answered. */
  async stored(): Promise<void> {
    this.writes.release()
    await this.host.idle()
  }

  /** The outpoints that a lookup service answers with, as `<txid>_<vout>`. */
  async found(service: string, query: unknown): Promise<string[]> {
    const { outputs } = await untilOpen(async () => {
      const { status, json } = await ask(this.host.url, '/lookup', posted({ service, query }))
      if (status !== 200) throw new Error(JSON.stringify(json))
      return json as { outputs: { beef: number[]; outputIndex: number }[] }
    })
    return outputs.map(({ beef, outputIndex }) => `${readBeef(beef).subject.txid}_${outputIndex}`)
  }

  /** What a request of the operator, or of a broadcaster, is answered with. */
  async post(path: string, body: unknown): Promise<number> {
    const question = posted(body)
    const headers = { ...question.headers, authorization: `Bearer ${this.host.adminToken}` }
    return (await ask(this.host.url, path, { ...question, headers })).status
  }

  async stop(): Promise<void> {
    this.writes.release()
    await this.host.stop()
  }

  /** Ends as a process that is killed. */
  async kill(): Promise<void> {
    await this.host.kill()
  }
}
