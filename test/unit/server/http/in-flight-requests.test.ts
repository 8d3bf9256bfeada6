import { connect } from 'node:net'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { keptLog, whileReplaced } from '../../../support/gateway/faults.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import {
  type Environment,
  type Question,
  submission,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const { start } = useServers()
const UNKNOWN = `${'ab'.repeat(32)}_0`

async function logged(env: Environment = {}) {
  const { logger, records } = keptLog()
  return { server: await start(env, { logger }), records }
}

const withId = (id: string, more: Question = {}): Question => ({ ...more, headers: { 'X-Request-Id': id } })

/** Breaks the store for one request. */
async function failing(server: TestServer, question: Question = {}) {
  return await whileReplaced(server.node.graph.served.ordinals, 'output', {
    by: () => {
      throw new Error('the disk is gone')
    },
    during: () => server.ask(`/content/${UNKNOWN}`, question),
  })
}

describe('the id of a request', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await start()
  })

  test('is another for each, and in every answer', async () => {
    const asked: [string, Question?][] = [
      ['/health/live'],
      ['/health/live', { method: 'HEAD' }],
      ['/nowhere'],
      [`/content/${UNKNOWN}`, { method: 'OPTIONS' }],
      ['/submit', { method: 'POST', body: 'no BEEF' }],
      ['http://[/'],
    ]
    const answers = await Promise.all(asked.map(([path, question]) => server.ask(path, question)))
    const ids = answers.map(({ headers }) => headers['x-request-id'])
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(new Set(ids).size).toBe(asked.length)
    for (const { headers } of answers.slice(0, 3))
      expect(String(headers['access-control-expose-headers']).split(',')).toContain('X-Request-Id')
  })

  test.each(['0', 'a'.repeat(64), 'b1946ac9-2d5f_4e1c.7'])('is that of a proxy: %s', async (id) => {
    expect((await server.ask('/health/live', withId(id))).headers['x-request-id']).toBe(id)
  })

  test.each(['', 'a'.repeat(65), 'two words', 'a,b', '"', '<script>', 'ä', '\u009b31m'])(
    'is not one that could mean something: %j',
    async (id) => {
      const answer = await server.ask('/health/live', withId(id))
      expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    },
  )

  test('leads from an answer to the line that says what went wrong, and the answer says no more', async () => {
    const { server, records } = await logged()
    const answer = await failing(server, withId('seen-by-the-client'))
    expectError(answer, { status: 500, code: 'INTERNAL' })
    expect(answer.body.toString()).not.toContain('disk')
    expect(records).toMatchObject([
      {
        level: 50,
        requestId: 'seen-by-the-client',
        url: `/content/${UNKNOWN}`,
        err: { message: 'the disk is gone' },
      },
    ])
    expect(answer.headers['x-request-id']).toBe('seen-by-the-client')
  })
})

test('the id of a request is in the lines about what it has submitted, and in no others', async () => {
  const chain = new FakeChain()
  const { server, records } = await logged({ ...treeOf(chain.deployment), MAX_CONTENT_BYTES: '20' })
  const ids = ['first', 'second', 'third']
  const large = ids.map((text) => chain.inscribe({ contentType: 'text/plain', body: utf8(text.repeat(10)) }))
  const submit = async (id: string, { headers, ...question }: Question) =>
    await server.ask('/submit', { ...question, headers: { ...headers, 'X-Request-Id': id } })
  await Promise.all(large.map((each, at) => submit(ids[at] ?? '', submission(beefOf(each), ['tm_ordinals']))))
  const said = records.map(({ requestId, refusal }) => [requestId, (refusal as { txid: string }).txid])
  expect(said.sort()).toEqual(ids.map((id, at) => [id, large[at]?.txid]))
})

describe('requests', () => {
  test('have no lines in the log unless that is set', async () => {
    expect(readConfig({}).logRequests).toBe(false)
    const { server, records } = await logged()
    await server.ask('/health/live')
    await server.stop()
    expect(records).toEqual([])
  })

  test('have a line each where it is set, with the path as it was asked for, and no header', async () => {
    const { server, records } = await logged({ LOG_REQUESTS: 'true' })
    await server.ask('/svc/names/origin/alice?a=b', {
      headers: { 'X-Request-Id': 'one', Authorization: 'Bearer of-secrets', Cookie: 'session=of-secrets' },
    })
    await server.ask('/health/live', withId('two'))
    await until(() => records[1])
    expect(records).toMatchObject([
      { level: 30, requestId: 'one', url: '/svc/names/origin/alice?a=b', status: 404, code: 'NOT_FOUND' },
      { level: 30, requestId: 'two', method: 'GET', url: '/health/live', status: 200, msg: 'answered' },
    ])
    for (const { milliseconds } of records) expect(milliseconds).toBeGreaterThanOrEqual(0)
    expect(JSON.stringify(records)).not.toContain('of-secrets')
  })

  test('that somebody leaves are logged as that', async () => {
    const { server, records } = await logged({ LOG_REQUESTS: 'true' })
    let gone = (): void => undefined
    const left = new Promise<undefined>((resolve) => (gone = () => resolve(undefined)))
    let isAsked = false
    await whileReplaced(server.node.graph.served.streams, 'summary', {
      by: () => {
        isAsked = true
        return left
      },
      during: async () => {
        const { hostname, port } = new URL(server.url)
        const socket = connect(Number(port), hostname)
        socket.write(`GET /svc/gateway/stream/${UNKNOWN} HTTP/1.1\r\nHost: a\r\n\r\n`)
        await until(() => isAsked)
        socket.destroy()
        const left = { url: `/svc/gateway/stream/${UNKNOWN}`, aborted: true }
        expect(await until(() => records[0])).toMatchObject(left)
        gone()
      },
    })
  })
})
