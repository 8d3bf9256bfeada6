import { IMAGE_PROGRAM } from '../src/server/images/images.js'
import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, SILENT } from './support.js'

/** The process that `large` sends to: our server as the command starts it. */
const [folder = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const submissionWorker = new URL('../src/server/writer/submission-worker.js', import.meta.url)
const server = await startServer({
  config: configFor(new FakeChain(), folder),
  logger: SILENT,
  submissionWorker,
  imageProgram: IMAGE_PROGRAM,
})
process.send?.(server.url)
