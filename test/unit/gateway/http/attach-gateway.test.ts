import { writeFileSync } from 'node:fs'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../../backend/src/protocol/profile.js'
import { FactStore } from '../../../../backend/src/read/fact-store.js'
import { Reader } from '../../../../backend/src/read/reader.js'
import type { Writer } from '../../../../backend/src/writer/writer.js'
import { attachGateway, type GatewayOptions } from '../../../../src/gateway/index.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { directory, publisher, text } from '../../../support/gateway/site.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { serving } from '../../../support/server/connections.js'
import {
  type Answer,
  ask,
  posted,
  type Question,
  SILENT,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'
import { FactFiles } from '../../../support/storage/fact-files.js'

// The gateway on an app that is none of ours, over the store of a server that answers the same questions.

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start(treeOf(chain.deployment))
const { graph } = server.node

const mint = chain.mint('a')
const site = await publisher({ server, chain })(
  directory({ 'index.html': '_1' }),
  text('<p>here</p>', 'text/html'),
  text('blocked'),
)
for (const transaction of [chain.genesis, mint]) await server.take(beefOf(transaction))
const blocked = { txid: site.txid, vout: 2 }
await graph.blocklist.add({ kind: 'outpoint', value: formatOutpoint(blocked), reason: 'a reason', since: 1 })

const { deployment } = chain
const LOCAL = { profile: PROFILES.local, deployment, logger: SILENT, overlay: false }

/** What stands behind the gateway on the host's app: its own route that fails, its 404, its last word on errors. */
const failing: RequestHandler = () => {
  throw new Error('the host’s own')
}
const lastWord: RequestHandler = (_request, response) => {
  response.status(404).json({ description: 'Route not found.' })
}
const ownErrors: ErrorRequestHandler = (error: Error, _request, response, _next) => {
  response.status(418).json({ description: error.message })
}

interface Host {
  options?: GatewayOptions
  stored?: FactStore
  /** What the host has before the gateway. */
  before?: RequestHandler[]
}

async function hosted<Result>(
  { options = LOCAL, stored = graph, before = [] }: Host,
  use: (asked: (path: string, question?: Question) => Promise<Answer>) => Promise<Result>,
): Promise<Result> {
  const app = express()
  for (const handler of before) app.use(handler)
  attachGateway(app, { graph: stored }, options)
  const { url } = await serving(app.get('/fails', failing).use(lastWord, ownErrors))
  return await use((path, question) => ask(url, path, question))
}

const DIRECTORY = `/content/${site.outpoint(0)}`
const PAGE = `/content/${site.outpoint(1)}`
const GATEWAY = '/svc/gateway'
const NAMES = '/svc/names'

const QUESTIONS: [path: string, question?: Question][] = [
  [PAGE],
  [PAGE, { method: 'HEAD' }],
  [PAGE, { headers: { Range: 'bytes=1-3' } }],
  [PAGE, { headers: { 'If-None-Match': '*' } }],
  [`${DIRECTORY}?a=b`],
  [`${DIRECTORY}?raw`],
  [`/content/${formatOutpoint(blocked)}`],
  ['/content/no-outpoint'],
  [`${GATEWAY}/stream/${site.outpoint(1)}`],
  [`${GATEWAY}/metadata/${site.outpoint(1)}:-1`],
  [`${GATEWAY}/metadata`, posted([site.outpoint(1), mint.outpoint(2)])],
  [`${GATEWAY}/provenance/${site.outpoint(1)}`],
  [`${GATEWAY}/preview/YWJj`],
  [`${GATEWAY}/preview`, { method: 'POST', headers: { 'Content-Type': 'image/svg+xml' }, body: '<svg/>' }],
  [`${NAMES}/a`],
  [`${NAMES}/mine/a`],
  [`${NAMES}/proof/a`],
  [`${NAMES}?prefix=a&limit=1`],
  [`${NAMES}/origins`, posted([mint.outpoint(2)])],
  [`${NAMES}/origins`, { ...posted([]), body: '{' }],
  [
    PAGE,
    { method: 'OPTIONS', headers: { Origin: 'https://a.test', 'Access-Control-Request-Method': 'GET' } },
  ],
]

test.each(QUESTIONS.map(([path, question = {}]) => [path, question] as const))(
  '%s is answered as by the server %j',
  async (path, question) => {
    // Of one answer, or of one server; and errors are pages in the server only.
    const OWN = ['date', 'x-request-id', 'x-powered-by', 'connection', 'keep-alive', 'vary']
    const comparable = ({ status, headers, body }: Answer) => {
      const kept = Object.entries(headers).filter(([name]) => !OWN.includes(name))
      return { status, headers: Object.fromEntries(kept), body: body.toString('latin1') }
    }
    const answer = await hosted({}, (asked) => asked(path, question))
    expect(comparable(answer)).toEqual(comparable(await server.ask(path, question)))
  },
)

test('what the host has itself is left to it', async () => {
  await hosted({}, async (asked) => {
    const unknown = { status: 404, json: { description: 'Route not found.' } }
    for (const path of ['/', '/content', '/content/', GATEWAY, `${GATEWAY}/nothing`, '/contents/a'])
      expect(await asked(path)).toMatchObject(unknown)
    expect(await asked('/fails')).toMatchObject({ status: 418, json: { description: 'the host’s own' } })
    expect((await asked('/fails')).headers['access-control-allow-origin']).toBeUndefined()
  })
})

test.each(['', '/below'])(
  'a path that is not the host’s refuses methods that it does not have, below %p',
  async (path) => {
    const names = `${path}${NAMES}`
    const known: [path: string, allow: string][] = [
      [path + PAGE, 'GET, HEAD'],
      [`${names}/a`, 'GET, HEAD'],
      [`${names}/origins`, 'GET, HEAD, POST'],
      [`${path}${GATEWAY}/preview`, 'GET, HEAD, POST'],
      [`${path}/deployment.json`, 'GET, HEAD'],
      [`${path}/openapi.json`, 'GET, HEAD'],
    ]
    await hosted({ options: { ...LOCAL, path } }, async (asked) => {
      for (const [each, allow] of known)
        for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PROPFIND'].filter(
          (one) => !allow.includes(one),
        )) {
          const answer = await asked(each, { method })
          expect([each, method, answer.headers.allow]).toEqual([each, method, allow])
          expectError(answer, { status: 405, code: 'METHOD_NOT_ALLOWED' })
        }
      // The host's engine and pages may have them.
      for (const each of [`${path}/lookup`, path === '' ? '/' : path, `${path}/nothing`])
        expect((await asked(each, { method: 'PUT' })).status).toBe(404)
    })
  },
)

