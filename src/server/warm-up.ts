import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../backend/src/read/graph-reads.js'
import type { App } from './http/hot-path.js'

/**
 * Has the app answer a request of its own for the newest content. The first request of a process takes several times as long as later
 * ones, as V8 compiles the code and SQLite prepares the statements; nobody waits for this one.
 */
export async function warmUp(app: App, { listings }: Pick<GraphReads, 'listings'>): Promise<void> {
  const [newest] = listings.newestInscriptions({ limit: 1 })
  if (newest === undefined) return
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: '127.0.0.1' })
  const url = `/content/${formatOutpoint(newest.outpoint)}:-1`
  const asked = { method: 'GET', url, headers: { host: 'localhost' } }
  const request = Object.assign(new IncomingMessage(socket), asked)
  app(request, new ServerResponse(request))
}
