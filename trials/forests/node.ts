import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { LookupService } from '@bsv/overlay'
import type { STEAK } from '@bsv/sdk'
import type { AdmissionOptions } from '../../backend/src/graph/admission-rules.js'
import type { Block } from '../../backend/src/graph/records.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/graph-store.js'
import { sqlDatabase } from '../../backend/src/storage/sql/rows.js'
import { StoredHookOutbox } from '../../backend/src/storage/write/hook-outbox.js'
import { createApp } from '../../src/server/app.js'
import { HeadersSource, type Verdict } from '../../src/server/chain/chain-tracker.js'
import { ReorgMonitor } from '../../src/server/chain/reorg-monitor.js'
import { readConfig } from '../../src/server/config/config.js'
import { CachingStore } from '../../src/server/store/caching-store.js'
import { type Database, openSqlite } from '../../src/server/store/open-database.js'
import { createOverlay } from '../../src/server/submission/overlay.js'
import { FakeChain } from '../../test/support/protocol/fake-chain.js'
import { ask, posted, SILENT, treeOf } from '../../test/support/server/test-server.js'
import { type PlainBlock, PlainChain, pathIn } from './chain.js'

/** A store with its engine, its lookup services and its routes, for one forest after the other. */
export interface ForestNode {
  graph: CachingStore
  database: Database
  admission: AdmissionOptions
  services: Record<string, LookupService>
  /** Takes back the proofs that the chain no longer has. */
  watch: ReorgMonitor
  /** Where its routes are. */
  url: string
  /** Submits to both topics. @throws what the engine throws. */
  submit(beef: Uint8Array): Promise<STEAK>
  /** Brings the proof of a transaction, as a transaction processor does. The status of the answer. */
  ingest(txid: string, block: PlainBlock): Promise<number>
  /** Makes it a fresh one, which follows this chain. */
  clear(chain: PlainChain): Promise<void>
  close(): Promise<void>
}

/** The headers of a plain chain, which are asked without a network. */
class ChainHeaders extends HeadersSource {
  chain = new PlainChain()

  constructor() {
    const nobody = (): never => {
      throw new Error('nobody is asked over a network')
    }
    super({ name: 'plain', timeout: 0, dialect: { open: nobody, verdict: nobody, checkTip: nobody } })
  }

  override async verdict(block: Block): Promise<Verdict> {
    return this.chain.accepts(block) ? 'yes' : 'no'
  }

  override async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return await this.chain.isValidRootForHeight(root, height)
  }

  override async currentHeight(): Promise<number> {
    return await this.chain.currentHeight()
  }
}

export async function openForestNode(): Promise<ForestNode> {
  // The tree of every forest: their chains start with the same transaction.
  const { deployment } = new FakeChain({ difficulty: 1 })
  const dataDir = await mkdtemp(join(tmpdir(), 'minetree-forest-'))
  const config = readConfig({
    ...treeOf(deployment),
    DATA_DIR: dataDir,
    READS_PER_MINUTE: '0',
    SUBMISSIONS_PER_MINUTE: '0',
  })
  const database = await openSqlite(dataDir)
  const graph = new CachingStore({ store: new SqlGraphStore(database) })
  await graph.open()
  // Nobody pulls the plug here, and the disk would be all that this waits for.
  await database.writer.raw('pragma synchronous = off')
  const headers = new ChainHeaders()
  const outbox = new StoredHookOutbox(sqlDatabase(database))
  const overlay = createOverlay({ config, graph, outbox, headers, logger: SILENT })
  const { engine, proofs } = overlay
  const { reorgDepth } = config
  const watch = new ReorgMonitor({
    headers,
    proofs,
    graph,
    runLocked: (write) => engine.writeLock.run(write),
    reorgDepth,
    pollInterval: 0,
    logger: SILENT,
  })
  const app = createApp({ config, overlay, graph, ping: () => graph.ping(), logger: SILENT })
  const server = createServer(app)
  // A run takes longer than a connection is kept without a request.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const rows = await database.reader.all(
    "select name from sqlite_master where type = 'table' and name like 'graph!_%' escape '!'",
    [],
  )
  const tables = rows.map(({ name }) => String(name))
  return {
    graph,
    database,
    admission: overlay.admission,
    services: engine.lookupServices,
    watch,
    url,
    submit: (beef) => engine.submit({ beef, topics: [TOPICS.names, TOPICS.ordinals] }),
    async ingest(txid, block) {
      const merklePath = pathIn(block, txid).toHex()
      const { status } = await ask(url, '/arc-ingest', posted({ txid, merklePath }))
      return status
    },
    async clear(followed) {
      headers.chain = followed
      await graph.writing(() =>
        database.writer.transaction(async (trx) => {
          for (const table of tables) await trx(table).delete()
        }),
      )
    },
    async close() {
      server.closeAllConnections()
      await promisify(server.close.bind(server))()
      await overlay.close()
      await database.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
