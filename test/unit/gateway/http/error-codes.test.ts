import { type ExpectedError, expectError } from '../../../support/gateway/expect-error.js'
import { keptLog, whileReplaced } from '../../../support/gateway/faults.js'
import { publisher, text } from '../../../support/gateway/site.js'
import { beefOf, FakeChain, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  AS_OPERATOR,
  OPERATOR,
  posted,
  type Question,
  submission,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'
import { passTime } from '../../../support/server/waiting.js'

// What errors say, and what of them is logged. test/unit/server/openapi has a request for every code of every operation.

const servers = useServers()
const chain = new FakeChain()
const { logger, records } = keptLog()
const admin: Question = { headers: AS_OPERATOR }
const server = await servers.start({ ...treeOf(chain.deployment), ...OPERATOR }, { logger })
const published = publisher({ server, chain })

const from = chain.node('')
const mint = chain.mint('a')
const purse = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
const conflicting = chain.mint('b', { from, funding: [purse] })
for (const transaction of [chain.genesis, mint, chain.mint('c')]) await server.submit(beefOf(transaction))
const file = await published(text('file'))
const ranged: Question = { headers: { Range: 'bytes=4-' } }

/** What nobody outside is to read. */
const SECRET = 'cannot open /var/lib/minetree/secret.sqlite'
const failingWith = (code?: string) => (): never => {
  throw Object.assign(new Error(SECRET), code !== undefined && { code })
}
const failing = failingWith()

interface Row extends ExpectedError {
  path: string
  question?: Question
  /** The method of the store that fails meanwhile. */
  broken?: ['store' | 'ordinals' | 'names', string]
  /** What the engine of the store calls that. */
  engineCode?: string
}

const content = (rest: string): string => `/content/${rest}`

/** What the caller did wrong, a request for each reaction. */
const WRONG: Row[] = [
  { code: 'BAD_OUTPOINT', status: 400, path: content('x') },
  { code: 'BAD_BODY', status: 400, path: '/svc/names/origins', question: { method: 'POST', body: '{' } },
  { code: 'BAD_BODY', status: 400, path: '/lookup', question: posted({}), overlay: true },
  { code: 'UNAUTHORIZED', status: 401, path: '/admin/blocked', overlay: true, shut: true },
  { code: 'NOT_FOUND', status: 404, path: '/admin/nothing', question: admin, overlay: true, shut: true },
  { code: 'NOT_FOUND', status: 404, path: '/nowhere' },
  {
    ...{ code: 'CONFLICT', status: 409, path: '/submit', overlay: true },
    question: submission(beefOf(conflicting, { proven: false, with: [purse, chain.genesis] })),
    data: { txid: expect.stringMatching(/^[0-9a-f]{64}$/) },
  },
  { code: 'TOO_LARGE', status: 413, path: '/svc/names/origins', question: posted('a'.repeat(300_000)) },
  { code: 'RANGE_NOT_SATISFIABLE', status: 416, path: content(file.outpoint(0)), question: ranged },
]
/** What goes wrong in a host. A path that was answered before would be answered from the cache. */
const INTERNAL: Row[] = [
  { path: content(`${file.outpoint(0)}/unasked`), broken: ['ordinals', 'output'] as const },
  { path: content(`${file.outpoint(0)}:0`), broken: ['ordinals', 'at'] as const },
  { path: '/svc/names/origin/a', broken: ['names', 'originOf'] as const },
  { path: '/svc/names?prefix=a', broken: ['names', 'byPrefix'] as const },
  {
    path: '/lookup',
    question: posted({ service: 'ls_names', query: { name: 'a' } }),
    broken: ['names', 'originOf'] as const,
    overlay: true,
  },
].map((row): Row => ({ ...row, broken: [...row.broken], code: 'INTERNAL', status: 500 }))
const LATER: Row[] = [
  ...['SQLITE_FULL', 'ER_DISK_FULL', 'ER_RECORD_FILE_FULL', '14031', 'ENOSPC'].map(
    (engineCode): Row => ({
      ...{ code: 'STORE_FULL', status: 503, path: '/submit', overlay: true, engineCode },
      question: submission(beefOf(chain.inscribe(text(engineCode))), ['tm_ordinals']),
      broken: ['store', 'record'],
    }),
  ),
  { code: 'NOT_READY', status: 503, path: '/health/ready', broken: ['store', 'ping'] },
]

async function answerTo({ path, question, broken, engineCode }: Row): Promise<Answer> {
  if (broken === undefined) return await server.ask(path, question)
  const [role, method] = broken
  const { graph } = server.node
  const subject = (role === 'store' ? graph : graph.served[role]) as unknown as Record<string, () => never>
  return await whileReplaced(subject, method, {
    by: failingWith(engineCode),
    during: () => server.ask(path, question),
  })
}

test.each([...WRONG, ...LATER])('$code from $path has its shape', async (row) => {
  expectError(await answerTo(row), row)
})

describe('what went wrong inside', () => {
  test.each(INTERNAL)('while $broken fails is logged in full and said in one sentence', async (row) => {
    records.length = 0
    expectError(await answerTo(row), { ...row, error: 'internal error; it has been logged' })
    const err = { message: SECRET, stack: expect.stringContaining('error-codes.test') }
    expect(records).toMatchObject([{ msg: 'request failed', url: row.path, err }])
  })

  test('is no more once the store answers again', async () => {
    expect((await server.ask(content(file.outpoint(0)))).body.toString('utf8')).toBe('file')
    // It is tried after a while whether the store has space.
    passTime(5000)
    await untilReady(server)
  })

  test('is not what the caller did wrong, which is not logged', async () => {
    records.length = 0
    for (const row of WRONG) await answerTo(row)
    expect(records).toEqual([])
  })

  test('is not what is answered for now, of which each reason has one line a minute and no stack', async () => {
    records.length = 0
    for (let asked = 0; asked < 3; asked++) for (const row of LATER) await answerTo(row)
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
    const answer = await whileReplaced(server.node.graph.served.content, 'chunk', {
      by: failing,
      // Without the query, or with one that changes nothing, it is in memory.
      during: () => server.ask(`${content(file.outpoint(0))}?map=true`),
    })
    expectError(answer, { code: 'INTERNAL', status: 500 })
    expect(records).toMatchObject([{ err: { message: SECRET } }])
  })
})
