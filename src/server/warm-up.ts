import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { GraphReader } from '../../backend/src/graph/graph-store.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { App } from './http/hot-path.js'

/**
 * Answers a request for a tip that nobody has sent. The first one takes several times as long as those after it: V8 compiles what it
 * meets, and SQLite prepares the statements. Nobody waits for this one.
 */
export async function warmUp(app: App, { listings }: Pick<GraphReader, 'listings'>): Promise<void> {
  const [newest] = await listings.newestInscriptions({ limit: 1 })
  if (newest === undefined) return
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: '127.0.0.1' })
  const request = Object.assign(new IncomingMessage(socket), {
    ...{
      method: 'GET',
      url: `/content/${formatOutpoint(newest.outpoint)}:-1`,
      headers: { host: 'localhost' },
    },
  })
  app(request, new ServerResponse(request))
}
