import { MessageChannel } from 'node:worker_threads'
import { pino } from 'pino'
import { readConfig } from '../../../../src/server/config/config.js'
import { LargeSubmissions } from '../../../../src/server/writer/large-submissions.js'
import type { Overlay } from '../../../../src/server/writer/overlay.js'

/** Answers how long the bytes are that it gets, and how many are held with them; one that begins with 0 ends it. */
const WORKER = `import { parentPort } from 'node:worker_threads'
parentPort.on('message', ({ id, args: [{ beef }] }) => {
  if (beef[0] === 0) process.exit(3)
  parentPort.postMessage({ id, done: [beef.length, beef.buffer.byteLength, beef[0]] })
})`

let large: LargeSubmissions
beforeEach(() => {
  const overlay = { engine: { writes: { run: (write: () => unknown) => write() } }, proofs: {} }
  large = new LargeSubmissions({
    config: readConfig({}),
    node: { overlay: overlay as Overlay, shareWriter: () => new MessageChannel().port2 },
    logger: pino({ enabled: false }),
    worker: new URL(`data:text/javascript,${encodeURIComponent(WORKER)}`),
  })
})
afterEach(() => large.close())

test('a body goes to the worker without what else its buffer has, and is still there to be submitted again', async () => {
  const beef = new Uint8Array(1024 * 1024).subarray(10, 100_010).fill(7)
  for (let n = 0; n < 2; n++) expect(await large.submit({ beef, topics: [] })).toEqual([100_000, 100_000, 7])
})

test('the end of the worker is answered with 503, and the next submission has another one', async () => {
  const [fatal, other] = [new Uint8Array(70_000), new Uint8Array(70_000).fill(1)]
  await expect(large.submit({ beef: fatal, topics: [] })).rejects.toMatchObject({ code: 'NOT_READY' })
  expect(await large.submit({ beef: other, topics: [] })).toEqual([70_000, 70_000, 1])
})
