import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { chunk } from '../../../support/gateway/streams.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  AS_OPERATOR,
  OPERATOR,
  posted,
  type Question,
  type Subject,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()
const REASON = 'a reason that nobody is given'
const GATEWAY = '/svc/gateway'
const NAMES = '/svc/names'

const chain = new FakeChain()
const env = { ...treeOf(chain.deployment), ...OPERATOR }

async function asOperator(server: TestServer, path: string, value?: unknown): Promise<Answer> {
  return await server.ask(path, value === undefined ? { headers: AS_OPERATOR } : posted(value, AS_OPERATOR))
}
const block = async (server: TestServer, subject: Subject): Promise<void> =>
  expect((await asOperator(server, '/admin/block', { ...subject, reason: REASON })).status).toBe(200)
const unblock = async (server: TestServer, subject: Subject): Promise<void> =>
  expect((await asOperator(server, '/admin/unblock', subject)).json).toMatchObject({ wasBlocked: true })

const spend = (from: FakeTransaction, vout: number, lockingScript = p2pkh(1)): FakeTransaction =>
  chain.move(from, vout, lockingScript)

const text = (body: string) => ({ contentType: 'text/plain', body: utf8(body) })
const hashOf = (body: string): string => sha256(utf8(body)).toString('hex')

/** What was submitted, in order: names, a directory with its files, an ordinal that lives, a stream. */
const mints = [chain.mint('a'), chain.mint('ab'), chain.mint('b')]
const [a] = mints as [FakeTransaction]
const movedA = spend(a, 2)
const purse = chain.spend({ outputs: [1, 2].map((seed) => ({ satoshis: 9, lockingScript: p2pkh(seed) })) })
const site = chain.spend({
  inputs: [purse],
  outputs: [
    inscriptionScript({ contentType: 'gw-fs/json', body: utf8('{"index.html":"_1","b":"_2"}') }),
    inscriptionScript(text('file one')),
    inscriptionScript(text('file two')),
  ],
})
const origin = chain.spend({
  inputs: [{ transaction: purse, vout: 1 }],
  outputs: [inscriptionScript({ ...text('the origin'), suffix: mapTail({ app: 'x' }) }), p2pkh(1)],
})
const step = spend(origin, 0, inscriptionScript({ ...text('a step'), suffix: mapTail({ said: 'badly' }) }))
const tip = spend(step, 0, p2pkh(7))
const chunks = [chain.inscribe(text('one, '))]
for (const body of ['two, ', 'three']) chunks.push(spend(chunks.at(-1) as FakeTransaction, 0, chunk(body)))
const [chunk0, chunk1, chunk2] = chunks as [FakeTransaction, FakeTransaction, FakeTransaction]

const SUBMISSIONS: [Uint8Array, string][] = [
  ...[chain.genesis, ...mints].map((each): [Uint8Array, string] => [beefOf(each), 'tm_names']),
  [beefOf(movedA, { with: [a] }), 'tm_ordinals'],
  [beefOf(site, { with: [purse] }), 'tm_ordinals'],
  // Parents first (BRC-62).
  ...[origin, step, tip, ...chunks].map((each, place, all): [Uint8Array, string] => [
    beefOf(each, { with: [purse, ...all.slice(0, place)] }),
    'tm_ordinals',
  ]),
]

async function submitAll(server: TestServer): Promise<void> {
  for (const [beef, topic] of SUBMISSIONS) await server.take(beef, [topic])
}

const lookup = (service: 'ls_names' | 'ls_ordinals', query: unknown, binary = false): [string, Question] => {
  return ['/lookup', posted({ service, query }, binary ? { 'X-Aggregation': 'yes' } : {})]
}
/** How many names are found. */
const found = async (server: TestServer, query: unknown): Promise<number> =>
  ((await server.ask(...lookup('ls_names', query))).json as { outputs: unknown[] }).outputs.length

