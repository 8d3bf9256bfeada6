import { ERROR_STATUSES, type ErrorCode } from '../../../../src/gateway/http/errors.js'
import { type ExpectedError, expectError, expectErrorHead } from '../../../support/gateway/expect-error.js'
import { keptLog, whileReplaced } from '../../../support/gateway/faults.js'
import { directory, publisher, text } from '../../../support/gateway/site.js'
import { beefOf, FakeChain, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  lastingHeaders,
  posted,
  type Question,
  submission,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'

// The table of `spec/http.md`, Errors: what each code answers, by a request that gets it.

const servers = useServers()
const chain = new FakeChain()
const { logger, records } = keptLog()
const ADMIN_TOKEN = 'a-token-of-the-operator'
const admin: Question = { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } }
const server = await servers.start(
  { ...treeOf(chain.deployment), ADMIN_TOKEN, READS_PER_MINUTE: '1' },
  { logger },
)
const published = publisher({ server, chain })

const from = chain.node('')
const mint = chain.mint('a')
const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
const conflicting = chain.mint('b', { from, funding: [{ transaction: purse, vout: 0 }] })
for (const transaction of [chain.genesis, mint, chain.mint('c')]) await server.submit(beefOf(transaction))
const file = await published(text('file'))
const hidden = await published(text('hidden'))
for (const blocked of [{ outpoint: hidden.outpoint(0) }, { name: 'd' }]) {
  const { headers, ...question } = posted({ ...blocked, reason: 'a test' })
  await server.ask('/admin/block', { ...question, headers: { ...headers, ...admin.headers } as never })
}
const loop = await published(directory({ '.': '_0' }))

/** What nobody outside is to read. */
const SECRET = 'cannot open /var/lib/minetree/secret.sqlite'
const failingWith = (code?: string) => async (): Promise<never> => {
  throw Object.assign(new Error(SECRET), code !== undefined && { code })
}
const failing = failingWith()

interface Row extends ExpectedError {
  code: ErrorCode
  path: string
  question?: Question
  /** The method of the store that fails meanwhile. */
  broken?: ['store' | 'ordinals' | 'names', string]
  /** What the engine of the store calls that. */
  engineCode?: string
  contentRange?: string
}

const content = (rest: string): string => `/content/${rest}`
const ranged: Question = { headers: { Range: 'bytes=4-' } }

/** Of a client that is counted. */
const proxied: Question = { headers: { 'X-Forwarded-For': '192.0.2.1' } }

