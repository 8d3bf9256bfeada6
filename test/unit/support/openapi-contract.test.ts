import type { OpenapiDocument } from '../../../src/gateway/openapi/document.js'
import { contractOf } from '../../support/server/openapi-contract.js'
import { type Answer, type Question, useServers } from '../../support/server/test-server.js'

// The contract accepts the server's answers; that means something only if it rejects these.

const server = await useServers().start()
const { claims, judge } = contractOf((await server.ask('/openapi.json')).json as OpenapiDocument)
const GOOD = { name: 'a', outpoint: `${'ab'.repeat(32)}_2` }
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-private-network': 'true',
  'access-control-expose-headers': 'ETag',
  'x-request-id': '3f2a',
}
const HEADERS = { ...CORS, 'cache-control': 'no-cache', 'content-type': 'application/json; charset=utf-8' }

function answered({
  status = 200,
  headers = {},
  json = GOOD,
}: {
  status?: number
  headers?: Record<string, string>
  json?: unknown
}): Answer {
  return { status, headers: { ...HEADERS, ...headers }, body: Buffer.from(JSON.stringify(json)), json }
}

function judged(answer: Answer, { path = '/svc/names/origin/a', question = {} as Question } = {}) {
  return judge({ path, question, answer })
}

test('an answer as described confirms every claim about it', () => {
  const headers = {
    ...{ 'x-as-of': JSON.stringify({ height: 1, hash: 'ab'.repeat(32) }), 'x-complete': 'false' },
    ...{ etag: `"${'ab'.repeat(32)}"`, vary: 'Accept-Encoding' },
  }
  const { complaints, seen } = judged(answered({ headers }))
  expect(complaints).toEqual([])
  expect(claims).toEqual(expect.arrayContaining(seen))
  const line = 'get /svc/names/origin/{name} 200'
  expect(seen.sort()).toEqual(claims.filter((claim) => claim.startsWith(line)).sort())
})

test.each<[string, Answer, string]>([
  ['a status', answered({ status: 418 }), '418 is not described'],
  ['a fault', answered({ status: 502 }), '502 is not described'],
  ['a header', answered({ headers: { 'x-new': '1' } }), 'has a header x-new'],
  ['a header of another answer', answered({ headers: { 'x-map': '{}' } }), 'has a header x-map'],
  ['the value of a header', answered({ headers: { 'cache-control': 'private' } }), 'cache-control'],
  ['a media type', answered({ headers: { 'content-type': 'text/html' } }), 'comes as text/html'],
  ['a field', answered({ json: { ...GOOD, more: 1 } }), 'additional properties'],
  ['no field', answered({ json: { name: 'a' } }), 'required property'],
  ['the value of a field', answered({ json: { ...GOOD, outpoint: 'x' } }), 'pattern'],
  [
    'a code',
    answered({ status: 404, headers: { 'cache-control': 'no-store' }, json: { error: 'e', code: 'TAKEN' } }),
    'allowed values',
  ],
])('%s that is not described is reported', (_, answer, complaint) => {
  expect(judged(answer).complaints.join()).toMatch(new RegExp(complaint, 'i'))
})

test.each<[string, string, Question]>([
  ['a path', '/svc/names/owner/a', {}],
  ['a method', '/svc/names/origin/a', { method: 'POST' }],
  ['the value of a parameter', '/svc/names/origin/A', {}],
  ['a parameter', '/svc/names/origin/a?more=1', {}],
])('%s that is answered but not described is reported', (_, path, question) => {
  expect(judged(answered({}), { path, question }).complaints).not.toEqual([])
})

test('an internal error is described as the default', () => {
  const json = { error: 'it is logged', code: 'INTERNAL' }
  const { complaints, seen } = judged(
    answered({ status: 500, headers: { 'cache-control': 'no-store' }, json }),
  )
  expect(complaints).toEqual([])
  expect(seen).toContain('get /svc/names/origin/{name} default INTERNAL')
})
