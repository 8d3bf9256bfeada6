import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'libsql'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { check } from '../../../../src/server/store/backup/backup.js'
import type { Damage } from '../../../../src/server/store/check.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, p2pkh } from '../../../support/protocol/fake-chain.js'
import { type TestServer, useServers } from '../../../support/server/test-server.js'

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

/** Changes a bit in a chunk; `sql` may do something else to it. */
function damage(server: TestServer, owner: string, position: number, sql?: string): void {
  const database = new Database(join(server.dataDir, 'minetree.sqlite'))
  const key = [Buffer.from(owner, 'hex'), position]
  const { bytes } = database
    .prepare('select bytes from graph_pieces where owner = ? and position = ?')
    .get(key) as {
    bytes: ArrayBuffer
  }
  const changed = Buffer.from(bytes)
  const at = changed.length >> 1
  changed[at] = (changed[at] ?? 0) ^ 1
  const { changes } =
    sql === undefined
      ? database
          .prepare('update graph_pieces set bytes = ? where owner = ? and position = ?')
          .run([changed, ...key])
      : database.prepare(sql).run(key)
  database.close()
  expect(changes).toBe(1)
}

async function checked(server: TestServer): Promise<Damage[]> {
  const found: Damage[] = []
  const config = readConfig({ DATA_DIR: server.dataDir })
  const options = { onProgress: () => {}, onDamage: (each: Damage) => found.push(each) }
  await check({ config, signal: new AbortController().signal, ...options })
  return found
}

test.each([
  ['changed', undefined, 'damaged'],
  ['cut', 'update graph_pieces set bytes = substr(bytes, 1, 3) where owner = ? and position = ?', 'damaged'],
  ['emptied', "update graph_pieces set bytes = x'' where owner = ? and position = ?", 'damaged'],
  ['gone', 'delete from graph_pieces where owner = ? and position = ?', 'missing'],
])(
  'a body whose only chunk is %s is 503 on every way to it, and nothing is cached',
  async (_, sql, problem) => {
    const server = await start()
    const body = utf8(`text ${problem} ${sql}`)
    const origin = await inscribed(server, 'text/plain', body)
    expect(await checked(server)).toEqual([])
    damage(server, sha256(body), 0, sql)
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
      damaged: expect.arrayContaining([sha256(body)]),
    })
    expect((await server.ask('/health/ready')).status).toBe(200)
    expect(await checked(server)).toEqual([{ kind: 'content', id: sha256(body), problem }])
  },
)

test('of a long body, the ranges in chunks that are intact are served, and no others', async () => {
  const server = await start()
  const origin = await inscribed(server, 'image/x-test', LONG)
  const path = `/content/${origin.outpoint(0)}`
  damage(server, sha256(LONG), 2)
  const asked = (range: string) => server.ask(path, { headers: { Range: range } })
  expect((await asked(`bytes=0-${2 * CHUNK - 1}`)).body.equals(LONG.subarray(0, 2 * CHUNK))).toBe(true)
  expect((await asked('bytes=-7')).body.equals(LONG.subarray(-7))).toBe(true)
  expectError(await asked(`bytes=${2 * CHUNK}-${2 * CHUNK + 9}`), { status: 503, code: 'DAMAGED' })
  // The head is out: only the connection can say so.
  await expect(server.ask(path)).rejects.toThrow(/aborted|hang up|ECONNRESET/)
  expect(await checked(server)).toEqual([{ kind: 'content', id: sha256(LONG), problem: 'damaged' }])
})

test('of a long body, a chunk of other bytes, in the place of another, or missing at the end is found', async () => {
  for (const sql of [
    'update graph_pieces set bytes = (select bytes from graph_pieces as other where other.owner = graph_pieces.owner and other.position = 0) where owner = ? and position = ?',
    'delete from graph_pieces where owner = ? and position = ?',
  ])
    for (const position of [1, 3]) {
      const server = await start()
      const origin = await inscribed(server, 'image/x-test', LONG)
      damage(server, sha256(LONG), position, sql)
      const asked = server.ask(`/content/${origin.outpoint(0)}`, {
        headers: { Range: `bytes=${position * CHUNK}-${position * CHUNK + 5}` },
      })
      expectError(await asked, { status: 503, code: 'DAMAGED' })
      expect(await checked(server)).toEqual([{ kind: 'content', id: sha256(LONG), problem: 'damaged' }])
    }
})

test('a damaged transaction is 503, also for who builds on it, and what is damaged is MAP is found too', async () => {
  const server = await start()
  const origin = await inscribed(server, 'text/plain', utf8('one'), mapTail({ name: 'x'.repeat(50) }))
  damage(server, origin.txid, 0)
  expectError(await server.ask(`/svc/gateway/proof/${origin.outpoint(0)}`), { status: 503, code: 'DAMAGED' })
  expectError(await server.ask(`/svc/beef/${origin.txid}`), { status: 503, code: 'DAMAGED' })
  expectError(await server.ask(`/svc/beef/${origin.txid}/tx`), { status: 503, code: 'DAMAGED' })
  expect((await server.ask(`/content/${origin.outpoint(0)}`)).body.toString()).toBe('one')
  const database = new Database(join(server.dataDir, 'minetree.sqlite'))
  const changed = database
    .prepare("update graph_pieces set bytes = x'00' where checksum is not null")
    .run([]).changes
  database.close()
  expect(changed).toBe(1)
  expect((await checked(server)).map(({ kind }) => kind).sort()).toEqual(['other', 'transaction'])
})

test.each([
  ['the end', 3],
  ['all but the first chunk', 1],
])('a long transaction without %s is never sent as if it were whole', async (_, from) => {
  const server = await start()
  const origin = await inscribed(server, 'image/x-test', LONG)
  const database = new Database(join(server.dataDir, 'minetree.sqlite'))
  const { changes } = database
    .prepare('delete from graph_pieces where owner = ? and position >= ?')
    .run([Buffer.from(origin.txid, 'hex'), from])
  database.close()
  expect(changes).toBe(4 - from)
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
