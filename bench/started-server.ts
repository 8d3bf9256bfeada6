import { IMAGE_PROGRAM } from '../src/server/images/images.js'
import { WRITER_THREAD } from '../src/server/node.js'
import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, SILENT } from './support.js'

/** The resources that the process has used since its start, and its memory without garbage, in bytes. */
export interface ServerUsage extends NodeJS.ResourceUsage {
  memory: number
}

/** Our server as the command starts it, in a folder, with settings as JSON. It answers any message with {@link ServerUsage}. */
const [folder = '', settings = '{}'] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
const server = await startServer({
  config: configFor(chain, folder, JSON.parse(settings) as Record<string, string>),
  logger: SILENT,
  submissionWorker: new URL('../src/server/writer/submission-worker.js', import.meta.url),
  writerThread: WRITER_THREAD,
  imageProgram: IMAGE_PROGRAM,
})
// It listens before the index is complete, and answers 503 until then.
await server.node.index.run()
process.on('message', () => {
  const used = process.resourceUsage()
  globalThis.gc?.()
  process.send?.({ ...used, memory: process.memoryUsage().rss } satisfies ServerUsage)
})
process.send?.(server.url)
