import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { MessagePort } from 'node:worker_threads'
import { pino } from 'pino'
import { Sql } from '../../../backend/src/facts/connection.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { connectWriter } from '../../../backend/src/writer/client.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { readConfig } from '../../../src/server/config/config.js'
import { type StartedWriter, startWriter } from '../../../src/server/store/start-writer.js'
import { builtPackage } from '../../support/cli/built-package.js'
import { recordOf } from '../../support/protocol/block.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { treeOf, untilReady, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

const chain = new FakeChain()
const servers = useServers()
let worker: URL
let folder: string
let started: StartedWriter
/** Of each time that the thread ended, whether it was the last. */
let ended: boolean[]

async function start(): Promise<StartedWriter> {
  const each = await startWriter({ folder, worker, onEnd: (_cause, { isFinal }) => ended.push(isFinal) })
  const config = readConfig({ GENESIS: formatOutpoint({ txid: chain.genesis.txid, vout: 0 }) })
  each.deriveBy(config)
  await each.writer.opened
  return each
}

beforeAll(async () => {
  worker = pathToFileURL(join(await builtPackage(), 'dist/src/server/writer-worker.js'))
})
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'writer-thread-'))
  ended = []
  started = await start()
})
afterEach(async () => {
  await started.writer.close().catch(() => {})
  rmSync(folder, { recursive: true })
})

function inscription(text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
}

/** One that takes a second or so to derive. */
function large(): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('x') })
  return chain.spend({
    inputs: [],
    outputs: Array.from({ length: 10_000 }, (_, n) => ({
      satoshis: 1,
      lockingScript: n % 2 ? p2pkh(n) : lockingScript,
    })),
  })
}

function stored(): string[] {
  const sql = new Sql(storeFiles(folder).log)
  const rows = sql.all('select key from log where kind = 1 order by seq')
  sql.close()
  return rows.map(({ key }) => key.toString('hex'))
}

test('this thread goes on while a large transaction is written, and what waits for that is not kept for long', async () => {
  const [first, second] = [large(), inscription('second')]
  let turns = 0
  let isWritten = false
  const written = started.writer.record([recordOf(first)]).finally(() => {
    isWritten = true
  })
  const impatient = started.writer.record([recordOf(second)], {}, { patience: 50 })
  const refused = impatient.then(
    () => 'written',
    ({ code }) => code,
  )
  for (; !isWritten; turns++) await nextLoop()
  expect(turns).toBeGreaterThan(50)
  expect((await written).admitted.length).toBeGreaterThan(2500)
  expect(await refused).toBe('WRITER_BUSY')
  expect(stored()).toEqual([first.txid])
  await started.writer.record([recordOf(second)], {}, { patience: 50 })
  expect(stored()).toEqual([first.txid, second.txid])
})

test('another thread writes through the same writer', async () => {
  const port = started.share()
  if (port === undefined) throw new Error('the writer has a thread')
  const other = connectWriter(port)
  await other.opened
  const [a, b] = [inscription('a'), inscription('b')]
  await Promise.all([other.record([recordOf(a)]), started.writer.record([recordOf(b)])])
  expect(stored().sort()).toEqual([a.txid, b.txid].sort())
  port.close()
})

/** Has the thread end by a fault that nothing there catches. */
function poison(share: () => MessagePort | undefined): void {
  const port = share()
  port?.postMessage({ share: 'no port' })
  port?.unref()
}

/**
 * The same, and writes until it has ended. Where no write was under way just then, none is refused: the next one is for the next thread.
 *
 * @returns The codes of the errors, and what was written.
 */
async function died(): Promise<{ codes: unknown[]; written: string[] }> {
  const times = ended.length
  const [codes, written]: [unknown[], string[]] = [[], []]
  poison(started.share)
  while (ended.length === times) {
    const record = recordOf(inscription(`written ${written.length}`))
    try {
      await started.writer.record([record])
      written.push(record.txid)
    } catch (error) {
      codes.push((error as { code?: unknown }).code)
    }
  }
  return { codes, written }
}

