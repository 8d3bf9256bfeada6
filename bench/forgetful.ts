import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createApp } from '../src/server/app.js'
import type { Config } from '../src/server/config/config.js'
import { openHttpServer } from '../src/server/http/http-server.js'
import type { RunningServer } from '../src/server/server.js'
import { SILENT } from './support.js'

/** Serves the same routes over the same store without caches: every answer is read. Returns the URL. */
export async function serveForgetful({ node }: RunningServer, config: Config): Promise<string> {
  const { store: graph, overlay } = node
  const app = createApp({ config, overlay, graph, ping: () => graph.ping(), logger: SILENT })
  const server = openHttpServer({ app, limits: config.limits, onEnd: () => {} })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
