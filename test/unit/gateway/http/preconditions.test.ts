import { builtPages } from '../../../support/cli/built-package.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { text } from '../../../support/gateway/site.js'
import { beefOf, inscriptionScript, p2pkh } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

// RFC 9110 13: what If-Match and If-None-Match ask for, of every route whose answer has an entity tag.

const { server, chain, mine } = await hostedServer(useServers(), {}, { pages: await builtPages() })
const funding = chain.spend({ outputs: [{ satoshis: 2, lockingScript: p2pkh(0) }] })
const note = chain.move(funding, 0, inscriptionScript(text('0123456789')))
await mine('a')
await server.take(beefOf(note, { with: [funding] }), ['tm_ordinals'])

const CONTENT = `/content/${note.outpoint(0)}`
const ROUTES = [
  CONTENT,
  `${CONTENT}:-1`,
  `/svc/gateway/stream/${note.outpoint(0)}`,
  `/svc/gateway/metadata/${note.outpoint(0)}`,
  `/svc/gateway/provenance/${note.outpoint(0)}`,
  '/svc/names/proof/a',
  '/openapi.json',
  '/mine',
  '/mine/main.js',
]

type Headers = Record<string, string>

describe.each(ROUTES)('%s', (path) => {
  let tag = ''
  let policy: unknown
  beforeAll(async () => {
    const { status, headers } = await server.ask(path)
    expect(status).toBe(200)
    tag = String(headers.etag)
    policy = headers['content-security-policy']
    expect(tag).toMatch(/^"[0-9a-f]{64}"$/)
  })

  const CASES: [what: string, headers: (tag: string) => Headers, status: number][] = [
    ['the tag is asked for', (own) => ({ 'If-Match': own }), 200],
    ['any tag is asked for', () => ({ 'If-Match': '*' }), 200],
    ['it is in the list', (own) => ({ 'If-Match': `"a", W/"b",, ${own} ,"c"` }), 200],
    ['the list has a tag with a comma', (own) => ({ 'If-Match': `"a,b", ${own}` }), 200],
    ['another is asked for', () => ({ 'If-Match': '"another"' }), 412],
    ['the weak one is asked for, which never matches', (own) => ({ 'If-Match': `W/${own}` }), 412],
    ['the tag is within another', (own) => ({ 'If-Match': `"x,${own.slice(1, -1)}"` }), 412],
    ['it is known', (own) => ({ 'If-None-Match': own }), 304],
    ['the weak one is known', (own) => ({ 'If-None-Match': `W/${own}` }), 304],
    ['any is known', () => ({ 'If-None-Match': '*' }), 304],
    ['one of a list is known', (own) => ({ 'If-None-Match': `"a", ${own}` }), 304],
    ['another is known', () => ({ 'If-None-Match': '"another"' }), 200],
    ['it is known, and no-cache', (own) => ({ 'If-None-Match': own, 'Cache-Control': 'no-cache' }), 304],
    ['a date is asked for: there is none', () => ({ 'If-Modified-Since': new Date().toUTCString() }), 200],
    ['a date is passed: there is none', () => ({ 'If-Unmodified-Since': new Date(0).toUTCString() }), 200],
    // The order of 13.2.2.
    ['the tag is asked for and known', (own) => ({ 'If-Match': own, 'If-None-Match': own }), 304],
    ['another is asked for, the tag known', (own) => ({ 'If-Match': '"a"', 'If-None-Match': own }), 412],
  ]
  test.each(CASES)('where %s', async (_, headers, status) => {
    const question = { headers: headers(tag) }
    const answer = await server.ask(path, question)
    if (status === 412) expectError(answer, { status, code: 'PRECONDITION_FAILED' })
    else expect({ status: answer.status, etag: answer.headers.etag }).toEqual({ status, etag: tag })
    if (status === 304)
      expect([answer.body.length, answer.headers['content-security-policy']]).toEqual([0, policy])
    expect((await server.ask(path, { ...question, method: 'HEAD' })).status).toBe(status)
  })
})

test('a range is looked at last', async () => {
  const tag = String((await server.ask(CONTENT)).headers.etag)
  const ask = async (headers: Headers): Promise<number> =>
    (await server.ask(CONTENT, { headers: { Range: 'bytes=1-2', ...headers } })).status
  expect(await ask({ 'If-Match': tag })).toBe(206)
  expect(await ask({ 'If-Match': tag, 'If-Range': '"another"' })).toBe(200)
  expect(await ask({ 'If-Match': '"another"', 'If-Range': tag })).toBe(412)
  expect(await ask({ 'If-None-Match': tag, 'If-Range': tag })).toBe(304)
  expect(await ask({ 'If-Match': '"another"', Range: 'bytes=900-' })).toBe(412)
})

test('nothing is asked of what is not there', async () => {
  for (const [name, value] of [
    ['If-Match', '*'],
    ['If-Match', '"a"'],
    ['If-None-Match', '*'],
  ] as const)
    expect((await server.ask(`/content/${note.outpoint(1)}`, { headers: { [name]: value } })).status).toBe(
      404,
    )
})
