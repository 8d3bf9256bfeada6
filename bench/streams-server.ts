import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import express from 'express'
import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, SILENT } from './support.js'

/** What the loading process is sent; any message is answered with the memory in use, in bytes. */
export interface StreamsReady {
  url: string
  /** An Express app that pipes a file into every answer. */
  bare: string
}

/** The process that `streams` loads: our server over a store that is there, and an Express app that sends a file. */
const [folder = '', file = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const server = await startServer({ config: configFor(new FakeChain(), folder), logger: SILENT })
const bare = express()
  .get('/file', (_request, response) => {
    pipeline(createReadStream(file), response, () => {})
  })
  .listen(0, '127.0.0.1')
await once(bare, 'listening')
process.on('message', () => {
  globalThis.gc?.()
  process.send?.(process.memoryUsage().rss)
})
const { port } = bare.address() as AddressInfo
process.send?.({ url: server.url, bare: `http://127.0.0.1:${port}` } satisfies StreamsReady)
