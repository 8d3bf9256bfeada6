import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, SILENT } from './support.js'

/** The process that follows the source: our server as the command starts it. It answers any message with what it has used. */
const [folder = '', settings = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
const submissionWorker = new URL('../src/server/submission/submission-worker.js', import.meta.url)
const config = configFor(chain, folder, JSON.parse(settings) as Record<string, string>)
const server = await startServer({ config, logger: SILENT, submissionWorker })
process.on('message', () => process.send?.(process.resourceUsage()))
process.send?.(server.url)
