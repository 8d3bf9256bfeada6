import { MemoryStore } from 'express-rate-limit'
import { createApp } from '../../../src/server/app.js'
import { listen, openHttpServer } from '../../../src/server/http/http-server.js'
import type { Node } from '../../../src/server/node.js'
import { createReaderApp } from '../../../src/server/reader-app.js'
import type { ChainParts } from '../../../src/server/telemetry/chain-status.js'
import {
  listenForReaders,
  newSecret,
  receivePassedOn,
  writerLimits,
} from '../../../src/server/workers/passed-on.js'
import { openReaderStore } from '../../../src/server/workers/reader-store.js'
import { SILENT } from './test-server.js'

/** Readers of a node, each with a store and a server of its own, in this process. */
export interface TestReaders {
  urls: string[]
  /** The stores of the readers. */
  graphs: Node['graph'][]
  close(): Promise<void>
}

/** Opens readers beside a server of the node. They pass on to an app of it that has no gate. */
export async function openReaders(
  node: Node,
  { count = 2, chain, port }: { count?: number; chain?: ChainParts; port?: () => number } = {},
): Promise<TestReaders> {
  const { config, overlay, graph, maintenance, ancestors } = node
  const { limits } = config
  const app = createApp({
    ...{ config, overlay, graph, logger: SILENT },
    ping: () => graph.ping(),
    index: () => maintenance.status,
    readers: { running: count, wanted: count, published: async () => {} },
    ...(config.chainSources.length > 0 && { ancestors }),
    ...(chain && { chain }),
    ...(port && { port }),
  })
  const secret = newSecret()
  const served = receivePassedOn(app, secret)
  const server = openHttpServer({ app: served, limits: writerLimits(limits), onEnd: () => {} })
  const { place, remove } = await listenForReaders(server)
  const readers = await Promise.all(
    Array.from({ length: count }, async () => {
      const store = await openReaderStore(config, SILENT)
      const readerApp = createReaderApp({
        ...{ config, ...store, writer: { place, secret }, logger: SILENT },
        index: () => maintenance.status,
        ...(port && { port }),
        reads: new MemoryStore(),
      })
      const front = openHttpServer({ app: readerApp, limits, onEnd: () => {} })
      await listen(front, { host: '127.0.0.1', port: 0 })
      const address = front.address()
      const listened = typeof address === 'object' ? address?.port : undefined
      return { store, front, url: `http://127.0.0.1:${listened}` }
    }),
  )
  graph.onChange = async (change) => {
    await Promise.all(readers.map(({ store }) => store.graph.outdate(change)))
  }
  return {
    urls: readers.map(({ url }) => url),
    graphs: readers.map(({ store }) => store.graph),
    async close() {
      graph.onChange = async () => {}
      for (const { front, store } of readers) {
        await front.finish()
        await store.close()
      }
      await server.finish()
      await remove()
    },
  }
}
