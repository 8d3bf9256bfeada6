import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { PROFILES, type ProfileName } from '../../../../backend/src/protocol/profile.js'
import { ERROR_STATUSES } from '../../../../src/gateway/http/errors.js'
import type { OpenapiDocument, OperationObject } from '../../../../src/gateway/openapi/document.js'
import { createApp } from '../../../../src/server/app.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { packageVersion } from '../../../../src/server/config/package-info.js'
import { expectErrorHead } from '../../../support/gateway/expect-error.js'
import { imageProgram } from '../../../support/images/pictures.js'
import { routesOf, type ServedRoute } from '../../../support/server/express-routes.js'
import { contractOf } from '../../../support/server/openapi-contract.js'
import { openapiHosts, openapiRequests } from '../../../support/server/openapi-requests.js'
import {
  type Answer,
  lastingHeaders,
  SILENT,
  type TestServer,
  useServers,
} from '../../../support/server/test-server.js'

const { start } = useServers()

/** The paths of the explorer, as the documentation lists them. */
const [, pages = ''] = readFileSync('docs/spec/http.md', 'utf8').split('\n## Pages\n')
const pagePaths = new Set(
  [...pages.slice(0, pages.indexOf('\n## ')).matchAll(/^\| `(\/[^`?]*)/gm)].map(([, path = '']) =>
    path.replace(/<(\w+)>/g, ':$1'),
  ),
)

