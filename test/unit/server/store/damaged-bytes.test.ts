import { createHash } from 'node:crypto'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { checkFacts, type FactDamage } from '../../../../src/server/store/facts/check-facts.js'
import { admissionOptions } from '../../../../src/server/submission/admission-options.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, p2pkh } from '../../../support/protocol/fake-chain.js'
import { type TestServer, useServers } from '../../../support/server/test-server.js'
import { bodyInLog, changeStore } from '../../../support/storage/changed-files.js'
import { testConfig } from '../../../support/storage/test-storage.js'

/** Bodies and transactions are found by their hash: bytes that have another one are not served. */

const servers = useServers()
/** Facts have a test of their own. */
const start = () => servers.start({ STORAGE: 'tables' })
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const CHUNK = 256 * 1024
const LONG = Buffer.from(
  Uint8Array.from({ length: 3 * CHUNK + 7 }, (_, at) => at * 7 + (at >> 8) + (at >> 18)),
)

async function inscribed(server: TestServer, contentType: string, body: Uint8Array, suffix?: Uint8Array) {
  const chain = new FakeChain()
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  const lockingScript = inscriptionScript({ contentType, body, ...(suffix && { suffix }) })
  const origin = chain.spend({
    inputs: [{ transaction: funding, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript }],
  })
  expect((await server.submit(beefOf(origin, { with: [funding] }), ['tm_ordinals'])).status).toBe(200)
  return origin
}

const CHUNK_AT = 'kind = 1 and key = ? and position = ?'
const ROW_AT = 'kind = 1 and key = ?'

/** Changes a bit in a chunk of a long transaction; `sql` may do something else to it. */
function damageChunk(server: TestServer, txid: string, position: number, sql?: string): void {
  const change = `update chunk set bytes = cast(substr(bytes, 1, 100) || x'00' || substr(bytes, 102) as blob) where ${CHUNK_AT}`
  expect(changeStore(server, 'log', sql ?? change, Buffer.from(txid, 'hex'), position)).toBe(1)
}

async function checked(server: TestServer): Promise<Omit<FactDamage, 'rows'>[]> {
  const found: Omit<FactDamage, 'rows'>[] = []
  await checkFacts({
    config: testConfig({ DATA_DIR: server.dataDir }),
    admission: admissionOptions,
    signal: new AbortController().signal,
    onProgress: () => {},
    onDamage: ({ rows: _, ...damage }) => found.push(damage),
  })
  return found
}

test.each([
  ['changed', `update log set body = ? where ${ROW_AT}`, ['transaction']],
  ['cut', `update log set body = substr(body, 1, 3) where ${ROW_AT}`, ['transaction']],
  ['emptied', `update log set body = x'' where ${ROW_AT}`, ['transaction']],
  ['gone', `delete from log where ${ROW_AT}`, undefined],
])(
  'a body whose only chunk is %s is 503 on every way to it, and nothing is cached',
  async (how, sql, kinds) => {
    const server = await start()
    const body = utf8(`text ${sql}`)
    const origin = await inscribed(server, 'text/plain', body)
    expect(await checked(server)).toEqual([])
    const changed = bodyInLog(server, origin.txid)
    const at = changed.indexOf(body)
    changed[at] = (changed[at] ?? 0) ^ 1
    const values = how === 'changed' ? [changed] : []
    expect(changeStore(server, 'log', sql, ...values, Buffer.from(origin.txid, 'hex'))).toBe(1)
    for (const path of [
      `/content/${origin.outpoint(0)}`,
      `/content/${origin.outpoint(0)}:-1`,
      `/svc/gateway/stream/${origin.outpoint(0)}`,
    ]) {
      const answer = await server.ask(path)
      expectError(answer, { status: 503, code: 'DAMAGED' })
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(answer.headers).not.toHaveProperty('etag')
    }
    // What does not need the bytes is answered.
    expect((await server.ask(`/svc/gateway/metadata/${origin.outpoint(0)}`)).status).toBe(200)
    const health = await server.ask('/health')
    expect({ status: health.status, damaged: (health.json as { damaged: string[] }).damaged }).toEqual({
      status: 200,
      damaged: expect.arrayContaining([how === 'emptied' ? origin.txid : sha256(body)]),
    })
    expect((await server.ask('/health/ready')).status).toBe(200)
    const found = await checked(server)
    // What is gone altogether, the index knows.
    if (kinds === undefined) expect(new Set(found.map(({ kind }) => kind))).toEqual(new Set(['index']))
    else expect(found).toEqual([{ kind: 'transaction', id: origin.txid, problem: 'damaged' }])
  },
)