const ROWS: Row[] = [
  { code: 'BAD_OUTPOINT', status: 400, path: content('x') },
  { code: 'BAD_OUTPOINT', status: 400, path: '/svc/names/origins', question: posted(['x']) },
  { code: 'BAD_SEQUENCE', status: 400, path: content(`${file.outpoint(0)}:x`) },
  { code: 'BAD_NAME', status: 400, path: '/svc/names/origin/A' },
  { code: 'BAD_BODY', status: 400, path: '/svc/names?limit=0' },
  { code: 'BAD_BODY', status: 400, path: '/svc/names/origins', question: { method: 'POST', body: '{' } },
  { code: 'BAD_BODY', status: 400, path: '/lookup', question: posted({}), overlay: true },
  { code: 'NESTING_TOO_DEEP', status: 400, path: content(loop.outpoint(0)) },
  { code: 'UNAUTHORIZED', status: 401, path: '/admin/blocked', overlay: true, shut: true },
  { code: 'NOT_FOUND', status: 404, path: '/admin/nothing', question: admin, overlay: true, shut: true },
  { code: 'NOT_FOUND', status: 404, path: content(file.outpoint(1)) },
  { code: 'NOT_FOUND', status: 404, path: '/nowhere' },
  { code: 'NOT_FOUND', status: 404, path: '/svc/names/origin/b' },
  { code: 'NOT_FOUND', status: 404, path: '/getDocumentationForTopicManager', overlay: true },
  { code: 'TAKEN', status: 404, path: '/svc/names/mine/a' },
  {
    code: 'CONFLICT',
    status: 409,
    path: '/submit',
    question: submission(beefOf(conflicting, { proven: false, with: [purse, chain.genesis] })),
    overlay: true,
    data: { txid: expect.stringMatching(/^[0-9a-f]{64}$/) },
  },
  {
    code: 'PRECONDITION_FAILED',
    status: 412,
    path: content(file.outpoint(0)),
    question: { headers: { 'If-Match': '"another"' } },
  },
  {
    code: 'UNSUPPORTED_ENCODING',
    status: 415,
    path: '/svc/names/origins',
    question: { method: 'POST', headers: { 'Content-Encoding': 'gzip' }, body: '[]' },
  },
  {
    code: 'UNSUPPORTED_ENCODING',
    status: 415,
    path: '/lookup',
    question: { method: 'POST', headers: { 'Content-Encoding': 'br' }, body: '{}' },
    overlay: true,
  },
  { code: 'BLOCKED', status: 451, path: content(hidden.outpoint(0)) },
  { code: 'BLOCKED', status: 451, path: '/svc/names/mine/d' },
  { code: 'TOO_LARGE', status: 413, path: '/svc/names/origins', question: posted('a'.repeat(300_000)) },
  {
    code: 'TOO_LARGE',
    status: 413,
    path: '/svc/gateway/preview',
    question: posted('a'.repeat(1024 * 1024)),
  },
  {
    code: 'RANGE_NOT_SATISFIABLE',
    status: 416,
    path: content(file.outpoint(0)),
    question: ranged,
    contentRange: 'bytes */4',
  },
  { code: 'RATE_LIMITED', status: 429, path: '/svc/names', question: proxied },
  { code: 'RATE_LIMITED', status: 429, path: '/lookup', question: proxied, overlay: true },
  // A path of its own: answers that were given before are kept.
  {
    code: 'INTERNAL',
    status: 500,
    path: content(`${file.outpoint(0)}/unasked`),
    broken: ['ordinals', 'output'],
  },
  { code: 'INTERNAL', status: 500, path: content(`${file.outpoint(0)}:0`), broken: ['ordinals', 'at'] },
  { code: 'INTERNAL', status: 500, path: '/svc/names/origin/a', broken: ['names', 'originOf'] },
  { code: 'INTERNAL', status: 500, path: '/svc/names?prefix=a', broken: ['names', 'byPrefix'] },
  {
    code: 'INTERNAL',
    status: 500,
    path: '/lookup',
    question: posted({ service: 'ls_names', query: { name: 'a' } }),
    broken: ['names', 'originOf'],
    overlay: true,
  },
  ...['SQLITE_FULL', 'ER_DISK_FULL', 'ER_RECORD_FILE_FULL', '14031', 'ENOSPC'].map(
    (engineCode): Row => ({
      code: 'STORE_FULL',
      status: 503,
      path: '/submit',
      question: submission(beefOf(chain.inscribe(text(engineCode))), ['tm_ordinals']),
      broken: ['store', 'record'],
      engineCode,
      overlay: true,
    }),
  ),
  { code: 'NOT_READY', status: 503, path: '/health/ready', broken: ['store', 'ping'] },
]

async function answerTo({ code, path, question, broken, engineCode }: Row, method?: string): Promise<Answer> {
  if (code === 'RATE_LIMITED') await server.ask(path, question)
  const ask = (): Promise<Answer> => server.ask(path, { ...question, ...(method && { method }) })
  if (broken === undefined) return await ask()
  const [role, failing] = broken
  const { graph } = server.node
  const subject = (role === 'store' ? graph : graph[role]) as unknown as Record<string, () => Promise<never>>
  return await whileReplaced(subject, failing, { by: failingWith(engineCode), during: ask })
}

const title = ({ code, path, broken }: Row): string =>
  `${code} from ${path.slice(0, 40)}${broken === undefined ? '' : ` while ${broken[1]} fails`}`
