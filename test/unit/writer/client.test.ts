import { MessageChannel } from 'node:worker_threads'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { connectWriter, serveWriter, type WriterClient } from '../../../backend/src/writer/client.js'
import { LocalWriter } from '../../../backend/src/writer/local-writer.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript } from '../../support/protocol/fake-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

let store: OpenedWriter
let client: WriterClient
let closed: number
const channels: MessageChannel[] = []

/** A writer over the files of a test as another thread would serve it: by messages alone. */
beforeEach(async () => {
  store = new OpenedWriter()
  await store.writer.close()
  const channel = new MessageChannel()
  channels.push(channel)
  store.writer = new LocalWriter(store)
  closed = 0
  serveWriter(store.writer, channel.port1, {
    deriveBy: (plain) =>
      store.writer.deriveBy(plain === 'rules' ? store.admission : (undefined as unknown as AdmissionOptions)),
    onClosed: () => closed++,
  })
  client = connectWriter(channel.port2)
  await client.ready
})
afterEach(async () => {
  await store.close().catch(() => {})
  for (const { port1, port2 } of channels.splice(0)) for (const port of [port1, port2]) port.close()
})

function inscription(text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return store.chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
}

test('every method of a writer answers as the writer itself, once it has rules', async () => {
  const ordinal = inscription('a')
  const recorded = client.record([recordOf(ordinal, 100)], { subjects: [ordinal.txid] }, { patience: 5000 })
  expect(client.status).toEqual({ state: 'rebuilding', done: 0 })
  client.deriveBy('rules')
  await client.opened
  expect(await recorded).toMatchObject({ lost: [], admitted: [{ topic: 'tm_ordinals' }] })
  expect(client.status).toEqual({ state: 'equal', done: 1 })
  const { proof } = recordOf(ordinal, 100)
  if (proof === undefined) throw new Error('it has a proof')
  expect(await client.change('disprove', proof)).toMatchObject({ result: 1 })
  const seen = { txid: ordinal.txid, status: 'seen' } as const
  expect(await client.change('sightings', [seen])).toMatchObject({ result: { changed: [seen] } })
  const record = { kind: 'name', value: 'x', reason: 'r', since: 5 } as const
  expect(await client.change('block', record)).toMatchObject({ result: record })
  expect(await client.change('unblock', record)).toMatchObject({ result: true })
  const outpoint = { txid: ordinal.txid, vout: 0 }
  await client.change('evict', outpoint, 1)
  expect(await client.setting('genesis', 'v')).toMatchObject({ reorganised: 0 })
  expect(
    await client.change('replaceHeaders', { height: 5, headers: new Uint8Array(0), tip: undefined }),
  ).toMatchObject({ result: true })
  expect(await client.change('addHeadersBelow', { to: 5, headers: new Uint8Array(0) })).toMatchObject({
    result: false,
  })
  await client.change('clearHeaders')
  await client.note(
    'hold',
    { txid: ordinal.txid, lock: { height: 1, time: 0 }, beef: Uint8Array.of(1) },
    { maxCount: 5 },
  )
  await client.note('release', ordinal.txid)
  await client.note('postpone', [outpoint], {
    hole: true,
    tries: 1,
    due: 2,
    place: 3,
    transactions: 4,
    bytes: 5,
  })
  const rows = ['held', 'ancestor'].map((table) => store.log(`select * from ${table}`).length)
  expect(rows).toEqual([0, 1])
  await client.close()
  expect(closed).toBe(1)
})

test('an error keeps its code and its message', async () => {
  client.deriveBy('rules')
  await client.opened
  const { logFile } = store.writer as unknown as { logFile: { exec(sql: string): void } }
  logFile.exec('pragma max_page_count = 1')
  const full = client.record([recordOf(inscription('x'.repeat(100_000)))])
  await expect(full).rejects.toMatchObject({ code: 'SQLITE_FULL', message: expect.stringContaining('full') })
})

test('a log that cannot be reached is told by its class, as in the thread of the writer', async () => {
  client.deriveBy('rules')
  await client.opened
  store.writer.record = () => Promise.reject(new StoreUnavailableError(new Error('ECONNREFUSED')))
  await expect(client.record([recordOf(inscription('x'))])).rejects.toBeInstanceOf(StoreUnavailableError)
})

test('another thread writes by a port of its own', async () => {
  client.deriveBy('rules')
  const port = client.share()
  const other = connectWriter(port)
  await other.opened
  const [a, b] = [inscription('a'), inscription('b')]
  await Promise.all([other.record([recordOf(a)]), client.record([recordOf(b)])])
  expect(store.facts({ a, b })).toEqual(['a', 'b'])
  port.close()
})

test('what cannot be opened is reported to those who wait for it', async () => {
  client.deriveBy('no rules')
  await expect(client.opened).rejects.toThrow()
})

test('when the thread has ended, nothing waits for it any longer', async () => {
  const recorded = client.record([recordOf(inscription('a'))])
  expect(client.failure).toBeUndefined()
  client.end(new Error('out of memory'))
  expect(client.failure).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  for (const call of [recorded, client.opened, client.setting('name', 'value')])
    await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})
