import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from './test-server.js'

/** The headers of an answer without those that are others each time: its date, and its id. */
export function lastingHeaders({ headers }: Answer): IncomingHttpHeaders {
  const { date: _, 'x-request-id': __, ...lasting } = headers
  return lasting
}
