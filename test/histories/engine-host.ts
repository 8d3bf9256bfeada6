import type { LookupFormula } from '@bsv/overlay'
import { BlockedError } from '../../backend/src/graph/blocklist.js'
import { attachGateway } from '../../src/gateway/index.js'
import { storesOf } from '../../src/plugin/index.js'
import type OverlayExpress from '../support/plugin/overlay-express.js'
import { type HostDatabase, type PluginHost, startPluginHost } from '../support/plugin/plugin-host.js'
import type { HeaderChain } from '../support/server/header-chain.js'
import { SILENT } from '../support/server/test-server.js'
import type { History } from './history.js'
import { Host } from './host.js'
import type { ModelOptions } from './model.js'

/** The plugin in a host of the engine 0.4.6, with the routes of the gateway, over a database of its own. */
export class EngineHost extends Host {
  private constructor(
    private readonly parts: { history: History; headers: HeaderChain; database: HostDatabase },
    private running: PluginHost,
  ) {
    super()
  }

  static async start(of: {
    history: History
    headers: HeaderChain
    database: HostDatabase
  }): Promise<EngineHost> {
    return new EngineHost(of, await startOf(of))
  }

  get url(): string {
    return this.running.host.url
  }

  override get model(): ModelOptions {
    return { proofs: 'verdicts', order: 'places' }
  }

  override async follow(): Promise<void> {}

  /** From now on the engine answers, and stores nothing of it until it is told to. */
  hold(): void {
    this.running.writes.hold()
  }

  override async untilIdle(): Promise<void> {
    await this.running.stored()
  }

  /** Ends it with what it has answered and not stored. */
  override async kill(): Promise<void> {
    await this.running.kill()
    this.running = await startOf(this.parts)
  }

  override async restart(): Promise<void> {
    await this.running.stop()
    this.running = await startOf(this.parts)
  }

  async close(): Promise<void> {
    await this.running.stop()
  }

  /** The outpoints that a lookup service finds, of which the engine answers with those that it has itself; or a status. */
  async lookup(service: string, query: object): Promise<string[] | number> {
    const found = this.running.host.engine?.lookupServices[service]?.lookup({ service, query })
    try {
      return ((await found) as LookupFormula).map(({ txid, outputIndex }) => `${txid}_${outputIndex}`)
    } catch (error) {
      if (error instanceof BlockedError) return BLOCKED
      throw error
    }
  }
}

const BLOCKED = 451

async function startOf({
  history,
  headers,
  database,
}: {
  history: History
  headers: HeaderChain
  database: HostDatabase
}): Promise<PluginHost> {
  const { deployment } = history.chain
  const chainTracker = {
    isValidRootForHeight: async (root: string, height: number) => headers.rootAt(height) === root,
    currentHeight: async () => headers.bestTip.height,
  }
  const configure = (host: OverlayExpress): void => {
    host.configureChainTracker(chainTracker)
    const stores = storesOf(host.mongoDb ?? host.knex)
    attachGateway(host.app, stores, { deployment, logger: SILENT })
  }
  const host = await startPluginHost({
    ...{ deployment, engine: '0.4.6' as const, database, listens: true, configure },
  })
  return host
}