const content = (outpoint: string): [string, Question] => [`/content/${outpoint}`, {}]
const get = (path: string): [string, Question] => [path, {}]
/** What the gateway says of an output, and of a step. */
const below = (outpoint: string, step: string): [string, Question][] =>
  [`metadata/${outpoint}`, `metadata/${outpoint}${step}`, `stream/${outpoint}`, `provenance/${outpoint}`].map(
    (path) => get(`${GATEWAY}/${path}`),
  )

/** For what is blocked, the questions that are answered 451 from then on. All are answered well before. */
const CASES: [string, Subject, [string, Question][]][] = [
  [
    'an output',
    { outpoint: site.outpoint(1) },
    [
      content(site.outpoint(1).replace('_', '.').toUpperCase()),
      ...['', ':0', ':-1', '/below'].map((rest) => content(site.outpoint(1) + rest)),
      ...['/index.html', '/missing'].map((rest) => content(site.outpoint(0) + rest)),
      ...below(site.outpoint(1), ':-1'),
      lookup('ls_ordinals', { outpoint: site.outpoint(1) }),
      lookup('ls_ordinals', { outpoint: site.outpoint(1) }, true),
      lookup('ls_ordinals', { outpoint: site.outpoint(1), seq: -1 }),
      lookup('ls_ordinals', { outpoint: site.outpoint(1), seq: 0 }, true),
    ],
  ],
  [
    'the content of one',
    { sha256: hashOf('file two').toUpperCase() },
    [
      ...[site.outpoint(2), `${site.outpoint(2)}:-2`, `${site.outpoint(0)}/b`].map(content),
      ...below(site.outpoint(2), ':0'),
      lookup('ls_ordinals', { outpoint: site.outpoint(2) }),
      lookup('ls_ordinals', { outpoint: site.outpoint(2), seq: -2 }, true),
    ],
  ],
  [
    'a directory',
    { outpoint: site.outpoint(0) },
    [
      ...['', '/', '?raw', '/b', ':0/b'].map((rest) => content(site.outpoint(0) + rest)),
      ...[content(site.txid), get(`${GATEWAY}/metadata/${site.txid}`)],
    ],
  ],
  [
    'a name',
    { name: 'a' },
    [
      ...['/a', '/origin/a', '/proof/a'].map((path) => get(NAMES + path)),
      ...[a.outpoint(2), `${a.outpoint(2)}:0`, `${movedA.outpoint(0)}:-1`].map(content),
      ...below(a.outpoint(2), ':0'),
      get(`${GATEWAY}/provenance/${movedA.outpoint(0)}`),
      ...[false, true].flatMap((history) =>
        [false, true].flatMap((binary) =>
          ['name', 'origin'].map((form) => lookup('ls_names', { [form]: 'a', history }, binary)),
        ),
      ),
      lookup('ls_names', { node: 'a' }),
      lookup('ls_ordinals', { outpoint: a.outpoint(2) }),
    ],
  ],
  [
    'a name that nobody has',
    { name: 'a-new-name' },
    [get(`${NAMES}/mine/a-new-name`), lookup('ls_names', { mine: 'a-new-name' }, true)],
  ],
  [
    'the origin of a name',
    { outpoint: a.outpoint(2) },
    [
      ...['/a', '/origin/a', '/proof/a'].map((path) => get(NAMES + path)),
      lookup('ls_names', { name: 'a' }),
      lookup('ls_names', { origin: 'a', history: true }),
    ],
  ],
  [
    'where a name is now',
    { outpoint: movedA.outpoint(0) },
    [
      get(`${NAMES}/a`),
      lookup('ls_names', { name: 'a' }),
      lookup('ls_names', { name: 'a', history: true }, true),
      lookup('ls_names', { domain: 'a' }),
      lookup('ls_names', { event: 'opns:a' }),
      lookup('ls_names', { outpoint: movedA.outpoint(0) }),
    ],
  ],
  [
    'a live node',
    { outpoint: `${chain.node('').outpoint.txid}_0` },
    [
      get(`${NAMES}/mine/c`),
      lookup('ls_names', { mine: 'c' }),
      lookup('ls_names', { node: '' }, true),
      lookup('ls_names', { event: 'mine:' }),
      lookup('ls_names', { outpoint: `${chain.node('').outpoint.txid}_0` }),
    ],
  ],
  [
    'an ordinal’s origin',
    { outpoint: origin.outpoint(0) },
    [
      ...[origin.txid, `${origin.outpoint(0)}:1`, `${tip.outpoint(0)}:0`, `${tip.outpoint(0)}:-2`].map(
        content,
      ),
      get(`${GATEWAY}/metadata/${tip.outpoint(0)}:-2`),
      get(`${GATEWAY}/provenance/${origin.outpoint(0)}`),
      lookup('ls_ordinals', { outpoint: tip.outpoint(0), seq: 0 }),
      ...['', '/tx'].map((form) => get(`/svc/beef/${origin.txid}${form}`)),
      ...['', '/spend'].map((form) => get(`/svc/txo/${origin.outpoint(0)}${form}`)),
    ],
  ],
  [
    'what an ordinal shows',
    { sha256: hashOf('a step') },
    [
      ...[`${origin.outpoint(0)}:1`, `${origin.outpoint(0)}:-1`, `${tip.outpoint(0)}:-1`].map(content),
      get(`${GATEWAY}/metadata/${tip.outpoint(0)}:2`),
      get(`${GATEWAY}/provenance/${tip.outpoint(0)}`),
      lookup('ls_ordinals', { outpoint: tip.outpoint(0), seq: -1 }),
    ],
  ],
  [
    'a chunk of a stream',
    { outpoint: chunk1.outpoint(0) },
    [chunk0, chunk1].map((each) => get(`${GATEWAY}/stream/${each.outpoint(0)}`)),
  ],
  [
    'the content of a chunk',
    { sha256: hashOf('three') },
    chunks.map((each) => get(`${GATEWAY}/stream/${each.outpoint(0)}`)),
  ],
]