test('an error before it is the host’s, too', async () => {
  const { status } = await hosted({ before: [failing] }, (asked) => asked(PAGE))
  expect(status).toBe(418)
})

test('what goes wrong in its routes is logged, and answered in its shape', async () => {
  const logged: unknown[] = []
  const logger = { error: (about: unknown) => logged.push(about) } as never
  const broken = (): never => {
    throw new Error('the store is gone')
  }
  await hosted({ options: { ...LOCAL, logger } }, async (asked) => {
    const during = async () => {
      for (const path of [PAGE, `${NAMES}/a`])
        expectError(await asked(path), { status: 500, code: 'INTERNAL' })
    }
    await whileReplaced(graph, 'consistent', { by: broken, during })
  })
  expect(logged).toMatchObject([
    { method: 'GET', url: PAGE, err: { message: 'the store is gone' } },
    { method: 'GET', url: `${NAMES}/a`, err: { message: 'the store is gone' } },
  ])
})

test('without a word, it has the paths and the tree of mainnet', async () => {
  await hosted({ options: { logger: SILENT } }, async (asked) => {
    expect(await asked('/1sat/opns/origin/a')).toMatchObject({ status: 200 })
    expect(await asked(`/1sat/ordfs/metadata/${site.outpoint(1)}`)).toMatchObject({ status: 200 })
    // The mint is of a tree of its own.
    expect(await asked('/1sat/opns/proof/a')).toMatchObject({ status: 404 })
  })
})

test('a host that follows no tree proves no name', async () => {
  const options = { ...LOCAL, deployment: undefined }
  const answer = await hosted({ options }, (asked) => asked(`${NAMES}/proof/a`))
  expectError(answer, { status: 404, code: 'NOT_FOUND' })
})

test('limits, addresses and directives are the host’s', async () => {
  const options = {
    ...LOCAL,
    network: 'test',
    limits: { maxMapBytes: 0 },
    contentPolicy: 'img-src *',
  } as const
  await hosted({ options }, async (asked) => {
    const record = await asked(`${GATEWAY}/metadata/${site.outpoint(0)}`)
    expect(record.json).toMatchObject({ map: {} })
    expect((await asked(`${GATEWAY}/metadata/${mint.outpoint(2)}`)).json).toMatchObject({
      owner: expect.stringMatching(/^[mn]/),
    })
    expect((await asked(PAGE)).headers['content-security-policy']).toMatch(/; img-src \*$/)
  })
})

test('whatever is asked first waits until there is an index to read from', async () => {
  const files = new FactFiles(deployment)
  const index = new Reader({ index: files.index, log: files.log })
  const explorer = { files: new URL(`file://${files.folder}/`) }
  const names = ['style.css', 'explorer.js', 'verify.js', 'main.js', 'mining.js', 'my.js', 'search-worker.js']
  for (const name of names)
    for (const coding of ['', '.br', '.gz']) writeFileSync(new URL(name + coding, explorer.files), '')
  for (const path of ['/', '/names', '/search?q=a', '/feeds/names.atom', `${NAMES}/a`, PAGE]) {
    const reader = new Reader()
    const opened = async (): Promise<void> => reader.attach(index)
    const late = new FactStore({ reader, writer: {} as Writer, opened })
    await hosted({ stored: late, options: { ...LOCAL, explorer } }, async (asked) => {
      expect([path, (await asked(path)).status]).not.toEqual([path, 503])
    })
  }
  index.close()
  files.close()
})

test('a host that lets pages of other origins in by itself is not doubled', async () => {
  await hosted({ options: { ...LOCAL, crossOrigin: false } }, async (asked) => {
    for (const path of [PAGE, `${NAMES}/a`]) {
      expect((await asked(path)).headers['access-control-allow-origin']).toBeUndefined()
      // Its own handler may stand behind the gateway.
      const preflight = { Origin: 'https://example.com', 'Access-Control-Request-Method': 'GET' }
      expect(await asked(path, { method: 'OPTIONS', headers: preflight })).toMatchObject({
        status: 404,
        json: { description: 'Route not found.' },
      })
    }
  })
})

test('below a path of the host, redirects stay below it', async () => {
  const app = express()
  attachGateway(app, { graph }, LOCAL)
  const { url } = await serving(express().use('/names', app))
  expect(await ask(url, `/names${DIRECTORY}?a=b`)).toMatchObject({
    status: 302,
    headers: { location: `/names${DIRECTORY}/index.html?a=b` },
  })
})