test('of a long body, the ranges in chunks that are intact are served, and no others', async () => {
  const server = await start()
  const origin = await inscribed(server, 'image/x-test', LONG)
  const path = `/content/${origin.outpoint(0)}`
  damageChunk(server, origin.txid, 2)
  const asked = (range: string) => server.ask(path, { headers: { Range: range } })
  expect((await asked(`bytes=0-${CHUNK - 1}`)).body.equals(LONG.subarray(0, CHUNK))).toBe(true)
  expect((await asked('bytes=-7')).body.equals(LONG.subarray(-7))).toBe(true)
  expectError(await asked(`bytes=${2 * CHUNK}-${2 * CHUNK + 9}`), { status: 503, code: 'DAMAGED' })
  // The head is out: only the connection can say so.
  await expect(server.ask(path)).rejects.toThrow(/aborted|hang up|ECONNRESET/)
  expect(await checked(server)).toEqual([{ kind: 'transaction', id: origin.txid, problem: 'damaged' }])
})

test('of a long body, a chunk of other bytes, in the place of another, or missing at the end is found', async () => {
  for (const sql of [
    `update chunk set bytes = (select bytes from chunk as other where other.key = chunk.key and other.position = 0) where ${CHUNK_AT}`,
    `delete from chunk where ${CHUNK_AT}`,
  ])
    for (const position of [1, 3]) {
      const server = await start()
      const origin = await inscribed(server, 'image/x-test', LONG)
      damageChunk(server, origin.txid, position, sql)
      const asked = server.ask(`/content/${origin.outpoint(0)}`, {
        headers: {
          Range: `bytes=${Math.min(position * CHUNK, LONG.length - 6)}-${Math.min(position * CHUNK + 5, LONG.length - 1)}`,
        },
      })
      expectError(await asked, { status: 503, code: 'DAMAGED' })
      expect(await checked(server)).toEqual([{ kind: 'transaction', id: origin.txid, problem: 'damaged' }])
    }
})

test('a damaged transaction is 503, also for who builds on it, and what is damaged is MAP is found too', async () => {
  const server = await start()
  const origin = await inscribed(server, 'text/plain', utf8('one'), mapTail({ name: 'x'.repeat(50) }))
  const changed = bodyInLog(server, origin.txid)
  // Of its version: what it says is still there.
  changed[1] = (changed[1] ?? 0) ^ 1
  changeStore(
    server,
    'log',
    `update log set body = ? where ${ROW_AT}`,
    changed,
    Buffer.from(origin.txid, 'hex'),
  )
  expectError(await server.ask(`/svc/gateway/proof/${origin.outpoint(0)}`), { status: 503, code: 'DAMAGED' })
  expectError(await server.ask(`/svc/beef/${origin.txid}`), { status: 503, code: 'DAMAGED' })
  expectError(await server.ask(`/svc/beef/${origin.txid}/tx`), { status: 503, code: 'DAMAGED' })
  expect((await server.ask(`/content/${origin.outpoint(0)}`)).body.toString()).toBe('one')
  expect(await checked(server)).toEqual([{ kind: 'transaction', id: origin.txid, problem: 'damaged' }])
  const other = await start()
  await inscribed(other, 'text/plain', utf8('one'), mapTail({ name: 'x'.repeat(50) }))
  expect(changeStore(other, 'index', "update out set map = x'00' where map is not null")).toBe(1)
  expect(await checked(other)).toEqual([{ kind: 'index', id: 'out', problem: 'differs' }])
})

test.each([
  ['the end', 3],
  ['all but the first chunk', 1],
])('a long transaction without %s is never sent as if it were whole', async (_, from) => {
  const server = await start()
  const origin = await inscribed(server, 'image/x-test', LONG)
  const missing = 'delete from chunk where kind = 1 and key = ? and position >= ?'
  expect(changeStore(server, 'log', missing, Buffer.from(origin.txid, 'hex'), from)).toBe(4 - from)
  const node = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'x-bsv-topic': 'tm_ordinals' },
    body: JSON.stringify({ graphID: `${origin.txid}.0`, txid: origin.txid, outputIndex: 0 }),
  }
  for (const [path, request] of [
    [`/svc/beef/${origin.txid}/tx`],
    [`/svc/beef/${origin.txid}`],
    [`/svc/gateway/proof/${origin.outpoint(0)}`],
    [`/svc/gateway/provenance/${origin.outpoint(0)}`],
    ['/requestForeignGASPNode', node],
  ] as const) {
    const outcome = server.ask(path, request).then(
      ({ status }) => status,
      () => 'broken off',
    )
    expect([503, 'broken off']).toContain(await outcome)
  }
})
