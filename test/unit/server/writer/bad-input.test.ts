import { createCipheriv } from 'node:crypto'
import { fromHex, joinBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { type ExpectedError, expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { varint } from '../../../support/protocol/raw-transaction.js'
import { posted, type Question, submission, treeOf, useServers } from '../../../support/server/test-server.js'

// One line a case: what is sent, and what is said of it. Nothing here may be stored, and nothing may be a 500.

const servers = useServers()
const chain = new FakeChain()
const a = chain.mint('a')
const good = beefOf(a)
const txid = a.txid

const server = await servers.start({ ...treeOf(chain.deployment), MAX_BODY_BYTES: String(20 * 1024 * 1024) })
await server.submit(beefOf(chain.genesis))
const empty = server.rows()

/** Further good submissions, one for each case: mints of names that nothing else here mints. */
let next = 0
async function expectNextIsAdmitted(): Promise<void> {
  next++
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8(`good ${next}`) })
  await server.take(beefOf(note), ['tm_ordinals'])
  expect((await server.ask(`/content/${note.outpoint(0)}`)).body.toString()).toBe(`good ${next}`)
}

async function expectRefused(path: string, question: Question, expected: ExpectedError): Promise<void> {
  const before = server.rows()
  expectError(await server.ask(path, question), expected)
  expect(server.rows()).toEqual(before)
  await expectNextIsAdmitted()
}

const BAD_BODY = { status: 400, code: 'BAD_BODY', overlay: true }

test('the store holds the genesis alone to begin with', () => {
  expect([empty.nodes?.length, empty.names]).toEqual([1, []])
})

describe('/submit with topics that are none', () => {
  const withTopics = (header: string | undefined): Question => ({
    ...{ method: 'POST', body: good },
    headers: {
      'Content-Type': 'application/octet-stream',
      ...(header !== undefined && { 'X-Topics': header }),
    },
  })
  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['half of JSON', '["tm_names"'],
    ['a string', '"tm_names"'],
    ['an object', '{"0":"tm_names"}'],
    ['null', 'null'],
    ['an empty list', '[]'],
    ['a list of numbers', '[1]'],
    ['a list in a list', '[["tm_names"]]'],
    ['33 topics', JSON.stringify(Array.from({ length: 33 }, () => 'tm_names'))],
    ['an unknown topic', '["tm_other"]'],
    ['an unknown topic beside a known one', '["tm_names","tm_other"]'],
    ['a lookup service', '["ls_names"]'],
    ['an alias of another profile', '["tm_opns"]'],
    ['__proto__', '["__proto__"]'],
    ['constructor', '["constructor"]'],
    ['an empty name', '[""]'],
  ])('%s', async (_, header) => {
    await expectRefused('/submit', withTopics(header), BAD_BODY)
  })
})

// What is a BEEF at all: test/unit/graph/read-beef.test.ts.
describe('/submit with a body that is no BEEF', () => {
  /** Noise that is the same each time. */
  const noise = (length: number): Uint8Array =>
    createCipheriv('aes-128-ctr', new Uint8Array(16), new Uint8Array(16)).update(new Uint8Array(length))
  const MiB = 1024 * 1024
  const V1 = fromHex('0100beef')

  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['JSON', utf8('{"beef":[1,2,3]}')],
    ['2^64 - 1 transactions', joinBytes([V1, varint(0), fromHex('ffffffffffffffffff')])],
    ['a path of 2^32 - 1 leaves', joinBytes([V1, varint(1), varint(1), varint(1), varint(0xffffffff)])],
    [
      'a transaction of 2^53 inputs',
      joinBytes([V1, varint(0), varint(1), fromHex('01000000ff00000000000020')]),
    ],
    ['a subject without proof and without ancestors', beefOf(a, { proven: false })],
    ['an unproven ancestor', beefOf(a, { proven: false, with: [chain.genesis], unproven: [chain.genesis] })],
    ['a path at a height that no block has', beefOf(a, { height: 0xffffffff })],
    ['10 MiB of noise', noise(10 * MiB)],
  ])('%s', async (_, body) => {
    await expectRefused('/submit', submission(body), BAD_BODY)
  })
})

describe('/submit with off-chain values framed wrongly', () => {
  const framed = (body: Uint8Array): Question => {
    const asked = submission(body, ['tm_ordinals'])
    return { ...asked, headers: { ...asked.headers, 'x-includes-off-chain-values': 'true' } }
  }
  test.each<[string, Uint8Array]>([
    ['no length before the BEEF', good],
    ['a length beyond the body', joinBytes([varint(good.length + 1), good])],
    ['a length of nothing', joinBytes([varint(0), good])],
    ['a length that cuts the BEEF short', joinBytes([varint(good.length - 1), good])],
    ['a length that breaks off', Uint8Array.of(0xfd, 1)],
    ['a length of 2^64 - 1', joinBytes([fromHex('ffffffffffffffffff'), good])],
  ])('%s', async (_, body) => {
    await expectRefused('/submit', framed(body), BAD_BODY)
  })
})

