import type { LookupFormula } from '@bsv/overlay'
import { BlockedError } from '../../backend/src/graph/blocklist.js'
import { attachGateway } from '../../src/gateway/index.js'
import { attachFollower, type HostFollower, storesOf } from '../../src/plugin/index.js'
import { type HostDatabase, type PluginHost, startPluginHost } from '../support/plugin/plugin-host.js'
import type { HeaderChain } from '../support/server/header-chain.js'
import { HostTracker } from '../support/server/host-tracker.js'
import { SILENT } from '../support/server/test-server.js'
import type { History } from './history.js'
import { Host } from './host.js'

interface EngineHostOptions {
  history: History
  headers: HeaderChain
  database: HostDatabase
  /** The settings of a follower, if the host has one. */
  follow?: Record<string, string | undefined>
}

/** The plugin in a host of the engine 0.4.6, with the routes of the gateway, over a database of its own. */
export class EngineHost extends Host {
  private constructor(
    private readonly parts: EngineHostOptions,
    private running: Running,
  ) {
    super()
  }

  static async start(of: EngineHostOptions): Promise<EngineHost> {
    return new EngineHost(of, await startOf(of))
  }

  get url(): string {
    return this.running.host.host.url
  }

  override async follow(): Promise<void> {}

  /** From now on the engine answers, and stores nothing of it until it is told to. */
  hold(): void {
    this.running.host.writes.hold()
  }

  override async untilIdle(): Promise<void> {
    await this.running.host.stored()
  }

  /** Ends it with what it has answered and not stored. */
  override async kill(): Promise<void> {
    const { host, follower } = this.running
    await host.kill()
    await follower?.stop()
    this.running = await startOf(this.parts)
  }

  override async restart(): Promise<void> {
    await this.close()
    this.running = await startOf(this.parts)
  }

  async close(): Promise<void> {
    await this.running.follower?.stop()
    await this.running.host.stop()
  }

  /** The outpoints that a lookup service finds, of which the engine answers with those that it has itself; or a status. */
  override async lookup(service: string, query: object): Promise<string[] | number> {
    const found = this.running.host.host.engine?.lookupServices[service]?.lookup({ service, query })
    try {
      return ((await found) as LookupFormula).map(({ txid, outputIndex }) => `${txid}_${outputIndex}`)
    } catch (error) {
      if (error instanceof BlockedError) return BLOCKED
      throw error
    }
  }
}

const BLOCKED = 451

interface Running {
  host: PluginHost
  follower: HostFollower | undefined
}

async function startOf({ history, headers, database, follow }: EngineHostOptions): Promise<Running> {
  const { deployment } = history.chain
  const chainTracker = new HostTracker(headers)
  let follower: HostFollower | undefined
  const host = await startPluginHost({
    ...{ deployment, engine: '0.4.6' as const, database, listens: true },
    configure: (host) => host.configureChainTracker(chainTracker),
    attach({ app, engine, mongoDb, knex }) {
      const own = mongoDb ?? knex
      if (follow !== undefined) {
        const tracker = 'CHAIN_TRACKER' in follow ? {} : { chainTracker }
        follower = attachFollower(own, { settings: follow, engine, logger: SILENT, ...tracker })
      }
      attachGateway(app, storesOf(own), { deployment, logger: SILENT, ...(follower && { follower }) })
    },
  })
  return { host, follower }
}
