import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, SILENT } from './support.js'

/** The process that `memory` loads: our server over a store that is there. It answers any message with its memory in use. */
const [folder = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const server = await startServer({ config: configFor(new FakeChain(), folder), logger: SILENT })
process.on('message', () => {
  globalThis.gc?.()
  process.send?.(process.memoryUsage().rss)
})
process.send?.(server.url)
