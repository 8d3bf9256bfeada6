import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Sql } from '../../../backend/src/facts/connection.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { connectWriter } from '../../../backend/src/writer/client.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { readConfig } from '../../../src/server/config/config.js'
import { type StartedWriter, startWriter } from '../../../src/server/store/start-writer.js'
import { admissionOptions } from '../../../src/server/submission/admission-options.js'
import { builtPackage } from '../../support/cli/built-package.js'
import { recordOf } from '../../support/protocol/block.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
let worker: URL
let folder: string
let started: StartedWriter
let ended: unknown[]

async function start(): Promise<StartedWriter> {
  const each = await startWriter({ folder, worker, onEnd: (cause) => ended.push(cause) })
  const config = readConfig({ GENESIS: formatOutpoint({ txid: chain.genesis.txid, vout: 0 }) })
  each.deriveBy(admissionOptions(config), config)
  await each.writer.opened
  return each
}

beforeAll(async () => {
  worker = pathToFileURL(join(await builtPackage(), 'dist/src/server/writer-worker.js'))
}, 300_000)
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
    outputs: Array.from({ length: 40_000 }, (_, n) => ({
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
  expect((await written).admitted.length).toBeGreaterThan(10_000)
  expect(await refused).toBe('WRITER_BUSY')
  expect(stored()).toEqual([first.txid])
  await started.writer.record([recordOf(second)], {}, { patience: 50 })
  expect(stored()).toEqual([first.txid, second.txid])
}, 60_000)

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

test('a thread that ends by itself loses nothing that was acknowledged, and is not waited for', async () => {
  const acknowledged = inscription('acknowledged')
  await started.writer.record([recordOf(acknowledged)])
  // Settings that are none are a fault that nothing there catches.
  started.deriveBy(undefined as never, undefined as never)
  const lost = started.writer.record([recordOf(inscription('lost'))])
  await expect(lost).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expect(started.writer.setting('name', 'value')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(ended).toHaveLength(1)
  started = await start()
  expect(stored()).toEqual([acknowledged.txid])
}, 60_000)
