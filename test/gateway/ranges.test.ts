import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expectError } from '../support/expect-error.js'
import { beefOf, FakeChain } from '../support/fake-chain.js'
import { type Answer, useServers } from '../support/test-server.js'

/** A case of `test/vectors/ranges.json`, which says what each field is. */
interface RangeCase {
  name: string
  method?: string
  length: number
  headers: Record<string, string>
  rangesRepeated?: number
  status: number
  contentRange?: string
  contentLength?: number
  slice?: [from: number, to: number]
}

const vectors = readFileSync(join(import.meta.dirname, '../vectors/ranges.json'), 'utf8')
const { cases } = JSON.parse(vectors) as { cases: RangeCase[] }

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start()

const bodyOf = (length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, at) => at * 7 + (at >> 8)))
const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const paths = new Map<number, Promise<string>>()
/** Where the body of a length is served. */
function pathOf(length: number): Promise<string> {
  const path = paths.get(length) ?? inscribed(bodyOf(length))
  paths.set(length, path)
  return path
}

async function inscribed(body: Uint8Array): Promise<string> {
  const transaction = chain.inscribe({ contentType: 'image/x-test', body })
  expect((await server.submit(beefOf(transaction), ['tm_ordinals'])).status).toBe(200)
  return `/content/${transaction.outpoint(0)}`
}

async function answerTo({ method, length, headers, rangesRepeated = 1 }: RangeCase): Promise<Answer> {
  const sha256 = sha256Of(bodyOf(length))
  const sent = Object.entries(headers).map(([name, value]) => {
    const filled = value.replaceAll('<etag>', `"${sha256}"`).replaceAll('<sha256>', sha256)
    if (name !== 'Range' || rangesRepeated === 1) return [name, filled]
    const ranges = filled.slice('bytes='.length)
    return [name, `bytes=${new Array(rangesRepeated).fill(ranges).join()}`]
  })
  return await server.ask(await pathOf(length), { method, headers: Object.fromEntries(sent) })
}

describe('content answers as the vectors say', () => {
  test.each(cases.map((each) => [each.name, each] as const))('%s', async (_, each) => {
    const { status, headers, body } = await answerTo(each)
    expect(status).toBe(each.status)
    expect(headers['content-range']).toBe(each.contentRange)
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(headers['x-content-type-options']).toBe('nosniff')
    if (each.status === 416) {
      expect(JSON.parse(body.toString())).toEqual({
        error: expect.stringContaining(`${each.length} bytes`),
        code: 'RANGE_NOT_SATISFIABLE',
      })
      expect(headers['content-type']).toMatch('application/json')
      expect(headers['cache-control']).toBe('no-store')
      expect(headers.etag).toBeUndefined()
      return
    }
    const whole = bodyOf(each.length)
    expect(headers.etag).toBe(`"${sha256Of(whole)}"`)
    expect(headers['accept-ranges']).toBe('bytes')
    expect(headers['cache-control']).toContain('immutable')
    expect(headers['content-length']).toBe(each.contentLength?.toString())
    expect(headers['content-type']).toBe(each.status === 304 ? undefined : 'image/x-test')
    expect(body.equals(whole.subarray(...(each.slice ?? [0, 0])))).toBe(true)
  })
})

describe('a body that the store has in part', () => {
  const body = bodyOf(600_000).reverse()
  let path = ''
  beforeAll(async () => {
    path = await inscribed(body)
    const database = new Database(join(server.dataDir, 'minetree.sqlite'))
    const { changes } = database
      .prepare('delete from graph_pieces where owner = ? and position = 1')
      .run([Buffer.from(sha256Of(body), 'hex')])
    database.close()
    expect(changes).toBe(1)
  })
  const asked = (range: string) => server.ask(path, { headers: { Range: range } })

  test.each(['bytes=0-', 'bytes=0-262144'])(
    'breaks the connection where %s needs what is gone, once the head is out',
    async (range) => {
      await expect(asked(range)).rejects.toThrow(/aborted|hang up|ECONNRESET/)
    },
  )

  test.each(['bytes=262144-262145', 'bytes=300000-310000'])(
    'is our fault where %s needs what is gone from its first byte on',
    async (range) => {
      expectError(await asked(range), { status: 500, code: 'INTERNAL' })
    },
  )

  test('still answers with what is there', async () => {
    expect((await asked('bytes=0-262143')).body.equals(body.subarray(0, 262_144))).toBe(true)
    expect((await asked('bytes=-5')).body.equals(body.subarray(-5))).toBe(true)
  })
})
