import { Ajv2020 } from 'ajv/dist/2020.js'
import type { OpenapiDocument, OperationObject } from '../../../../src/gateway/openapi/document.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { IS_NIGHTLY } from '../../../support/nightly.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { AS_OPERATOR, OPERATOR, posted, treeOf, useServers } from '../../../support/server/test-server.js'

// What the document says a client may send is what the server takes: for every parameter and every body in JSON, with values
// that are right, nearly right and wrong.

const chain = new FakeChain()
const server = await useServers().start({ ...treeOf(chain.deployment), ...OPERATOR })
const mint = chain.mint('a')
const note = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array([0x61]) })
for (const each of [chain.genesis, mint, note]) await server.submit(beefOf(each), ['tm_names', 'tm_ordinals'])
const held = note.outpoint(0)
const document = (await server.ask('/openapi.json')).json as OpenapiDocument

const ajv = new Ajv2020()
ajv.addVocabulary(Object.keys(document))
ajv.addSchema(document, 'openapi')

/** Whether the document takes a value, at a place in it. */
function takes(pointer: string[], value: unknown): boolean {
  const written = pointer.map((token) =>
    encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1')),
  )
  const check = ajv.getSchema(`openapi#/${written.join('/')}`)
  if (check === undefined) throw new Error(`there is no schema at ${written.join('/')}`)
  return check(value) as boolean
}

/** The value of a text in a URL: a number only as JSON writes it. */
function readText(text: string, { type }: { type?: unknown }): unknown {
  return type === 'integer' && /^-?(?:0|[1-9]\d*)$/.test(text) ? Number(text) : text
}

const { txid } = note
const OUTPOINTS = [held, `${txid}.0`, `${txid.toUpperCase()}_0`, `${txid}_4294967295`, `${txid}_4294967296`]
/** An address of the main network, and one of the test network. */
const ADDRESSES = ['1BoatSLRHtKNngkdXEeobR76b53LETtpyT', 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r']
const WORDS = `
  0 1 -1 01 +1 1.5 1e2 99 100 101 1000 1001 4294967295 4294967296
  999999999999999 9007199254740991 9007199254740992 9999999999 10000000000
  true false TRUE oldest newest name content outpoint name:a name: content:x x:y
  a A ab a-b ä ["tm_names"] [] tm_names ls_names 1-1 1-0 800000-5 _ . % ,
  text/plain PHA+ PHA- PHA_ PHA= PHA PA== P ==== *
`
const REPEATED = [100, 101, 255, 256, 301, 1000].map((length) => 'a'.repeat(length))
const OUTPOINT_LIKE = ['_01', '_-1', '_', ':1'].map((rest) => txid + rest)
const POINTERS = [':0', ':-1', ':-2', ':-3', ':01', ':x', ':', ','].map((rest) => held + rest)
const LISTS = [2, 16, 17].map((count) => new Array(count).fill(held).join(','))
const TEXTS = [
  ...WORDS.trim().split(/\s+/),
  ...[' 1', 'a b', 'text/plain; charset=utf-8'],
  ...[txid, txid.toUpperCase(), txid.slice(1)],
  ...[...OUTPOINTS, ...OUTPOINT_LIKE, ...POINTERS, ...LISTS, ...REPEATED],
  ...[...ADDRESSES, '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy'],
]
const NUMBERS = [0, 1, -1, 1.5, 0xffffffff, 0x100000000, 2 ** 53]
const VALUES = [...TEXTS, '', ...NUMBERS, true, null, [], {}, [held], ['x']]
/** Parameters with which an operation answers, so that another is judged alone. */
const PATH: Record<string, string> = {
  ...{ reference: held, outpoint: held, id: held, txid, domain: 'a', html: 'PHA', filepath: 'x', page: '0' },
}
const GIVEN: Record<string, Record<string, string>> = {
  ordinals: { contentType: 'text/plain', key: 'k', value: 'v' },
  search: { text: 'a' },
  topicDocumentation: { manager: 'tm_names' },
  lookupDocumentation: { lookupService: 'ls_names' },
}
const SUBJECTS = [{ outpoint: held }, { sha256: txid }, { name: 'b' }]
/** Bodies with which they do: each of their values is replaced by others. */
const BODIES: Record<string, unknown[]> = {
  nameOrigins: [[held]],
  metadataOfMany: [[held], { outpoints: [held] }],
  outputs: [[held]],
  spends: [[held]],
  offeredOutputs: [{ version: 1, since: 0, limit: 5 }],
  syncNode: [{ graphID: `${txid}.0`, txid, outputIndex: 0 }],
  topicAnchorTip: [{}],
  topicAnchorRange: [{ fromHeight: 0, toHeight: 1 }],
  admittedList: [{ blockHeight: 1, blockHash: txid }],
  compoundMerklePath: [{ blockHeight: 1, txids: [txid] }],
  rawTransactions: [{ txids: [txid] }],
  lookup: [{ service: 'ls_names', query: { name: 'a' } }],
  ingestProof: [{ txid, blockHeight: 1 }, [{ txid }], { callbacks: [{ txid }] }],
  block: SUBJECTS.map((subject) => ({ ...subject, reason: 'x' })),
  unblock: SUBJECTS,
  headersChanged: [{ height: 1 }],
}
/** What no schema says: which services there are, what each answers, and that one number is no less than another. */
const BEYOND = /^(?:lookup (?:service|query)|topicAnchorRange (?:from|to)Height)/

interface Described {
  id: string
  template: string
  method: 'get' | 'post'
  operation: OperationObject
}

/** Those of the first prefix: the others are the same. */
const operations = Object.entries(document.paths).flatMap(([template, item]) =>
  (['get', 'post'] as const).flatMap((method): Described[] => {
    const operation = item[method]
    return operation === undefined || /\d$/.test(operation.operationId)
      ? []
      : [{ id: operation.operationId, template, method, operation }]
  }),
)

const parameters = operations
  .flatMap(({ operation, ...described }) =>
    operation.parameters.map((parameter, at) => ({ ...described, ...parameter, at })),
  )
  .filter((each) => each.in !== 'header')

/** With what a parameter is tried: those that are described alike share all texts out among them, but at night. */
function textsFor(of: (typeof parameters)[number]): string[] {
  const alike = parameters.filter(({ schema }) => JSON.stringify(schema) === JSON.stringify(of.schema))
  return TEXTS.filter((_, at) => IS_NIGHTLY || alike[at % alike.length] === of)
}

function pathOf(id: string, template: string, given: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const usual = name === 'name' ? (id === 'mineName' ? 'ab' : 'a') : (PATH[name] ?? 'x')
    return encodeURIComponent(given[name] ?? usual)
  })
}