const named = (rows: Row[]): [string, Row][] => rows.map((row) => [title(row), row])

test('every code has a row', () => {
  expect([...new Set(ROWS.map(({ code }) => code))].sort()).toEqual(Object.keys(ERROR_STATUSES).sort())
})

describe('an error', () => {
  test.each(named(ROWS))('%s has the shape and the headers of all', async (_, row) => {
    const answer = await answerTo(row)
    expectError(answer, row)
    expect(answer.headers['content-range']).toBe(row.contentRange)
    const exposed = String(answer.headers['access-control-expose-headers']).split(',')
    if (!row.shut) expect(exposed).toEqual(expect.arrayContaining(['Content-Range', 'Retry-After']))
    // Nothing of where it came from: no stack, no file, no query, no driver.
    expect(answer.body.toString('utf8')).not.toMatch(
      /\bat .+:\d+|node_modules|\.[jt]s\b|sqlite|select |secret/i,
    )
  })

  const read = ROWS.filter(({ question }) => question === undefined)
  test.each(named(read))('%s answers HEAD with the same head and no body', async (_, row) => {
    const [get, head] = [await answerTo(row), await answerTo(row, 'HEAD')]
    expect(head.status).toBe(row.status)
    expect(lastingHeaders(head)).toEqual(lastingHeaders(get))
    expect(head.body).toHaveLength(0)
    expectErrorHead(head, row)
  })

  test('of a range is none for HEAD, which has no ranges', async () => {
    const { status, headers } = await server.ask(content(file.outpoint(0)), { ...ranged, method: 'HEAD' })
    expect({ status, length: headers['content-length'] }).toEqual({ status: 200, length: '4' })
  })
})

describe('what went wrong inside', () => {
  const inside = ROWS.filter(({ code }) => code === 'INTERNAL')
  test.each(named(inside))('%s is logged in full and said in one sentence', async (_, row) => {
    records.length = 0
    const { json } = await answerTo(row)
    expect(json).toMatchObject({ error: 'internal error; it has been logged' })
    expect(records).toEqual([
      expect.objectContaining({
        msg: 'request failed',
        url: row.path,
        err: expect.objectContaining({ message: SECRET, stack: expect.stringContaining('error-codes.test') }),
      }),
    ])
  })

  test('is no more once the store answers again', async () => {
    expect((await server.ask(content(file.outpoint(0)))).body.toString('utf8')).toBe('file')
    // It is tried after a while whether the store has space.
    await untilReady(server)
  })

  test('is not what the caller did wrong, which is not logged', async () => {
    records.length = 0
    for (const row of ROWS.filter(({ status }) => status < 500)) await answerTo(row)
    expect(records).toEqual([])
  })

  test('is not what is answered for now, of which each reason has one line a minute and no stack', async () => {
    records.length = 0
    for (let asked = 0; asked < 3; asked++)
      for (const row of ROWS.filter(({ status }) => status === 503)) await answerTo(row)
    expect(records.filter(({ msg }) => msg === 'request failed')).toEqual([])
    const withReason = records.filter(({ reason }) => reason !== undefined)
    for (const { level, err, ...record } of withReason) {
      expect({ level, err }).toEqual({ level: 40, err: undefined })
      expect(JSON.stringify(record)).not.toMatch(/\bat .+:\d+/)
    }
    // Those that came before within this minute have theirs already.
    const reasons = withReason.map(({ reason }) => reason)
    expect(reasons).toEqual([...new Set(reasons)])
  })

  test('before the first byte of a body is an answer, not a broken connection', async () => {
    records.length = 0
    const answer = await whileReplaced(server.node.graph.content, 'shortBody', {
      by: failing,
      during: () => server.ask(content(file.outpoint(0))),
    })
    expectError(answer, { code: 'INTERNAL', status: 500 })
    expect(records).toMatchObject([{ err: { message: SECRET } }])
  })
})
