import { startServer } from '../src/server/server.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, SILENT } from './support.js'

export interface PatchesReady {
  url: string
}

/** The process that `patches` loads. It answers `cpu` with its processor time, and `held` with the longest turn of its event loop. */
const [folder = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

/** The longest turn of the event loop, in milliseconds of processor time, which excludes other load on the machine. */
let held = 0
let turn = process.cpuUsage()
const watch = (): void => {
  const { user, system } = process.cpuUsage(turn)
  turn = process.cpuUsage()
  held = Math.max(held, (user + system) / 1000)
  setImmediate(watch)
}

const settings = {
  MAX_BODY_BYTES: String(64 * 1024 * 1024),
  READS_PER_MINUTE: '0',
  SUBMISSIONS_PER_MINUTE: '0',
}
const server = await startServer({ config: configFor(new FakeChain(), folder, settings), logger: SILENT })
process.on('message', (asked) => {
  if (asked !== 'held') {
    process.send?.(process.cpuUsage())
    return
  }
  // The first message starts the watch.
  if (held === 0) watch()
  process.send?.(held)
  held = 0.001
})
process.send?.({ url: server.url } satisfies PatchesReady)
