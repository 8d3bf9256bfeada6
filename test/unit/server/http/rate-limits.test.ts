import { clientKey } from '../../../../src/server/http/gates.js'
import { rateLimit } from '../../../../src/server/http/rate-limit.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import {
  type Answer,
  posted,
  type Question,
  type TestServer,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()

/** A request as a proxy would hand it on, from addresses that are for documentation (RFC 5737, RFC 3849). */
function from(address: string, question: Question = {}): Question {
  return { ...question, headers: { ...question.headers, 'X-Forwarded-For': address } }
}

const SUBMISSION = { method: 'POST', headers: { 'X-Topics': '["tm_names"]' }, body: 'no BEEF' }

function expectLimited(answer: Answer, { overlay = false }: { overlay?: boolean } = {}): void {
  expectError(answer, { status: 429, code: 'RATE_LIMITED', overlay })
  const { headers } = answer
  const seconds = Number(headers['retry-after'])
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(seconds).toBeLessThanOrEqual(60)
  expect(headers.ratelimit).toMatch(/^"(reads|submissions)"; r=0; t=\d+$/)
  expect(headers['ratelimit-policy']).toMatch(/^"(reads|submissions)"; q=\d+; w=60; /)
}

/** Asks so often that at least one of the answers is over a limit of 3, though a minute may end between. */
async function flood(server: TestServer, path: string, question: Question): Promise<Answer> {
  let last: Answer | undefined
  for (let asked = 0; asked < 7 && last?.status !== 429; asked++) last = await server.ask(path, question)
  if (last === undefined) throw new Error('nothing was asked')
  return last
}

describe('behind one proxy', () => {
  const env = { TRUST_PROXY: '1', READS_PER_MINUTE: '3', SUBMISSIONS_PER_MINUTE: '3' }

  test('a client over its rate learns when to try again, and others are answered', async () => {
    const server = await servers.start(env)
    expect((await server.ask('/svc/names', from('192.0.2.1'))).headers).toMatchObject({
      ratelimit: expect.stringMatching(/^"reads"; r=2; t=\d+$/),
    })
    for (const path of ['/svc/names', '/content/x', '/nowhere', '/openapi.json', '/svc/names/a'])
      expectLimited(await flood(server, path, from('192.0.2.1')))
    expect((await server.ask('/svc/names', from('192.0.2.2'))).status).toBe(200)
    // Only the address that the proxy adds counts, and not what came with the request.
    expectLimited(await flood(server, '/svc/names', from('198.51.100.7, 192.0.2.1')))
  })

  test('reads and submissions are counted apart, lookups with the reads', async () => {
    const server = await servers.start(env)
    const lookup = posted({ service: 'ls_names', query: { origin: 'a' } })
    expectLimited(await flood(server, '/submit', from('192.0.2.1', SUBMISSION)), { overlay: true })
    expect((await server.ask('/lookup', from('192.0.2.1', lookup))).status).toBe(200)
    expectLimited(await flood(server, '/lookup', from('192.0.2.1', lookup)), { overlay: true })
    expectLimited(await flood(server, '/svc/names', from('192.0.2.1')))
  })

  test('the overlay below the prefix for wallets shares its limits, and the other routes there are reads', async () => {
    const server = await servers.start(env)
    const lookup = posted({ service: 'ls_names', query: { origin: 'a' } })
    const submitted = await flood(server, '/svc/overlay/submit', from('192.0.2.1', SUBMISSION))
    expectLimited(submitted, { overlay: true })
    expectLimited(await server.ask('/submit', from('192.0.2.1', SUBMISSION)), { overlay: true })
    expect((await server.ask('/svc/overlay/lookup', from('192.0.2.1', lookup))).status).toBe(200)
    expectLimited(await flood(server, '/svc/beef/x', from('192.0.2.1')))
    expectLimited(await server.ask('/svc/txo/x', from('192.0.2.1')))
    expectLimited(await server.ask('/svc/overlay/lookup', from('192.0.2.1', lookup)), { overlay: true })
  })

  test('tokens of the operator are not guessed at any faster', async () => {
    const server = await servers.start({ ...env, ADMIN_TOKEN: 'correct-horse-battery' })
    const guess = from('192.0.2.1', { headers: { Authorization: 'Bearer wrong-horse' } })
    expect((await server.ask('/admin/nothing', guess)).status).toBe(401)
    const { status, json } = await flood(server, '/admin/nothing', guess)
    expect({ status, json }).toMatchObject({ status: 429, json: { code: 'RATE_LIMITED' } })
  })

  test('health and metrics are not limited', async () => {
    const server = await servers.start(env)
    expectLimited(await flood(server, '/svc/names', from('192.0.2.1')))
    for (const path of ['/health', '/health/live', '/health/ready'])
      for (let asked = 0; asked < 7; asked++)
        expect((await server.ask(path, from('192.0.2.1'))).status).toBe(200)
  })
})

