import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { WRITER_THREAD } from '../src/server/node.js'
import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, SILENT } from './support.js'

/** What the process has used since its start, and its main thread since the message `begin` before. */
export interface HostUsage extends NodeJS.ResourceUsage {
  /** The share of the time in which the main thread worked or waited for the disk. */
  busy: number
  /** How late its event loop came to a timer: in 99 of 100 cases within so many milliseconds, and at most. */
  late: { usually: number; atMost: number }
}

/** The process that follows the source: our server as the command starts it. It answers any message with {@link HostUsage}. */
const [folder = '', settings = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
const submissionWorker = new URL('../src/server/writer/submission-worker.js', import.meta.url)
const config = configFor(chain, folder, JSON.parse(settings) as Record<string, string>)
const server = await startServer({ config, logger: SILENT, submissionWorker, writerThread: WRITER_THREAD })
// It listens before the index is there, and answers 503 until then.
await server.node.maintenance.run()
/** Enabled by the first `begin`: it wakes the thread a thousand times a second. */
const delay = monitorEventLoopDelay({ resolution: 1 })
let begun = performance.eventLoopUtilization()
process.on('message', (message) => {
  const { utilization: busy } = performance.eventLoopUtilization(begun)
  const late = { usually: delay.percentile(99) / 1e6, atMost: delay.max / 1e6 }
  process.send?.({ ...process.resourceUsage(), busy, late } satisfies HostUsage)
  if (message !== 'begin') return
  delay.enable()
  delay.reset()
  begun = performance.eventLoopUtilization()
})
process.send?.(server.url)
