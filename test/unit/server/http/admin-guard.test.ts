import { expectError } from '../../../support/gateway/expect-error.js'
import { type Answer, type Question, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const token = 'a-token-of-the-operator'
const guarded = await servers.start({ ADMIN_TOKEN: token })
const bare = await servers.start()

const showing = (authorization: string): Question => ({ headers: { Authorization: authorization } })
const UNAUTHORIZED = { status: 401, code: 'UNAUTHORIZED', overlay: true, shut: true }
const NOT_FOUND = { status: 404, code: 'NOT_FOUND', overlay: true, shut: true }

/** Nothing says that pages of other origins may ask, or read what comes back. */
function expectShut({ headers }: Answer): void {
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
}

test.each([
  ['none', {}],
  ['another', showing('Bearer another-token-of-some')],
  ['one of the same length', showing(`Bearer ${token.slice(0, -1)}x`)],
  ['the start of it', showing(`Bearer ${token.slice(0, -1)}`)],
  ['more than it', showing(`Bearer ${token}x`)],
  ['nothing behind the scheme', showing('Bearer ')],
  ['it twice', showing(`Bearer ${token} ${token}`)],
  ['it by another scheme', showing(`Basic ${token}`)],
  ['it without a scheme', showing(token)],
  ['it in the query alone', { headers: {} }],
] as [string, Question][])('with %s nobody gets past', async (_, question) => {
  const answer = await guarded.ask(`/admin/nothing?token=${token}`, question)
  expectError(answer, UNAUTHORIZED)
  expect(answer.headers['www-authenticate']).toBe('Bearer realm="minetree"')
  expectShut(answer)
})

test.each([`Bearer ${token}`, `bearer ${token}`, `BEARER   ${token} `])(
  'with %j the operator does',
  async (shown) => {
    const answer = await guarded.ask('/admin/nothing', showing(shown))
    expectError(answer, NOT_FOUND)
    expectShut(answer)
  },
)

test('a preflight does not get past, and promises nothing', async () => {
  const asked = { Origin: 'http://a.example', 'Access-Control-Request-Method': 'POST' }
  for (const path of ['/admin', '/admin/', '/admin/block', '/ADMIN/block', '/admin/./block']) {
    const answer = await guarded.ask(path, { method: 'OPTIONS', headers: asked })
    expectError(answer, UNAUTHORIZED)
    expectShut(answer)
  }
})

test('without a token set there is nothing, whatever is shown', async () => {
  for (const question of [{}, showing(`Bearer ${token}`), showing('Bearer undefined')]) {
    const answer = await bare.ask('/admin/blocked', question)
    expectError(answer, NOT_FOUND)
    expectShut(answer)
  }
})
