import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../backend/src/read/fact-store.js'
import type { HttpServer } from './http/http-server.js'

/**
 * Has a server ask itself for the newest content. The first request of a process takes several times as long as later ones, as V8
 * compiles the code, half of it Node's own, and SQLite prepares the statements; nobody waits for this one.
 */
export async function warmUp(
  server: Pick<HttpServer, 'askItself'>,
  { listings }: Pick<GraphReads, 'listings'>,
): Promise<void> {
  const [newest] = listings.newestInscriptions({ limit: 1 })
  if (newest !== undefined) server.askItself(`/content/${formatOutpoint(newest.outpoint)}:-1`)
}
