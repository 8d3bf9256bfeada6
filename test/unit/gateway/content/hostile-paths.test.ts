import { expectError } from '../../../support/gateway/expect-error.js'
import { directory, publisher, text } from '../../../support/gateway/site.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { sendRaw } from '../../../support/server/connections.js'
import { useServers } from '../../../support/server/test-server.js'

// Paths that nobody writes by accident, and what each of them is answered.

const servers = useServers()
const server = await servers.start()
const published = publisher({ server, chain: new FakeChain() })

const file = await published(text('one'))
/** A directory without an index: what is not in it is not found. */
const site = await published(directory({ a: '_1', sub: '_2' }), text('one'), directory({ a: '_1' }))
const FILE = file.outpoint(0)
const SITE = site.outpoint(0)

const NOT_FOUND = { status: 404, code: 'NOT_FOUND' }
const BAD_OUTPOINT = { status: 400, code: 'BAD_OUTPOINT' }
const BAD_SEQUENCE = { status: 400, code: 'BAD_SEQUENCE' }
type Refused = typeof NOT_FOUND

/** Answered alike for GET and HEAD, and whether a query follows or not. */
async function expectRefused(path: string, expected: Refused): Promise<void> {
  expectError(await server.ask(path), expected)
  expectError(await server.ask(`${path}?raw`), expected)
  const { status, body } = await server.ask(path, { method: 'HEAD' })
  expect({ status, length: body.length }).toEqual({ status: expected.status, length: 0 })
}

describe.each(['%2F', '%2f', '%5C', '%5c', '%00', '%0d%0a', '%EF%BB%BF', '%E2%80%8B'])('%s', (escaped) => {
  test.each<[string, string, Refused]>([
    ['behind the word content', `/content${escaped}/${SITE}`, NOT_FOUND],
    ['in place of the slash behind it', `/content${escaped}${SITE}`, NOT_FOUND],
    ['within it', `/con${escaped}tent/${SITE}`, NOT_FOUND],
    ['before the outpoint', `/content/${escaped}${SITE}`, BAD_OUTPOINT],
    ['within the txid', `/content/${SITE.slice(0, 8)}${escaped}${SITE.slice(8)}`, BAD_OUTPOINT],
    ['before the vout', `/content/${site.txid}_${escaped}0`, BAD_OUTPOINT],
    ['behind the vout', `/content/${SITE}${escaped}`, BAD_OUTPOINT],
    ['in place of the slash behind the outpoint', `/content/${SITE}${escaped}a`, BAD_OUTPOINT],
    ['before the sequence', `/content/${SITE}${escaped}:0`, BAD_OUTPOINT],
    ['as the sequence', `/content/${SITE}:${escaped}`, BAD_SEQUENCE],
    ['behind the sequence', `/content/${SITE}:0${escaped}`, BAD_SEQUENCE],
    ['before a name', `/content/${SITE}/${escaped}a`, NOT_FOUND],
    ['as a name', `/content/${SITE}/${escaped}`, NOT_FOUND],
    ['behind a name', `/content/${SITE}/a${escaped}`, NOT_FOUND],
    ['behind a directory', `/content/${SITE}/sub${escaped}/a`, NOT_FOUND],
    ['in place of a slash between names', `/content/${SITE}/sub${escaped}a`, NOT_FOUND],
  ])('%s', async (_, path, expected) => {
    await expectRefused(path, expected)
  })
})

describe('an escape that is broken', () => {
  test.each<[string, string, Refused]>([
    ['in the word content', `/con%zztent/${SITE}`, NOT_FOUND],
    ['in the outpoint', `/content/%zz${SITE}`, BAD_OUTPOINT],
    ['in a name', `/content/${SITE}/%zz`, BAD_OUTPOINT],
    ['half a character', `/content/${SITE}/%E2%80`, BAD_OUTPOINT],
    ['a lone surrogate', `/content/${SITE}/%ED%A0%80`, BAD_OUTPOINT],
  ])('%s', async (_, path, expected) => {
    await expectRefused(path, expected)
  })

  test('is named as what is wrong, and is no matter in a query', async () => {
    const error = 'the path after the outpoint has an invalid percent-escape'
    expectError(await server.ask(`/content/${SITE}/%zz`), { ...BAD_OUTPOINT, error })
    for (const query of ['?%zz', '?%', '?raw=%C0%AF', '?__proto__=1', `?${'raw&'.repeat(1500)}`])
      expect((await server.ask(`/content/${FILE}${query}`)).body.toString()).toBe('one')
  })

  test('is none where it comes of another escape, which is not read again', async () => {
    await expectRefused(`/content/${SITE}/%2561`, NOT_FOUND)
    await expectRefused(`/content/${SITE.replace('_', '%255F')}`, BAD_OUTPOINT)
  })
})

