import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that is none of ours. */
export async function listening(listener: RequestListener): Promise<{ url: string; close(): Promise<void> }> {
  // A test that fails before it closes this one is not to keep the process up.
  const server = createServer(listener).unref()
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
