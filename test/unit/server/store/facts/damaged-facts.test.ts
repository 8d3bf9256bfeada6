import { Sql, type SqlValue } from '../../../../../backend/src/facts/connection.js'
import { FACT } from '../../../../../backend/src/facts/log.js'
import { sha256 } from '../../../../../backend/src/graph/native-hash.js'
import { CHUNK_BYTES } from '../../../../../backend/src/graph/records.js'
import { utf8 } from '../../../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../../../backend/src/writer/local-writer.js'
import { expectError } from '../../../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../../support/protocol/fake-chain.js'
import { posted, type TestServer, useServers } from '../../../../support/server/test-server.js'

// Bytes are held against their hash as they are read: what has another one is not served.

const servers = useServers()
const start = () => servers.start()
const LONG = Buffer.from(new Uint8Array(3 * CHUNK_BYTES + 7).map((_, at) => at * 7 + (at >> 8) + (at >> 18)))

async function inscribed(server: TestServer, body: Uint8Array): Promise<FakeTransaction> {
  const chain = new FakeChain()
  const funding = chain.spend({ outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  const origin = chain.spend({
    inputs: [funding],
    outputs: [inscriptionScript({ contentType: 'image/x-test', body })],
  })
  await server.take(beefOf(origin, { with: [funding] }), ['tm_ordinals'])
  return origin
}

/** Runs a statement on the log whose first two parameters are the kind and the key of a transaction. */
function change(
  server: TestServer,
  { txid }: FakeTransaction,
  statement: string,
  ...values: SqlValue[]
): void {
  const sql = new Sql(storeFiles(server.dataDir).log)
  const changed = sql.run(statement, ...values, FACT.transaction, Buffer.from(txid, 'hex'))
  sql.close()
  expect(changed).toBeGreaterThan(0)
}

/** Changes a bit of what a statement selects. */
function flipped(server: TestServer, { txid }: FakeTransaction, select: string, part: Uint8Array): Buffer {
  const sql = new Sql(storeFiles(server.dataDir).log)
  const bytes = Buffer.from(sql.get(select, FACT.transaction, Buffer.from(txid, 'hex'))?.bytes)
  sql.close()
  const at = bytes.indexOf(part)
  expect(at).toBeGreaterThan(0)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  return bytes
}

const ROW = 'select body as bytes from log where kind = ? and key = ?'
const SET_ROW = 'update log set body = ? where kind = ? and key = ?'

test('a short body is 503 on every way to it, and so is its transaction', async () => {
  const server = await start()
  const body = utf8('a text that is damaged')
  const origin = await inscribed(server, body)
  change(server, origin, SET_ROW, flipped(server, origin, ROW, body))
  for (const path of [
    `/content/${origin.outpoint(0)}`,
    `/content/${origin.outpoint(0)}:-1`,
    `/svc/gateway/stream/${origin.outpoint(0)}`,
    `/svc/beef/${origin.txid}`,
    `/svc/beef/${origin.txid}/tx`,
    `/svc/gateway/proof/${origin.outpoint(0)}`,
  ]) {
    const answer = await server.ask(path)
    expectError(answer, { status: 503, code: 'DAMAGED' })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers).not.toHaveProperty('etag')
  }
  // What does not need the bytes is answered.
  expect((await server.ask(`/svc/gateway/metadata/${origin.outpoint(0)}`)).status).toBe(200)
  const { status, json } = await server.ask('/health')
  expect({ status, damaged: (json as { damaged: string[] }).damaged }).toEqual({
    status: 200,
    damaged: expect.arrayContaining([sha256(body).toString('hex'), origin.txid]),
  })
  expect((await server.ask('/health/ready')).status).toBe(200)
})

test('a transaction is 503 where another part of it is damaged, and its body is served', async () => {
  const server = await start()
  const body = utf8('one')
  const origin = await inscribed(server, body)
  const lock = p2pkh(1)
  change(server, origin, SET_ROW, flipped(server, origin, ROW, lock))
  expectError(await server.ask(`/svc/beef/${origin.txid}`), { status: 503, code: 'DAMAGED' })
  expect((await server.ask(`/content/${origin.outpoint(0)}`)).body.toString()).toBe('one')
})

test.each([
  ['changed', 'update chunk set bytes = zeroblob(length(bytes)) where kind = ? and key = ? and position = 2'],
  [
    'another one',
    `update chunk set bytes = (select bytes from chunk as other where other.key = chunk.key and position = 0)
     where kind = ? and key = ? and position = 2`,
  ],
  ['gone', 'delete from chunk where kind = ? and key = ? and position = 2'],
])('of a long body with a chunk that is %s, the ranges in others are served', async (_, statement) => {
  const server = await start()
  const origin = await inscribed(server, LONG)
  change(server, origin, statement)
  const path = `/content/${origin.outpoint(0)}`
  const asked = (range: string) => server.ask(path, { headers: { Range: range } })
  // A chunk of the body begins in one of the transaction, and ends in the next.
  expect((await asked(`bytes=0-${CHUNK_BYTES - 1}`)).body.equals(LONG.subarray(0, CHUNK_BYTES))).toBe(true)
  expect((await asked('bytes=-7')).body.equals(LONG.subarray(-7))).toBe(true)
  expectError(await asked(`bytes=${2 * CHUNK_BYTES}-${2 * CHUNK_BYTES + 9}`), {
    status: 503,
    code: 'DAMAGED',
  })
  // The head is out: only the connection can say so.
  await expect(server.ask(path, { agent: false })).rejects.toThrow(/aborted|hang up|ECONNRESET/)
})

test.each([
  ['the end', 3],
  ['all but the first chunk', 1],
])('a long transaction without %s is never sent as if it were whole', async (_, from) => {
  const server = await start()
  const origin = await inscribed(server, LONG)
  change(server, origin, `delete from chunk where kind = ? and key = ? and position >= ${from}`)
  const graph = { graphID: `${origin.txid}.0`, txid: origin.txid, outputIndex: 0 }
  const node = posted(graph, { 'x-bsv-topic': 'tm_ordinals' })
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