test('a thread that ends by itself is started again, and nothing that was acknowledged is lost', async () => {
  const { codes, written } = await died()
  expect(ended).toEqual([false])
  expect(codes.filter((code) => code !== 'STORE_UNAVAILABLE')).toEqual([])
  await started.writer.opened
  const later = inscription('later')
  await started.writer.record([recordOf(later)])
  expect(stored()).toEqual(expect.arrayContaining([...written, later.txid]))
})

test('a thread that ends again at once is not started a third time', async () => {
  await died()
  await died()
  expect(ended).toEqual([false, true])
  await expect(started.writer.setting('name', 'value')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test('meanwhile a server is not ready and answers 503, and goes on with the next thread', async () => {
  const distribution = join(await builtPackage(), 'dist/src/server')
  const [writerThread, submissionWorker] = ['writer-worker.js', 'writer/submission-worker.js'].map((name) =>
    pathToFileURL(join(distribution, name)),
  )
  const env = { ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' }
  /** How the index stood each time that the log said that the thread ended. */
  const states: string[] = []
  const write = (line: string): void => {
    if (line.includes('restarting it')) states.push(server.node.index.status.state)
  }
  const server = await servers.start(env, {
    logger: pino({ level: 'error' }, { write }),
    ...(writerThread && { writerThread }),
    ...(submissionWorker && { submissionWorker }),
  })
  const texts = new Map<string, string>()
  const submitted = async (text: string) => {
    const each = inscription(text)
    const { status, headers } = await server.submit(beefOf(each), ['tm_ordinals'])
    if (status === 200) texts.set(each.outpoint(0), text)
    return { status, retryAfter: headers['retry-after'] }
  }
  const large = 'y'.repeat(100_000)
  expect((await submitted(large)).status).toBe(200)
  poison(server.node.shareWriter)
  let answer = await submitted('before')
  while (answer.status === 200) answer = await submitted(`before ${texts.size}`)
  expect(answer).toEqual({ status: 503, retryAfter: expect.any(String) })
  const [stored] = texts.keys()
  expect((await server.ask(`/content/${stored}`)).status).toBe(200)
  expect(states).toEqual(['resuming'])
  await untilReady(server)
  expect((await submitted('after')).status).toBe(200)
  // The large ones go through a thread with a port to the writer that has ended.
  await until(async () => (await submitted(`${large} again`)).status === 200, 'large ones are taken again')
  for (const [outpoint, text] of texts)
    expect((await server.ask(`/content/${outpoint}`)).body.toString()).toBe(text)
})

test('a process whose writer ends twice in a minute ends with a line that says so', async () => {
  const server = pathToFileURL(join(await builtPackage(), 'dist/src/server/server.js'))
  const config = pathToFileURL(join(await builtPackage(), 'dist/src/server/config/config.js'))
  const script = `
    const { startServer } = await import(${JSON.stringify(server)})
    const { WRITER_THREAD } = await import(${JSON.stringify(server)}.replace('server.js', 'node.js'))
    const { readConfig } = await import(${JSON.stringify(config)})
    const { pino } = (await import(${JSON.stringify(pathToFileURL(createRequire(import.meta.url).resolve('pino')))})).default
    const { node } = await startServer({
      config: readConfig({ PORT: '0', CHAIN_TRACKER: 'scripts-only', DATA_DIR: ${JSON.stringify(join(folder, 'process'))} }),
      logger: pino(), writerThread: WRITER_THREAD,
    })
    for (;;) {
      node.shareWriter().postMessage({ share: 'no port' })
      await node.graph.settings.set('name', 'value').catch(() => {})
    }`
  const file = join(folder, 'process.mjs')
  writeFileSync(file, script)
  const child = spawn(process.execPath, [file], { stdio: 'pipe' })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part))
  const [code] = await once(child, 'close')
  expect([code, said]).toEqual([5, expect.stringContaining('ended again within a minute: exiting')])
})