/** Ways to ask for the same again that a server could answer without looking. */
const withHeaders = (
  [path, question]: [string, Question],
  headers: Record<string, string>,
): [string, Question] => [path, { ...question, headers: { ...question.headers, ...headers } }]

function expectBlocked(answer: Answer, path: string): void {
  expectError(answer, { status: 451, code: 'BLOCKED', overlay: path === '/lookup' })
  expect(answer.body.toString('utf8')).not.toContain(REASON)
}

const shared = await servers.start(env)
await submitAll(shared)

describe.each(CASES)('where %s is blocked', (_, subject, questions) => {
  test('every way to it is 451 at once, whatever was answered before, and well again afterwards', async () => {
    const server = shared
    const before: Answer[] = []
    // Twice, so that whatever is kept is kept.
    for (const question of [...questions, ...questions]) before.push(await server.ask(...question))
    expect(before.filter(({ status }) => status !== 200 && status !== 302)).toEqual([])
    await block(server, subject)
    for (const [index, question] of questions.entries()) {
      const [path, { method = 'GET' }] = question
      expectBlocked(await server.ask(...question), path)
      if (method !== 'GET') continue
      const tag = String(before[index]?.headers.etag ?? '*')
      for (const known of [tag, '*'])
        expectBlocked(await server.ask(...withHeaders(question, { 'If-None-Match': known })), path)
      for (const range of ['bytes=0-0', 'bytes=900-'])
        expectBlocked(await server.ask(...withHeaders(question, { Range: range, 'If-Range': tag })), path)
      const head = await server.ask(path, { method: 'HEAD' })
      expect({ status: head.status, length: head.body.length }).toEqual({ status: 451, length: 0 })
    }
    await unblock(server, subject)
    for (const [index, question] of questions.entries()) {
      const { status, body } = await server.ask(...question)
      expect({ status, body }).toEqual({ status: before[index]?.status, body: before[index]?.body })
    }
  })
})

