import { once } from 'node:events'
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  AdmittanceInstructions,
  LookupFormula,
  LookupService,
  OutputAdmittedByTopic,
  TopicManager,
} from '@bsv/overlay'
import type { Knex } from 'knex'
import type { Db } from 'mongodb'
import type { TransactionRecord } from '../backend/src/graph/records.js'
import type { Deployment } from '../backend/src/protocol/mint.js'
import { storesOf } from '../src/plugin/index.js'
import type { EngineVersion } from '../test/support/plugin/engines.js'
import OverlayExpress from '../test/support/plugin/overlay-express.js'
import { configurePlugin } from '../test/support/plugin/plugin-host.js'
import { batchesIn } from './facts-network.js'
import { OTHER } from './host-material.js'

/** A host with the plugin, or with one that does nothing instead. */
export interface HostSetup {
  plugin: 'ours' | 'nothing'
  engine: EngineVersion
  /** By default, SQLite in a folder. */
  knexUrl?: string
  /** By default, everything is in SQL. */
  mongoUrl?: string
  deployment: Deployment
  /** Outputs that the topics admit, by the length of a submission: those of mints are longer. */
  admitted: { longer: number; mints: Record<string, number[]>; others: Record<string, number[]> }
}

export type Order =
  /**
   * Waits until queries find something, and the host is idle. Answered with the processor time of all threads so far, in milliseconds.
   */
  | { cpuAfter: { service: string; query: object }[] }
  /** Waits until a query finds something. */
  | { until: { service: string; query: object } }
  /** Submits, and is answered with the time from the engine's answer until the query finds something, in milliseconds. */
  | { beef: Uint8Array; topics: string[]; find: { service: string; query: object } }
  /** Records a network. */
  | { fill: string }
  | { delays: 'begin' | 'end' }
  | { record: TransactionRecord[] }

/** How long a process is left alone before its processor time is read, in milliseconds. */
const QUIET = 300
/** How often queries are repeated, in milliseconds. */
const LOOK = 1

class ConstantManager implements TopicManager {
  constructor(
    private readonly topic: string,
    private readonly admitted: HostSetup['admitted'],
  ) {}

  async identifyAdmissibleOutputs(beef: number[], coinsToRetain: number[]): Promise<AdmittanceInstructions> {
    const { longer, mints, others } = this.admitted
    const outputsToAdmit = (beef.length > longer ? mints : others)[this.topic] ?? []
    return { outputsToAdmit, coinsToRetain }
  }

  getDocumentation = async () => ''
  getMetaData = async () => ({ name: '', shortDescription: '' })
}

/** Stores each output of its topic, and finds outputs by outpoint. */
abstract class PlainService implements LookupService {
  readonly admissionMode = 'locking-script'
  readonly spendNotificationMode = 'none'
  constructor(private readonly topic: string) {}

  async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    if (payload.topic !== this.topic || payload.mode !== 'locking-script') return
    await this.store(`${payload.txid}_${payload.outputIndex}`)
  }

  async lookup({ query }: { query: unknown }): Promise<LookupFormula> {
    const { outpoint } = query as { outpoint: string }
    if (!(await this.has(outpoint))) return []
    const [txid = '', vout] = outpoint.split('_')
    return [{ txid, outputIndex: Number(vout) }]
  }

  abstract store(outpoint: string): Promise<void>
  abstract has(outpoint: string): Promise<boolean>
  outputEvicted = async () => {}
  getDocumentation = async () => ''
  getMetaData = async () => ({ name: '', shortDescription: '' })
}

class KnexService extends PlainService {
  constructor(
    topic: string,
    private readonly knex: Knex,
  ) {
    super(topic)
  }

  async store(outpoint: string): Promise<void> {
    await this.knex('admitted').insert({ outpoint, at: Date.now() })
  }

  async has(outpoint: string): Promise<boolean> {
    return (await this.knex('admitted').where({ outpoint }).first()) !== undefined
  }
}

class MongoService extends PlainService {
  constructor(
    topic: string,
    private readonly db: Db,
  ) {
    super(topic)
  }

  async store(outpoint: string): Promise<void> {
    await this.db.collection('admitted').insertOne({ outpoint, at: Date.now() })
  }

  async has(outpoint: string): Promise<boolean> {
    return (await this.db.collection('admitted').findOne({ outpoint })) !== null
  }
}

const [setup] = (await once(process, 'message')) as [HostSetup]
const host = new OverlayExpress(setup.plugin, '11', 'overlay.test', 'secret')
host.engineVersion = setup.engine
host.configurePort(0)
await host.configureKnex(setup.knexUrl ?? '')
await host.configureMongo(setup.mongoUrl ?? '')
const { mongoDb } = host
const knex = host.knex as Knex
if (setup.plugin === 'ours') configurePlugin(host, setup.deployment)
else await configureNothing()
host.configureTopicManager(OTHER, new ConstantManager(OTHER, setup.admitted))
await host.configureEngine(false)
await host.start()

let delays: IntervalHistogram | undefined
process.on('message', async (order: Order) => process.send?.(await carryOut(order)))
process.once('disconnect', async () => {
  await host.stop()
  process.exit()
})
process.send?.(host.url)

async function configureNothing(): Promise<void> {
  if (mongoDb === undefined && !(await knex.schema.hasTable('admitted')))
    await knex.schema.createTable('admitted', (table) => {
      table.increments()
      table.string('outpoint', 80).index()
      table.bigInteger('at')
    })
  for (const [topic, name] of [
    ['tm_names', 'ls_names'],
    ['tm_ordinals', 'ls_ordinals'],
  ] as const) {
    host.configureTopicManager(topic, new ConstantManager(topic, setup.admitted))
    const service = mongoDb === undefined ? new KnexService(topic, knex) : new MongoService(topic, mongoDb)
    host.configureLookupService(name, service)
  }
}

async function carryOut(order: Order): Promise<unknown> {
  if ('until' in order) {
    await untilFound(order.until)
    return true
  }
  if ('cpuAfter' in order) {
    for (const each of order.cpuAfter) await untilFound(each)
    await host.idle()
    await sleep(QUIET)
    return cpuTime()
  }
  if ('beef' in order) return await lagOf(order)
  if ('delays' in order) {
    if (order.delays === 'begin') {
      delays = monitorEventLoopDelay({ resolution: 1 })
      delays.enable()
      return true
    }
    return { max: (delays?.max ?? 0) / 1e6, p99: (delays?.percentile(99) ?? 0) / 1e6 }
  }
  const { graph } = storesOf(mongoDb ?? knex)
  await graph.opened?.()
  for (const transactions of 'fill' in order ? batchesIn(order.fill) : [order.record])
    await graph.record(transactions)
  return true
}

async function lagOf({ beef, topics, find }: Extract<Order, { beef: Uint8Array }>): Promise<number> {
  let submission: Promise<unknown> | undefined
  const since = await new Promise<number>((resolve, reject) => {
    submission = host.engine?.submit({ beef: Array.from(beef), topics }, () => resolve(now()))
    submission?.catch(reject)
  })
  await untilFound(find)
  const lag = now() - since
  await submission
  return lag
}

async function untilFound({ service, query }: { service: string; query: object }): Promise<void> {
  const asked = host.engine?.lookupServices[service]
  for (;;) {
    // An index that is being derived answers nothing.
    const found = await asked?.lookup({ service, query }).catch(() => [])
    if (Array.isArray(found) && found.length > 0) return
    await sleep(LOOK)
  }
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