describe('segments that mean something elsewhere', () => {
  test.each<[string, Refused]>([
    [`/content/../content/${SITE}/a`, BAD_OUTPOINT],
    [`/content//${SITE}/a`, BAD_OUTPOINT],
    [`/./content/${SITE}/a`, NOT_FOUND],
    [`/content/${SITE}//a`, NOT_FOUND],
    [`/content/${SITE}/a/`, NOT_FOUND],
    [`/content/${SITE}/.`, NOT_FOUND],
    [`/content/${SITE}/./a`, NOT_FOUND],
    [`/content/${SITE}/..`, NOT_FOUND],
    [`/content/${SITE}/sub/../a`, NOT_FOUND],
    [`/content/${SITE}/../${FILE}`, NOT_FOUND],
    [`/content/${SITE}/../../health`, NOT_FOUND],
    [`/CONTENT/${SITE}/a`, NOT_FOUND],
  ])('%s', async (path, expected) => {
    await expectRefused(path, expected)
  })
})

describe('a path of 8 KiB', () => {
  const KiB8 = 8 * 1024
  test.each<[string, string, Refused]>([
    ['in one name', `/content/${SITE}/${'f'.repeat(KiB8)}`, NOT_FOUND],
    ['in the outpoint', `/content/${'f'.repeat(KiB8)}`, BAD_OUTPOINT],
    ['in the sequence', `/content/${FILE}:${'1'.repeat(KiB8)}`, BAD_SEQUENCE],
  ])('%s', async (_, path, expected) => {
    await expectRefused(path, expected)
  })

  test('says back no more than the start of it, and is too long at 20 KiB', async () => {
    expect((await server.ask(`/content/${'f'.repeat(KiB8)}`)).body.length).toBeLessThan(300)
    expect((await server.ask(`/content/${SITE}/${'f'.repeat(20 * 1024)}`)).status).toBe(431)
  })
})

describe('a request target', () => {
  const asked = async (target: string): Promise<string> =>
    await sendRaw(server.url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)

  test.each([
    ['http://[x/content', 404, 'NOT_FOUND'],
    [`http://[::1/content/${FILE}`, 404, 'NOT_FOUND'],
    ['http://', 404, 'NOT_FOUND'],
    ['http://%zz:x/', 400, 'BAD_BODY'],
    [`http://user:pass@elsewhere.example/content/${FILE}`, 400, 'BAD_BODY'],
  ])('%s is answered in the shape of all errors, though it cannot be read', async (target, status, code) => {
    const [head = '', body = ''] = (await asked(target)).split('\r\n\r\n')
    expect(head).toMatch(/\r\nContent-Type: application\/json; charset=utf-8\r\n/)
    expect(head).toMatch(/\r\nAccess-Control-Allow-Origin: \*\r\n/)
    expect([head.split(' ')[1], JSON.parse(body)]).toEqual([
      String(status),
      { error: expect.any(String), code },
    ])
  })

  const NO_ROUTE = /^HTTP\/1\.1 404 .*"code":"NOT_FOUND"\}$/s
  const ITS_PATH = /^HTTP\/1\.1 200 .*\r\n\r\none$/s
  test.each<[target: string, answer: RegExp]>([
    ['*', NO_ROUTE],
    ['//elsewhere.example/content', NO_ROUTE],
    [`/content%2F${FILE}`, NO_ROUTE],
    [`http://elsewhere.example/content/${FILE}`, ITS_PATH],
    [`/content/${FILE}#x`, ITS_PATH],
    [`/content/${FILE} x`, /^HTTP\/1\.1 400 /],
    [`/content/${FILE}/\xe9`, /^HTTP\/1\.1 400 /],
  ])('%j is answered %s', async (target, answer) => {
    expect(await asked(target)).toMatch(answer)
  })

  test('never sends a reader to another host', async () => {
    const index = await published(directory({ 'index.html': '_1' }), text('index'))
    const path = `/content/${index.outpoint(0)}`
    for (const host of ['', 'http://elsewhere.example'])
      expect(await asked(host + path)).toContain(`\r\nLocation: ${path}/index.html\r\n`)
  })
})
