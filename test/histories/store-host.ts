import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ChainTracker } from '@bsv/sdk'
import type { AdmissionOptions } from '../../backend/src/graph/admission-rules.js'
import type { SightingRecord } from '../../backend/src/graph/graph-store.js'
import type { Block } from '../../backend/src/graph/records.js'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/graph-store.js'
import { sqlDatabase } from '../../backend/src/storage/sql/rows.js'
import { StoredSubmissions } from '../../backend/src/storage/write/held-submissions.js'
import { createApp } from '../../src/server/app.js'
import type { Verdict } from '../../src/server/chain/chain-tracker.js'
import { HeadersSource } from '../../src/server/chain/headers-source.js'
import { ReorgMonitor } from '../../src/server/chain/reorg-monitor.js'
import { type Config, readConfig } from '../../src/server/config/config.js'
import { CachingStore } from '../../src/server/store/caching-store.js'
import { createOverlay, type Overlay } from '../../src/server/submission/overlay.js'
import { CONTENT_TYPES } from '../support/graph/said-outputs.js'
import { FakeChain } from '../support/protocol/fake-chain.js'
import { listening } from '../support/server/connections.js'
import { HeaderChain } from '../support/server/header-chain.js'
import { SILENT, treeOf } from '../support/server/test-server.js'
import { openSqlite, type SqlConnections } from '../support/storage/sqlite-database.js'
import type { Shape } from './history.js'
import type { Differences } from './host.js'
import { ADMIN_TOKEN, Host } from './host.js'
import type { Model } from './model.js'
import { storedDifferences } from './stored.js'

const TYPES = [...CONTENT_TYPES, PROFILES.local.nameContentType]

/**
 * The store, the overlay and the routes of a server in this process, for one history after the other: its tables can be
 * read, and it learns of changes to the chain only when it is asked to follow.
 */
export class StoreHost extends Host {
  private constructor(
    readonly url: string,
    private readonly parts: {
      graph: CachingStore
      database: SqlConnections
      overlay: Overlay
      admission: AdmissionOptions
      headers: HeadersOfChain
      monitor: ReorgMonitor
      close(): Promise<void>
    },
  ) {
    super()
  }

  /** @param options The shape of all histories: their chains start with the same transaction. */
  static async open(shape: Shape): Promise<StoreHost> {
    const dataDir = await mkdtemp(join(tmpdir(), 'minetree-forest-'))
    const config = configOf(shape, dataDir)
    const database = await openSqlite(dataDir)
    const graph = new CachingStore({ store: new SqlGraphStore(database) })
    await graph.open()
    // Nobody pulls the plug here, and the disk would be all that this waits for.
    await database.writer.raw('pragma synchronous = off')
    const headers = new HeadersOfChain()
    const held = new StoredSubmissions(sqlDatabase(database))
    const overlay = createOverlay({ config, graph, held, headers, logger: SILENT })
    const { proofs, admission } = overlay
    const monitor = new ReorgMonitor({
      ...{ headers, proofs, graph },
      runLocked: (write) => overlay.engine.writeLock.run(write),
      reorgDepth: config.reorgDepth,
      pollInterval: 0,
      logger: SILENT,
    })
    const app = createApp({ config, overlay, graph, ping: () => graph.ping(), logger: SILENT })
    const server = await listening(app)
    return new StoreHost(server.url, {
      ...{ graph, database, overlay, admission, headers, monitor },
      async close() {
        await server.close()
        await overlay.close()
        await database.close()
        await rm(dataDir, { recursive: true, force: true })
      },
    })
  }

  get graph(): CachingStore {
    return this.parts.graph
  }

  get database(): SqlConnections {
    return this.parts.database
  }

  get admission(): AdmissionOptions {
    return this.parts.admission
  }

  /** Empties the store, and follows this chain from now on. */
  async clear(chain: ChainRoots): Promise<void> {
    const { headers, graph, database, monitor } = this.parts
    headers.chain = chain
    const tables = await database.reader.all(
      "select name from sqlite_master where type = 'table' and name like 'graph!_%' escape '!'",
      [],
    )
    await graph.writing(() =>
      database.writer.transaction(async (trx) => {
        for (const { name } of tables) await trx(String(name)).delete()
      }),
    )
    await graph.blocklist.refresh()
    // The first round, as a server makes it when it starts: the next one knows from which tip on.
    await monitor.round()
  }

  override async follow(): Promise<void> {
    await this.parts.monitor.round()
  }

  override async sight(record: SightingRecord): Promise<boolean> {
    await this.graph.sightings.record([record])
    return true
  }

  override async release(): Promise<void> {
    const { releaseNonFinal } = this.parts.overlay.engine
    while ((await releaseNonFinal()) > 0) {
      // A round takes some of them.
    }
  }

  override async fateOf(txid: string): Promise<'held' | 'refused'> {
    return (await this.graph.transactions.get(txid))?.proof === undefined ? 'refused' : 'held'
  }

  override async storedDifferences(model: Model): Promise<Differences> {
    return await storedDifferences(this, model)
  }

  async close(): Promise<void> {
    await this.parts.close()
  }
}

/** The settings of a host for histories of a shape. */
export function configOf({ covenantVersion, refusedTypes = [] }: Shape, dataDir: string): Config {
  const { deployment } = new FakeChain({ difficulty: 1, covenantVersion })
  return readConfig({
    ...treeOf(deployment),
    DATA_DIR: dataDir,
    ADMIN_TOKEN,
    READS_PER_MINUTE: '0',
    SUBMISSIONS_PER_MINUTE: '0',
    ...(refusedTypes.length > 0 && {
      CONTENT_TYPES: TYPES.filter((type) => !refusedTypes.includes(type)).join(),
    }),
  })
}

/** What a host asks of a chain. */
export interface ChainRoots {
  rootAt(height: number): string | undefined
  readonly bestTip: { readonly height: number }
}

/** The headers of a chain, asked without a network. */
export class HeadersOfChain extends HeadersSource implements ChainTracker {
  chain: ChainRoots = new HeaderChain()

  constructor() {
    // Nothing is asked there: all questions are answered below.
    super({ chainTracker: 'http://plain.invalid', chainTrackerTimeoutMs: 0, network: 'main' })
  }

  override async verdict({ height, root }: Block): Promise<Verdict> {
    return this.chain.rootAt(height) === root ? 'yes' : 'no'
  }

  override async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return this.chain.rootAt(height) === root
  }

  override async currentHeight(): Promise<number> {
    return this.chain.bestTip.height
  }
}
