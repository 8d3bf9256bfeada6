import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import createKnex from 'knex'
import { MongoClient } from 'mongodb'
import { PROFILES } from '../backend/src/protocol/profile.js'
import { MongoHookNotes } from '../backend/src/storage/mongo/mongo-hook-notes.js'
import { sharedStore } from '../backend/src/storage/mongo/shared-store.js'
import { attachGateway, type GatewayStores } from '../src/gateway/attach-gateway.js'
import { storesOf } from '../src/plugin/index.js'
import { createOverlay, type Overlay } from '../src/server/overlay.js'
import { startServer } from '../src/server/server.js'
import { GrownTree, type Readings } from './grown-tree.js'
import { configFor, SILENT, timed } from './support.js'

/** What the loading process is told; any message is answered with how long the next mint took to admit, in milliseconds. */
export interface StoresReady {
  /** The routes as a host has them by `attachGateway`: every answer is read from the store. */
  plugin: string
  /** Our server, which keeps answers in memory; undefined where it does not run on this store. */
  server: string | undefined
  readings: Readings
}

/** The process that `stores` loads: one store, the tree in it, and all that answers from it. */
const [kind, url = ''] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'minetree-bench-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

interface Opened {
  stores: GatewayStores
  overlay: Overlay
  server?: string
}

const tree = new GrownTree()

async function openSql(settings: Record<string, string>): Promise<Opened> {
  const config = configFor(tree.chain, folder, settings)
  const { url: server, node } = await startServer({ config, logger: SILENT })
  const stores =
    kind === 'SQLite'
      ? { graph: node.graph.store }
      : storesOf(createKnex({ client: 'mysql2', connection: url }))
  return { stores, overlay: node.overlay, server }
}

async function openMongo(): Promise<Opened> {
  const client = await new MongoClient(url).connect()
  const db = client.db()
  const graph = sharedStore(db)
  await graph.open()
  const notes = new MongoHookNotes(db, graph.writer)
  const config = configFor(tree.chain, folder)
  return { stores: { graph }, overlay: createOverlay({ config, graph, notes, logger: SILENT }) }
}

const { stores, overlay, server } =
  kind === 'MongoDB' ? await openMongo() : await openSql(kind === 'SQLite' ? {} : { KNEX_URL: url })
for (const submission of tree.submissions) await overlay.engine.submit(submission)

const app = express()
attachGateway(app, stores, {
  profile: PROFILES.local,
  genesis: tree.chain.deployment.genesis,
  logger: SILENT,
})
const listening = app.listen(0, '127.0.0.1')
await once(listening, 'listening')
process.on('message', async () => {
  const mint = tree.next()
  process.send?.(await timed(() => overlay.engine.submit(mint)))
})
const { port } = listening.address() as AddressInfo
const { readings } = tree
process.send?.({ plugin: `http://127.0.0.1:${port}`, server, readings } satisfies StoresReady)