test.each(parameters)('$id takes the $name that the document describes, and no other', async (parameter) => {
  const { id, template, method, name, at } = parameter
  const differing: unknown[] = []
  const isPath = parameter.in === 'path'
  // A path that is none of a few is not there.
  const refused = isPath && 'enum' in (parameter.schema ?? {}) ? 404 : 400
  for (const text of textsFor(parameter)) {
    const query = { ...GIVEN[id], ...(!isPath && { [name]: text }) }
    const path = `${pathOf(id, template, isPath ? { [name]: text } : {})}?${new URLSearchParams(query)}`
    const value = readText(text, parameter.schema ?? {})
    const described = takes(['paths', template, method, 'parameters', String(at), 'schema'], value)
    const body = BODIES[id]?.[0]
    const question = { ...(body !== undefined && posted(body)), headers: AS_OPERATOR }
    const { status } = await server.ask(path, question)
    const taken = status !== refused && status !== 414
    if (taken !== described) differing.push({ text, status, described })
  }
  expect(differing).toEqual([])
})

/** A body with each of its values replaced by others, or left out; by day, places share out the texts. */
function variants(body: unknown, place: string[] = []): [place: string, body: unknown][] {
  const share = (place.length + place.join('').length) % 4
  const tried = VALUES.filter((_, at) => IS_NIGHTLY || at % 4 === share || at >= TEXTS.length)
  const others = tried.map((value): [string, unknown] => [place.join('.'), value])
  if (typeof body !== 'object' || body === null) return others
  const list = Array.isArray(body)
  const inner = Object.entries(body).flatMap(([key, value]) =>
    variants(value, [...place, list ? '' : key]).map(([at, other]): [string, unknown] => [
      at,
      list ? Object.assign([...body], { [key]: other }) : { ...body, [key]: other },
    ]),
  )
  const without = Object.keys(body).map((key): [string, unknown] => [
    place.join('.'),
    list ? [] : Object.fromEntries(Object.entries(body).filter(([each]) => each !== key)),
  ])
  const lengths = [1, 16, 100, 101, 500, 501, 1000, 1001]
  const more = list ? lengths.map((count) => new Array(count).fill(body[0])) : [{ ...body, more: 1 }]
  const longer = more.map((each): [string, unknown] => [place.join('.'), each])
  return [...others, ...inner, ...without, ...longer]
}

const bodied = operations.filter(({ operation }) => operation.requestBody?.content['application/json'])

test.each(bodied)('$id takes the body that the document describes, and no other', async (asked) => {
  const { id, template, method } = asked
  const pointer = ['paths', template, method, 'requestBody', 'content', 'application/json', 'schema']
  const differing: unknown[] = []
  const tried = (BODIES[id] ?? []).flatMap((each) => variants(each))
  for (const [place, body] of new Map(tried.map((each) => [JSON.stringify(each), each])).values()) {
    if (BEYOND.test(`${id} ${place}`)) continue
    const described = takes(pointer, body)
    const headers = { 'x-bsv-topic': 'tm_names', ...AS_OPERATOR }
    const { status, json } = await server.ask(template, { ...posted(body), headers })
    const taken = status !== 400 && status !== 413
    if (taken !== described) differing.push({ place, body, status, json, described })
  }
  expect(differing).toEqual([])
})

test('the bodies of all operations are tried', () => {
  expect(bodied.map(({ id }) => id).sort()).toEqual(Object.keys(BODIES).sort())
})

// Patterns cannot say what the checksum is, nor what is a media type.
test.each([
  'owner=3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy',
  'owner=1BoatSLRHtKNngkdXEeobR76b53LETtpyU',
  'contentType=image',
])('what is no P2PKH address or media type is refused as that: %s', async (query) => {
  const error = expect.stringContaining('P2PKH address of main or test')
  expectError(await server.ask(`/svc/gateway/ordinals?${query}`), { status: 400, code: 'BAD_BODY', error })
})