describe('what is not blocked', () => {
  test('is served beside what is', async () => {
    const server = await servers.start(env)
    await submitAll(server)
    for (const [, subject] of CASES.slice(0, 2)) await block(server, subject)
    expect((await server.ask(`/content/${site.outpoint(0)}?raw`)).status).toBe(200)
    await block(server, { outpoint: chunk1.outpoint(0) })
    const rest = await server.ask(`${GATEWAY}/stream/${chunk2.outpoint(0)}`)
    expect([rest.status, rest.body.toString()]).toEqual([200, 'three'])
    await block(server, { name: 'a' })
    expect((await server.ask(`${NAMES}/proof/ab`)).status).toBe(200)
    expect((await server.ask(`${NAMES}/mine/ac`)).json).toMatchObject({ domain: 'a' })
    expect((await server.ask(`${NAMES}/mine/abc`)).json).toMatchObject({ domain: 'ab' })
    // The way of another ordinal leads through what is blocked: that is evidence.
    await block(server, { outpoint: origin.outpoint(0) })
    const provenance = await server.ask(`${GATEWAY}/provenance/${tip.outpoint(0)}`)
    expect([provenance.status, provenance.body.includes(Buffer.from(origin.raw))]).toEqual([200, true])
    const { json } = await server.ask(`${GATEWAY}/history/${tip.outpoint(0)}`)
    const bare = { sequence: 0, outpoint: origin.outpoint(0), hasMap: false, blocked: true }
    expect(json).toMatchObject({ steps: expect.arrayContaining([{ ...bare, height: origin.height }]) })
    expect((await server.ask(`/content/${tip.outpoint(0)}:-1`)).body.toString()).toBe('a step')
  })

  test('is in lists, which leave out what is', async () => {
    const server = await servers.start(env)
    await submitAll(server)
    await block(server, { name: 'ab' })
    const page = await server.ask(`${NAMES}?limit=1`)
    expect(page.json).toMatchObject({ names: [{ name: 'a' }], next: 'a' })
    const next = [{ name: 'b', outpoint: mints[2]?.outpoint(2) }]
    expect((await server.ask(`${NAMES}?limit=1&after=a`)).json).toEqual({ names: next })
    const asked = mints.map((mint) => mint.outpoint(2))
    const { json: genuine } = await server.ask(`${NAMES}/origins`, posted(asked))
    expect(Object.values(genuine as object)).toEqual([true, false, true])
    for (const query of [{ prefix: '' }, { origins: asked }]) expect(await found(server, query)).toBe(2)
    await block(server, { outpoint: site.outpoint(1) })
    const many = [site.outpoint(0), site.outpoint(1), `${site.outpoint(1)}:0`]
    const { json: records } = await server.ask(`${GATEWAY}/metadata`, posted(many))
    expect(Object.values(records as object)).toMatchObject([{ outpoint: site.outpoint(0) }, null, null])
  })
})

test('what is blocked stays so, whatever is submitted, over a restart, and before it comes', async () => {
  const subjects: Subject[] = [
    { outpoint: site.outpoint(1) },
    { sha256: hashOf('file two') },
    { name: 'a' },
    { outpoint: chunk1.outpoint(0) },
  ]
  const questions = CASES.filter(([, subject]) =>
    subjects.some((each) => JSON.stringify(each).toLowerCase() === JSON.stringify(subject).toLowerCase()),
  )
  expect(questions).toHaveLength(subjects.length)
  const expectAll = async (server: TestServer): Promise<void> => {
    for (const [, , asked] of questions)
      for (const question of asked) expectBlocked(await server.ask(...question), question[0])
  }
  const folder = await servers.folder()
  const first = await servers.start({ ...env, DATA_DIR: folder })
  for (const subject of subjects) await block(first, subject)
  await submitAll(first)
  await expectAll(first)
  await submitAll(first)
  await expectAll(first)
  await first.stop()
  const second = await servers.start({ ...env, DATA_DIR: folder })
  await expectAll(second)
  await submitAll(second)
  await expectAll(second)
})