/** The templates of routes that are regular expressions, which OpenAPI does not have. */
const PATTERNS: Record<string, string[]> = {
  [String(/^\/content\/./)]: ['/content/{reference}', '/content/{reference}/{filepath}'],
  [String(/^\/metadata\/[^/]+$/)]: ['/metadata/{reference}'],
  [String(/^\/proof\//)]: ['/proof/{reference}'],
  [String(/^\/provenance\//)]: ['/provenance/{outpoint}'],
  [String(/^\/image\//)]: ['/image/{reference}'],
  [String(/^\/stream\//)]: ['/stream/{outpoint}'],
  [String(/^\/preview(?:\/|$)/)]: ['/preview/{html}'],
}

/** The operations of an Express route: every GET is a HEAD as well. */
function operationsOf({ method, prefix, path }: ServedRoute): string[] {
  const written = path instanceof RegExp ? PATTERNS[String(path)] : [path.replace(/:(\w+)/g, '{$1}')]
  if (written === undefined) throw new Error(`this test does not know the templates of ${path}`)
  const methods = method === 'GET' ? ['get', 'head'] : [method.toLowerCase()]
  return methods.flatMap((each) =>
    written.map((template) => `${each} ${prefix}${template === '/' ? '' : template}`),
  )
}

function described({ paths }: OpenapiDocument): [string, OperationObject][] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, OperationObject] => [
      `${method} ${path}`,
      operation,
    ]),
  )
}

/** An app of a profile as its server has it. */
function appOf({ node: { overlay, graph } }: TestServer, profile: ProfileName) {
  return createApp({
    config: readConfig({ PROFILE: profile }),
    ...{ overlay, graph },
    ping: async () => {},
    images: { image: () => Promise.reject(new Error('nobody asks')), forget: async () => {} },
    logger: SILENT,
  }).express
}

/** This profile has each route below two prefixes. Below the second, only what is answered with 200 is asked for. */
const profile = PROFILES.mainnet
const { hosts, stored } = await openapiHosts({ start, profile: 'mainnet' })
const served = await hosts.well.ask('/openapi.json')
const document = served.json as OpenapiDocument
const contract = contractOf(document)
const AGAIN = '/svc/'
const requests = profile.gatewayPrefixes.flatMap((gateway, at) => {
  const [names = '', wallets = ''] = [profile.namesPrefixes[at], profile.walletPrefixes[at]]
  const all = openapiRequests({ stored, gateway, names, wallets })
  return gateway.startsWith(AGAIN)
    ? all.filter(([status, path]) => status === 200 && path.startsWith(AGAIN))
    : all
})

interface Exchange {
  /** What was asked, and of which host. */
  asked: string
  path: string
  status: number
  answer: Answer
  /** The answer to the same request with GET. */
  got: Answer | undefined
}

const exchanges: Exchange[] = []
const differing: object[] = []
const seen = new Set<string>()
for (const [status, path, question = {}, host = 'well'] of requests) {
  const { method = 'GET', headers = {}, body = '' } = question
  const said = `${method} ${path.slice(0, 150)} ${JSON.stringify(headers)} ${String(body).slice(0, 80)}`
  const asked = `${said} to the host that is ${host}`
  try {
    const answer = await hosts[host].ask(path, question)
    const judged = contract.judge({ path, question, answer })
    for (const claim of judged.seen) seen.add(claim)
    if (answer.status !== status || judged.complaints.length > 0)
      differing.push({ asked, status, answered: answer.status, complaints: judged.complaints })
    // The request before that of a head is the same with GET.
    const got = method === 'HEAD' && host === 'well' ? exchanges.at(-1)?.answer : undefined
    exchanges.push({ asked, path, status, answer, got })
  } catch (error) {
    differing.push({ asked, status, error: String(error) })
  }
}

const local = await start({ PROFILE: 'local' }, { imageProgram: await imageProgram() })
const documents = [
  ['mainnet', document, appOf(hosts.well, 'mainnet')],
  ['local', (await local.ask('/openapi.json')).json as OpenapiDocument, appOf(local, 'local')],
] as const

describe.each(documents)('the document of the profile %s', (_, document, app) => {
  test('is valid OpenAPI 3.1 with the version of the package', async () => {
    const validator = new Validator()
    expect(await validator.validate(structuredClone({ ...document }))).toEqual({ valid: true })
    expect(() => validator.resolveRefs()).not.toThrow()
    expect(validator.version).toBe('3.1')
    expect(document.info.version).toBe(packageVersion())
    expect(document.info.version).toMatch(/^\d+\.\d+\.\d+/)
  })

  test('gives each operation a unique id and every parameter of its path', () => {
    const operations = described(document)
    const ids = operations.map(([, { operationId }]) => operationId)
    expect([...new Set(ids)]).toEqual(ids)
    for (const [line, { parameters }] of operations) {
      const names = parameters.filter((each) => each.in === 'path').map((each) => `{${each.name}}`)
      expect({ line, names }).toEqual({ line, names: line.match(/\{\w+\}/g) ?? [] })
    }
  })

  test('has no unused component', () => {
    const text = JSON.stringify(document)
    const { securitySchemes, ...referred } = document.components
    const unused = Object.entries(referred)
      .flatMap(([kind, components]) => Object.keys(components).map((name) => `#/components/${kind}/${name}`))
      .filter((reference) => !text.includes(JSON.stringify(reference)))
    expect(unused).toEqual([])
    for (const name of Object.keys(securitySchemes)) expect(text).toContain(`"security":[{"${name}":[]}]`)
  })

  test('has every route of the server, and no other', () => {
    // Pages are for people, and `docs/spec/http.md` lists them.
    const isPage = ({ prefix, path }: ServedRoute) => prefix === '' && pagePaths.has(String(path))
    const routes = routesOf(app).routes.filter((route) => !isPage(route))
    const lines = described(document).map(([line]) => line)
    expect(lines.sort()).toEqual(routes.flatMap(operationsOf).sort())
  })

  test('accounts for every handler that answers without being a route', () => {
    const operators = ['operator', 'adminGuard', 'refuseOther', 'unlessRebuilding']
    const handlers = operators.map((name) => ({ name, prefix: '/admin' }))
    expect(routesOf(app).handlers).toEqual([...handlers, { name: 'refuse', prefix: '' }])
  })
})

test('the document, which is long, is sent compressed', async () => {
  const { headers, body } = await hosts.well.ask('/openapi.json', { headers: { 'Accept-Encoding': 'br' } })
  expect([headers['content-encoding'], body.length < served.body.length / 10]).toEqual(['br', true])
})

test('every answer is the one that was expected, and as the document describes it', () => {
  expect(differing).toEqual([])
  expect(exchanges.length).toBeGreaterThan(1000)
})

test('every error has the headers of all, and no inside', () => {
  // Of a head that is too large, Node says so by itself.
  for (const { path, answer } of exchanges.filter(({ status }) => status >= 400 && status !== 431)) {
    expectErrorHead(answer, { shut: path.startsWith('/admin') })
    expect(answer.body.toString()).not.toMatch(/\bat .+:\d+|node_modules|\.[jt]s\b|sqlite|select |secret/i)
  }
})

test('HEAD is answered with the head of GET and no body', () => {
  // Node leaves the length out of a head without a body, and `/metrics` counts the request.
  const heads = exchanges.filter(
    ({ got, status, path }) => got?.status === status && status !== 302 && path !== '/metrics',
  )
  expect(heads.length).toBeGreaterThan(100)
  for (const { asked, path, answer, got } of heads) {
    const headOf = (of: Answer): object => {
      const { 'content-length': length, ...others } = lastingHeaders(of)
      // It says for how long the host has been running, which may have a digit more by then.
      return { ...others, length: path === '/health' ? Number(length) > 0 : length }
    }
    expect({ asked, head: headOf(answer) }).toEqual({ asked, head: got && headOf(got) })
    expect(answer.body).toHaveLength(0)
  }
})

test('no answer has a tag of its bytes alone, or of two types', () => {
  const types = new Map<string, unknown>()
  for (const { answer, path } of exchanges) {
    const { etag, 'content-type': type } = answer.headers
    if (answer.status !== 200 || etag === undefined || answer.body.length === 0) continue
    expect({ path, etag }).not.toEqual({ path, etag: `"${sha256(answer.body).toString('hex')}"` })
    expect({ path, type: types.get(etag) ?? type }).toEqual({ path, type })
    types.set(etag, type)
  }
  expect(types.size).toBeGreaterThan(10)
})

test('the document has every code of an error', () => {
  const codes = contract.claims.flatMap((claim) => / ([A-Z_]+)$/.exec(claim)?.[1] ?? [])
  // A method that a path does not have is not described, nor are hosts that show content.
  const others = Object.keys(ERROR_STATUSES).filter((code) => !codes.includes(code))
  expect(others).toEqual(['METHOD_NOT_ALLOWED', 'BAD_REDIRECTS'])
})

test('the document claims nothing that no answer confirms', () => {
  const isAsked = (claim: string): boolean => {
    const [, path = '', status] = claim.split(' ')
    return !path.startsWith(AGAIN) || (status === '200' && claim.endsWith(' 200'))
  }
  expect(contract.claims.filter((claim) => isAsked(claim) && !seen.has(claim))).toEqual([])
  expect(contract.claims.length).toBeGreaterThan(200)
})

test('the document names no header that pages of other origins cannot read', () => {
  const exposed = String(served.headers['access-control-expose-headers']).split(',')
  const hidden = Object.keys(document.components.headers).filter((name) => !exposed.includes(name))
  // Browsers follow redirects and apply CORS before a page sees anything.
  const OF_CORS = ['Allow-Origin', 'Allow-Private-Network', 'Expose-Headers'].map(
    (name) => `Access-Control-${name}`,
  )
  // The last one is only on the operator's routes, which CORS does not open.
  expect(hidden).toEqual([...OF_CORS, 'Location', 'WWW-Authenticate'])
})
