import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import createKnex from 'knex'
import { MongoClient } from 'mongodb'
import { PROFILES } from '../backend/src/protocol/profile.js'
import { attachGateway } from '../src/gateway/attach-gateway.js'
import type { GatewayStores } from '../src/gateway/gateway-options.js'
import { storesOf } from '../src/plugin/index.js'
import { startServer } from '../src/server/server.js'
import { GrownTree, type Readings } from './grown-tree.js'
import { processFolder } from './process-folder.js'
import { configFor, SILENT, timed } from './support.js'

export type EngineName = 'SQLite' | 'MariaDB' | 'MongoDB'

/** What the loading process is sent; any message is answered with how long the next mint took to admit, in milliseconds. */
export interface StoresReady {
  /** The routes as a host has them by `attachGateway`: every answer is read from the store. */
  plugin: string
  /** Our server, which keeps answers in memory. */
  server: string
  readings: Readings
}

/** The process that `stores` loads: one store, the tree in it, and all that answers from it. */
const [kind, url = ''] = process.argv.slice(2) as [kind: EngineName, url: string]
const folder = processFolder()

const tree = new GrownTree()
const settings: Record<EngineName, Record<string, string>> = {
  SQLite: {},
  MariaDB: { KNEX_URL: url },
  MongoDB: { MONGO_URL: url },
}
const server = await startServer({ config: configFor(tree.chain, folder, settings[kind]), logger: SILENT })
const { engine } = server.node.overlay
for (const submission of tree.submissions) await engine.submit(submission)

/** The stores of a host, over connections of its own; on SQLite, which one process has, what our server keeps answers of. */
async function storesOfHost(): Promise<GatewayStores> {
  if (kind === 'SQLite') return { graph: server.node.store }
  if (kind === 'MariaDB') return storesOf(createKnex({ client: 'mysql2', connection: url }))
  return storesOf((await new MongoClient(url).connect()).db())
}

const app = express()
attachGateway(app, await storesOfHost(), {
  profile: PROFILES.local,
  genesis: tree.chain.deployment.genesis,
  logger: SILENT,
})
const listening = app.listen(0, '127.0.0.1')
await once(listening, 'listening')
process.on('message', async () => {
  const mint = tree.next()
  process.send?.(await timed(() => engine.submit(mint)))
})
const { port } = listening.address() as AddressInfo
const { readings } = tree
process.send?.({ plugin: `http://127.0.0.1:${port}`, server: server.url, readings } satisfies StoresReady)
