import { vi } from 'vitest'
import { MAP_MARKER } from '../../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { text } from '../../../support/gateway/site.js'
import { livesOn } from '../../../support/graph/lives.js'
import {
  bitcomTail,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { posted, treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const server = await start()
const chain = new FakeChain()
const { submit, transferred, life } = livesOn(server, chain)

const at = (step: FakeTransaction | undefined): string => step?.outpoint(0) ?? ''
const metadata = async (pointer: string) => await server.ask(`/svc/gateway/metadata/${pointer}`)

const PARENT = `${'cd'.repeat(32)}_7`
const child = concatBytes(
  inscriptionScript({ ...text('one'), parent: parseOutpoint(PARENT) }),
  mapTail({ name: 'first', royalties: '[{"percentage":"0.03"}]' }),
)
const steps = await life(child, [
  concatBytes(p2pkh(2), mapTail({ name: 'second', subTypeData: 'not JSON {' })),
  p2pkh(3),
  inscriptionScript({ ...text('three', 'text/css'), lock: p2pkh(4) }),
])
const [first] = steps

test('a record that has changed has another tag', async () => {
  const [origin] = await life('changing', [])
  const before = await metadata(`${at(origin)}:-1`)
  await submit(transferred(origin as FakeTransaction, p2pkh(6)), { with: [origin as FakeTransaction] })
  const known = { 'If-None-Match': String(before.headers.etag) }
  const after = await server.ask(`/svc/gateway/metadata/${at(origin)}:-1`, { headers: known })
  expect([after.status, after.headers.etag === before.headers.etag]).toEqual([200, false])
})

const nowhere = `${'ab'.repeat(32)}_0`

test.each([
  ['what is not here', nowhere, 404, 'NOT_FOUND'],
  ['a step that is not there', `${at(first)}:4`, 404, 'NOT_FOUND'],
  ['no outpoint', 'x', 400, 'BAD_OUTPOINT'],
  ['no sequence', `${at(first)}:x`, 400, 'BAD_SEQUENCE'],
])('%s has no record', async (_, pointer, status, code) => {
  expectError(await metadata(pointer), { status, code })
})

describe('many records at once', () => {
  const bulk = async (body: unknown) => await server.ask('/svc/gateway/metadata', posted(body))

  test('are those of one by one, by the words that they were asked for with', async () => {
    const own = [`${at(first)}:-1`, at(first).replace('_', '.'), `${first?.txid}:0`]
    const asked = [...own, `${at(first)}:99`, nowhere]
    const { status, headers, json } = await bulk(asked)
    expect([status, headers['cache-control']]).toEqual([200, 'no-cache'])
    const records = json as Record<string, unknown>
    expect(Object.keys(records)).toEqual(asked)
    for (const pointer of asked) {
      const single = await metadata(pointer)
      expect(records[pointer]).toEqual(single.status === 404 ? null : single.json)
    }
    expect((await bulk({ outpoints: asked })).json).toEqual(json)
  })

  test('are none where none are asked for, and one where one is asked for twice', async () => {
    expect((await bulk([])).json).toEqual({})
    expect(Object.keys((await bulk([at(first), at(first)])).json as object)).toEqual([at(first)])
  })

  test('are a hundred at the most', async () => {
    const many = Array.from({ length: 101 }, (_, vout) => `${'ab'.repeat(32)}_${vout}`)
    expect(Object.values((await bulk(many.slice(1))).json as object)).toEqual(new Array(100).fill(null))
    expectError(await bulk(many), { status: 413, code: 'TOO_LARGE' })
  })

  test('are none where one of them cannot be meant, which is named', async () => {
    for (const [pointer, code, named] of [
      ['nonsense', 'BAD_OUTPOINT', '"nonsense"'],
      [`${at(first)}:-9`, 'BAD_SEQUENCE', '"-9"'],
    ] as const)
      expectError(await bulk([at(first), pointer]), {
        status: 400,
        code,
        error: expect.stringContaining(named),
      })
  })

  test.each([[null], [7], ['x'], [{}], [[7]], [[null]], [{ outpoints: 'x' }], [[[at(first)]]]])(
    'are not asked for by %j',
    async (body) => {
      expectError(await bulk(body), { status: 400, code: 'BAD_BODY' })
    },
  )
})

describe('metadata in headers', () => {
  const inscribed = async (map: Uint8Array): Promise<FakeTransaction> => {
    const [origin] = await life(concatBytes(inscriptionScript({ body: utf8('x') }), map), [])
    if (origin === undefined) throw new Error('there is an origin')
    return origin
  }
  const headersOf = async (pointer: string) => (await server.ask(`/content/${pointer}`)).headers

  test('is ASCII, whatever was said', async () => {
    const said = { 'ключ\r\nX-Evil: 1': '🙂\0é' }
    const origin = await inscribed(mapTail(said))
    const { 'x-map': text, ...others } = await headersOf(at(origin))
    expect(text).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(String(text))).toEqual(said)
    expect(others).not.toHaveProperty('x-evil')
  })

  test('is left out if it is longer than 4,096 bytes, and complete in the record', async () => {
    const room = 4096 - '{"a":""}'.length
    const fits = await inscribed(mapTail({ a: 'x'.repeat(room) }))
    expect(String((await headersOf(at(fits)))['x-map'])).toHaveLength(4096)
    const long = await inscribed(mapTail({ a: 'x'.repeat(room + 1) }))
    for (const pointer of [at(long), `${at(long)}:-1`]) {
      expect(await headersOf(pointer)).not.toHaveProperty('x-map')
      expect((await metadata(pointer)).json).toMatchObject({ map: { a: 'x'.repeat(room + 1) } })
    }
  })

  test('of up to 12 KiB is sent to a client that asks for it with map=true, and to no other', async () => {
    const room = 12 * 1024 - '{"a":""}'.length
    const fits = await inscribed(mapTail({ a: 'x'.repeat(room) }))
    const long = await inscribed(mapTail({ a: 'x'.repeat(room + 1) }))
    for (const sequence of ['', ':-1', ':0'])
      for (const method of ['GET', 'HEAD']) {
        const mapOf = async (origin: FakeTransaction, query: string) =>
          (await server.ask(`/content/${at(origin)}${sequence}${query}`, { method })).headers['x-map']
        expect(String(await mapOf(fits, '?map=true'))).toHaveLength(12 * 1024)
        for (const query of ['', '?map=false', '?map=1', '?map', '?raw'])
          expect(await mapOf(fits, query)).toBeUndefined()
        expect(await mapOf(long, '?map=true')).toBeUndefined()
      }
  })

  test('of 5 MiB is cut in the record, which says so, and left out of headers', async () => {
    const long = 'y'.repeat(5 * 1024 * 1024)
    const origin = await inscribed(mapTail({ app: 'test', long, type: 'ord' }))
    for (const pointer of [at(origin), `${at(origin)}:0`]) {
      const { status, headers } = await server.ask(`/content/${pointer}`)
      expect(status).toBe(200)
      expect(headers).not.toHaveProperty('x-map')
      const cut = { map: { app: 'test', type: 'ord' }, mapTruncated: true }
      expect((await metadata(pointer)).json).toMatchObject(cut)
    }
  })

  test('that is JSON without a bound is not parsed, however often it is added', async () => {
    const json = JSON.stringify(Array.from({ length: 300_000 }, (_, at) => at))
    const adding = (each: string) =>
      concatBytes(p2pkh(1), bitcomTail([MAP_MARKER, 'ADD', 'subTypeData', each]))
    const origin = concatBytes(inscriptionScript(text('big')), mapTail({ royalties: json, a: '1' }))
    const steps = await life(origin, ['1', `${json} `, json, '2'].map(adding))
    const parse = vi.spyOn(JSON, 'parse')
    const { json: record } = await metadata(`${at(steps.at(-1))}:-1`)
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length))
    parse.mockRestore()
    expect(record).toMatchObject({ map: { a: '1', subTypeData: [1, 2] }, mapTruncated: true })
    expect(longest).toBeLessThan(64 * 1024)
    expect((await server.ask(`/content/${at(steps.at(-1))}:-1`)).headers).not.toHaveProperty('x-map')
  })

  test('has room for MAX_MAP_BYTES in a record, and for sixteen times that in an answer with many', async () => {
    const small = await start({ MAX_MAP_BYTES: '4096', ...treeOf(chain.deployment) })
    const lives = livesOn(small, chain)
    const withMap = async (body: string, map: Record<string, string>) => {
      return at((await lives.life(concatBytes(inscriptionScript(text(body)), mapTail(map)), []))[0])
    }
    const one = await withMap('a', { a: '1', b: 'x'.repeat(3000), c: 'y'.repeat(3000), d: '4' })
    const { json: single } = await small.ask(`/svc/gateway/metadata/${one}`)
    expect(single).toMatchObject({ map: { a: '1', b: 'x'.repeat(3000), d: '4' }, mapTruncated: true })
    expect((await small.ask(`/content/${one}?map=true`)).headers).not.toHaveProperty('x-map')
    const pointers: string[] = []
    for (let body = 0; body < 12; body++) {
      const outpoint = await withMap(`${body}`, { b: `${body}`.padEnd(4000) })
      pointers.push(outpoint, `${outpoint}:-1`)
    }
    const { json: many } = await small.ask('/svc/gateway/metadata', posted(pointers))
    const records = Object.values(many as Record<string, { map: object; mapTruncated?: true }>)
    const bytes = records.reduce((sum, { map }) => sum + JSON.stringify(map).length, 0)
    expect(bytes).toBeGreaterThan(15 * 4096)
    expect(bytes).toBeLessThan(17 * 4096)
    for (const record of records.slice(-2)) expect(record).toMatchObject({ map: {}, mapTruncated: true })
    const { json: plain } = await small.ask('/svc/gateway/metadata', posted([`${chain.genesis.outpoint(0)}`]))
    expect(JSON.stringify(plain)).not.toContain('mapTruncated')
  })
})