test('what was served before it was known to be the origin of a blocked name is blocked from then on', async () => {
  const chain = new FakeChain()
  const [prefix, mint, other] = [chain.mint('a'), chain.mint('ab'), chain.mint('ac')]
  const server = await servers.start({ ...treeOf(chain.deployment), ...OPERATOR })
  await block(server, { name: 'ab' })
  for (const each of [mint, other]) await server.submit(beefOf(each), ['tm_ordinals'])
  const statuses = async (): Promise<number[]> => {
    const asked = [mint, other].map((each) => server.ask(`/content/${each.outpoint(2)}`))
    return (await Promise.all(asked)).map(({ status }) => status)
  }
  expect(await statuses()).toEqual([200, 200])
  await server.submit(beefOf(prefix), ['tm_names'])
  expect(await statuses()).toEqual([451, 200])
})

test('a transaction is withheld for content behind a thousand others', async () => {
  const bodies = [...Array.from({ length: 1000 }, () => 'harmless'), 'blocked']
  const outputs = bodies.map((body) => inscriptionScript(text(body)))
  const long = chain.spend({ inputs: [purse], outputs })
  const server = await servers.start(env)
  await server.take(beefOf(long, { with: [purse] }), ['tm_ordinals'])
  const path = `/svc/beef/${long.txid}/tx`
  expect((await server.ask(path)).status).toBe(200)
  await block(server, { sha256: hashOf('blocked') })
  expectBlocked(await server.ask(path), path)
})

describe('the operator', () => {
  const { logger, records } = keptLog()
  let server: TestServer
  beforeAll(async () => {
    server = await servers.start(env, { logger })
  })
  const admin = (path: string, value?: unknown): Promise<Answer> =>
    asOperator(server, `/admin/${path}`, value)
  const outpoint = `${'ab'.repeat(32)}_7`

  test('lists what is blocked, since when and why, in pages', async () => {
    const given: Subject[] = [{ name: 'z' }, { outpoint }, { sha256: 'cd'.repeat(32) }]
    const started = Date.now()
    for (const subject of given) {
      const { status, json, headers } = await admin('block', { ...subject, reason: 'because' })
      const shown = { kind: expect.any(String), reason: 'because', since: expect.any(String) }
      expect([status, json]).toEqual([200, { ...subject, ...shown }])
      expect(Date.parse((json as { since: string }).since)).toBeGreaterThanOrEqual(started)
      expect(headers).toMatchObject({ 'cache-control': 'no-store' })
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
    const entries = [given[2], given[0], given[1]].map((subject) =>
      expect.objectContaining(subject as object),
    )
    expect((await admin('blocked')).json).toEqual({ blocked: entries })
    expect((await admin('blocked?kind=name')).json).toEqual({ blocked: entries.slice(1, 2) })
    const shown: unknown[] = []
    for (let path: string | undefined = 'blocked?limit=1'; path !== undefined; ) {
      const { blocked, next } = (await admin(path)).json as { blocked: unknown[]; next?: string }
      expect(blocked).toHaveLength(1)
      shown.push(...blocked)
      path = next === undefined ? undefined : `blocked?limit=1&after=${encodeURIComponent(next)}`
    }
    expect(shown).toEqual(entries)
  })

  test('is taken at the word whatever its case, and answered in one form', async () => {
    const written = { outpoint: `${'AB'.repeat(32)}.9` }
    const { json } = await admin('block', { ...written, reason: 'case' })
    expect(json).toMatchObject({ kind: 'outpoint', outpoint: `${'ab'.repeat(32)}_9` })
    expect((await admin('unblock', written)).json).toMatchObject({ wasBlocked: true })
  })

  test('stands in the log with what was done, and the token does not', async () => {
    records.length = 0
    await admin('block', { name: 'logged', reason: 'line\nbreak' })
    await admin('unblock', { name: 'logged' })
    await admin('unblock', { name: 'logged' })
    await server.ask('/admin/blocked', { headers: { Authorization: 'Bearer another-token-of-some' } })
    expect(records.map(({ blocked, unblocked }) => ({ blocked, unblocked }))).toEqual([
      { blocked: { kind: 'name', value: 'logged', reason: 'line\nbreak' } },
      { unblocked: { kind: 'name', value: 'logged', wasBlocked: true } },
      { unblocked: { kind: 'name', value: 'logged', wasBlocked: false } },
    ])
    expect(JSON.stringify(records)).not.toMatch(/token-of/)
  })
})