describe('/lookup', () => {
  const names = (query: unknown): Question => posted({ service: 'ls_names', query })
  const ordinals = (query: unknown): Question => posted({ service: 'ls_ordinals', query })
  const text = (body: string): Question => ({ method: 'POST', body })
  test.each<[string, Question]>([
    ['no body', { method: 'POST' }],
    ['bad JSON', text('{"service":')],
    ['bytes', text('\0\x01\x02')],
    ['a list', posted([])],
    ['null', posted(null)],
    ['a number', posted(1)],
    ['no service', posted({ query: { name: 'a' } })],
    ['a service that is no text', posted({ service: 1, query: { name: 'a' } })],
    ['an unknown service', posted({ service: 'ls_other', query: {} })],
    ['a topic', posted({ service: 'tm_names', query: {} })],
    ['__proto__', text('{"service":"__proto__","query":{}}')],
    ['constructor', posted({ service: 'constructor', query: {} })],
    ['no query', posted({ service: 'ls_names' })],
    ['an empty query', names({})],
    ['a query of text', names('a')],
    ['an unknown form', names({ owner: 'a' })],
    ['two forms at once', names({ name: 'a', origin: 'a' })],
    ['a name of capitals', names({ name: 'A' })],
    ['a name of 256 characters', names({ name: 'a'.repeat(256) })],
    ['an empty name', names({ name: '' })],
    ['a name that is no text', names({ name: { $gt: '' } })],
    ['a prefix that is none', names({ prefix: '%' })],
    ['a limit of 101', names({ prefix: '', limit: 101 })],
    ['a limit of 0', names({ prefix: '', limit: 0 })],
    ['half a limit', names({ prefix: '', limit: 1.5 })],
    ['1,001 origins', names({ origins: Array.from({ length: 1001 }, () => `${txid}_2`) })],
    ['a bad origin', names({ origins: [`${txid}_02`] })],
    ['an outpoint that is none', ordinals({ outpoint: 'a_0' })],
    ['an unknown form of ordinals', ordinals({ name: 'a' })],
    ['an ordinal and more', ordinals({ outpoint: `${txid}_0`, more: 1 })],
    ['no UTF-8', { method: 'POST', body: Buffer.from('{"service":"ls_names\xff"}', 'latin1') }],
  ])('%s', async (_, question) => {
    await expectRefused('/lookup', question, BAD_BODY)
    const binary = { ...question, headers: { ...question.headers, 'X-Aggregation': 'yes' } }
    expectError(await server.ask('/lookup', binary), BAD_BODY)
  })
})

describe('names', () => {
  const BAD_NAME = { status: 400, code: 'BAD_NAME' }
  const NOT_FOUND = { status: 404, code: 'NOT_FOUND' }
  const bad = 'A aB a.b a_b a%20b a%00 %C3%A9 %D0%B0 %E2%80%8Ba a%2Fb ..%2F a%27'.split(' ')
  test.each(['origin', 'mine'])('/%s of what is no name', async (route) => {
    for (const name of [...bad, 'a'.repeat(256), 'a'.repeat(8000)])
      expectError(await server.ask(`/svc/names/${route}/${name}`), BAD_NAME)
    expectError(await server.ask(`/svc/names/${route}/`), NOT_FOUND)
    for (const broken of ['%zz', '%', 'a%E2', '%FF', '%E2%80'])
      expectError(await server.ask(`/svc/names/${route}/${broken}`), BAD_NAME)
    await expectNextIsAdmitted()
  })
})

test('after all that, the mint is admitted', async () => {
  const { nodes, names } = server.rows()
  expect({ nodes, names }).toEqual({ nodes: empty.nodes, names: [] })
  expect((await server.submit(good)).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
  expect((await server.ask('/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: a.outpoint(2) })
  expect((await server.ask('/health')).json).toMatchObject({ status: 'ok', live: true, ready: true })
})

test('/submit with a transaction of more outputs than one submission may cost is over the limit', async () => {
  const outputs = Array.from({ length: 30_001 }, () => ({ satoshis: 0, lockingScript: new Uint8Array() }))
  const wide = beefOf(chain.spend({ outputs }))
  await expectRefused('/submit', submission(wide), { status: 413, code: 'TOO_LARGE', overlay: true })
})