test.each<[key: string, written: string[]]>([
  ['192.0.2.1', ['192.0.2.1', ' 192.0.2.1 ', '192.0.2.1:1', '192.0.2.1:65535']],
  ['192.0.2.1', ['::ffff:192.0.2.1', '::FFFF:192.0.2.1', '::ffff:c000:201', '0:0:0:0:0:ffff:c000:0201']],
  ['192.0.2.1', ['[::ffff:192.0.2.1]', '[::ffff:192.0.2.1]:80']],
  ['2001:db8::/64', ['2001:db8::', '2001:db8::1', '2001:DB8::FFFF', '2001:0db8:0000:0000:1:2:3:4']],
  ['2001:db8::/64', ['[2001:db8::1]', '[2001:db8::1]:443', '2001:db8::1%eth0', '[2001:db8::1%25en0]:1']],
  ['2001:db8:0:1::/64', ['2001:db8:0:1::1', '[2001:db8:0:1:ffff:ffff:ffff:ffff]']],
  ['fe80::/64', ['fe80::1', 'fe80::1%lo', 'FE80::2%a%b', 'fe80::3%']],
  [
    'unreadable',
    ['', ' ', 'unknown', '_hidden', '192.0.2', '192.0.2.1.1', '192.0.2.01', '192.0.2.1:', '[192.0.2.1'],
  ],
  [
    'unreadable',
    ['192.0.2.1:x', '2001:db8::1::', '[2001:db8::1]x', '[]', '%eth0', ':', 'a.test:80', '\u0000'],
  ],
  ['unreadable', ['1:2:3:4:5:6:7:8:9']],
])('%s is the client of %j', (key, written) => {
  expect(written.map((ip) => [ip, clientKey({ ip })])).toEqual(written.map((ip) => [ip, key]))
})

test('without a trusted proxy, a client that claims other addresses is counted as one', async () => {
  const server = await servers.start({ READS_PER_MINUTE: '3' })
  for (let at = 0; at < 4; at++) await server.ask('/svc/names', from(`192.0.2.${at}`))
  expectLimited(await flood(server, '/svc/names', from('192.0.2.9')))
})

test('a program on the same machine is not limited, unless it comes through a proxy', async () => {
  const server = await servers.start({ READS_PER_MINUTE: '1', SUBMISSIONS_PER_MINUTE: '1' })
  for (let asked = 0; asked < 5; asked++) {
    const { status, headers } = await server.ask('/svc/names')
    expect([status, headers.ratelimit]).toEqual([200, undefined])
    expect((await server.ask('/submit', SUBMISSION)).status).toBe(400)
  }
  for (const name of ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'Via'])
    expectLimited(await flood(server, '/svc/names', { headers: { [name]: '127.0.0.1' } }))
})

test('with 0, nobody is limited', async () => {
  const server = await servers.start({ TRUST_PROXY: '1', READS_PER_MINUTE: '0', SUBMISSIONS_PER_MINUTE: '0' })
  for (let asked = 0; asked < 5; asked++) {
    const { status, headers } = await server.ask('/svc/names', from('192.0.2.1'))
    expect({ status, limit: headers.ratelimit }).toEqual({ status: 200, limit: undefined })
  }
})

test('of many addresses, those that ask for nothing are forgotten, and never one that floods', () => {
  const limit = rateLimit({ identifier: 'reads', rate: 1, clientOf: ({ ip }) => String(ip) })
  const isTaken = (ip: string): boolean => {
    let refusal: unknown
    limit({ ip } as never, { setHeader() {}, locals: {} } as never, (error) => {
      refusal = error
    })
    return refusal === undefined
  }
  const twice = (ip: string): boolean[] => [isTaken(ip), isTaken(ip)]
  expect([twice('quiet'), twice('loud')]).toEqual([
    [true, false],
    [true, false],
  ])
  const taken = new Set<boolean>()
  for (let other = 0; other < 10_000; other++) {
    isTaken(String(other))
    if (other % 1000 === 0) taken.add(isTaken('loud'))
  }
  expect([...taken, isTaken('loud'), isTaken('quiet')]).toEqual([false, false, true])
})
