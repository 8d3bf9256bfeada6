import express, { type RequestHandler } from 'express'
import { answeringServices } from '../../../../backend/src/lookup-services/services.js'
import { outpointLabel } from '../../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../../backend/src/protocol/profile.js'
import { attachGateway, type GatewayOptions } from '../../../../src/gateway/index.js'
import type { OpenapiDocument } from '../../../../src/gateway/openapi/document.js'
import { builtPages } from '../../../support/cli/built-package.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { offeredRequests } from '../../../support/gateway/offered.js'
import { directory, text } from '../../../support/gateway/site.js'
import { serving } from '../../../support/server/connections.js'
import { contractOf } from '../../../support/server/openapi-contract.js'
import { type Answer, ask, type Question, SILENT, useServers } from '../../../support/server/test-server.js'

// What the gateway offers on an app that is not ours, over the store of a server that offers the same.

const { server, chain, named, mine } = await hostedServer(useServers())
const { deployment } = chain
const { graph } = server.node
const explorer = { files: await builtPages() }
const { site } = await named('ab', directory({ 'index.html': '_1' }), text('<p>of ab</p>', 'text/html'))
await mine('own')
const outpoint = site.outpoint(0)

/** The last word of the host. */
const lastWord: RequestHandler = (_request, response) => {
  response.status(404).set('X-Own', 'yes').json({ description: 'Route not found.' })
}
const isOwn = ({ headers }: Answer): boolean => headers['x-own'] !== undefined

type Asked = (path: string, question?: Question) => Promise<Answer>

async function hosted<Result>(
  options: GatewayOptions,
  use: (asked: Asked, port: string) => Promise<Result>,
  before: RequestHandler[] = [],
  stores: Parameters<typeof attachGateway>[1] = { graph },
): Promise<Result> {
  // What Express adds to every answer of a host is the host's own.
  const app = express().disable('etag').disable('x-powered-by')
  for (const handler of before) app.use(handler)
  attachGateway(app, stores, { deployment, profile: PROFILES.local, logger: SILENT, ...options })
  app.post(['/submit', '/lookup'], (_request, response) => {
    response.json({ engine: true })
  })
  const { url } = await serving(app.use(lastWord))
  return await use((path, question) => ask(url, path, question), new URL(url).port)
}

const HOSTS: [what: string, options: GatewayOptions][] = [
  ['at its root', {}],
  ['at its root, with pages', { explorer }],
  ['below a path, with pages', { explorer, path: '/mine/~tree' }],
  ['of mainnet, without an engine', { profile: PROFILES.mainnet, overlay: false, crossOrigin: false }],
]

describe.each(HOSTS)('a host %s', (_, options) => {
  const { path = '', overlay = true } = options

  test('answers everything that its OpenAPI document names, as it says', async () => {
    await hosted(options, async (asked) => {
      const { document, requests } = await offeredRequests(asked, { outpoint, name: 'ab', path })
      expect(requests.length).toBeGreaterThan(60)
      expect(requests.filter(([, answer]) => isOwn(answer)).map(([request]) => request)).toEqual([])
      // What else it answers is what it passes on.
      for (const each of path === '' ? [] : ['/submit', '/lookup'])
        expect([each, isOwn(await asked(path + each, { method: 'POST' }))]).toEqual([
          each,
          !(each in document.paths),
        ])
      const contract = contractOf(document)
      const complaints = requests
        // What an engine answers is described by the engine.
        .filter(([request]) => !/\/(submit|lookup)$/.test(request))
        .flatMap(([request, answer]) => {
          const [method = '', line = ''] = request.split(' ')
          const question = { method: method.toUpperCase(), headers: {}, body: method === 'post' ? '[]' : '' }
          return contract.judge({ path: line.slice(path.length), question, answer }).complaints
        })
      expect(complaints).toEqual([])
    })
  })

  test('has the capabilities that it names, and no others', async () => {
    await hosted(options, async (asked) => {
      const { json } = await asked(`${path}/capabilities`)
      const { profile = PROFILES.local } = options
      const [prefix] = profile.walletPrefixes
      const trials: Record<string, [path: string, question?: Question]> = {
        beef: [`/beef/${site.txid}`],
        txo: [`/txo/${outpoint}`],
        overlay: ['/overlay/submit', { method: 'POST' }],
        ordfs: [`/ordfs/metadata/${outpoint}`],
      }
      const offered: string[] = []
      for (const [capability, [below, question]] of Object.entries(trials)) {
        const { status } = await asked(`${path}${prefix}${below}`, question)
        if (status === 200) offered.push(capability)
      }
      expect(json).toEqual(offered)
      expect(offered.includes('overlay')).toBe(overlay)
    })
  })
})

test('a host offers every path of our server but those that write, and those about the process', async () => {
  const all = (await server.ask('/openapi.json')).json as OpenapiDocument
  await hosted({ explorer }, async (asked) => {
    const own = (await asked('/openapi.json')).json as OpenapiDocument
    const missing = Object.keys(all.paths).filter((path) => !(path in own.paths))
    const names = [...new Set(missing.map((path) => path.replace('/svc/overlay', '').split('/')[1]))]
    expect(names.sort()).toEqual([
      ...['admin', 'arc-ingest', 'getDocumentationForLookupServiceProvider'],
      ...['getDocumentationForTopicManager', 'health', 'listLookupServiceProviders', 'listTopicManagers'],
      ...['lookup', 'metrics', 'requestAdmittedList', 'requestCompoundMerklePath', 'requestForeignGASPNode'],
      ...['requestRawTransactions', 'requestSyncResponse', 'requestTopicAnchorRange'],
      ...['requestTopicAnchorTip', 'submit'],
    ])
    expect(Object.keys(own.paths).filter((path) => !(path in all.paths))).toEqual([])
    expect(all.info.description).not.toBe(own.info.description)
  })
})

test('a host that follows the chain says how far it is, and nothing of what is missing until then', async () => {
  class Follower {
    private readonly height = 900_000
    readonly asksNetwork = false
    readonly progress = {
      asOf: { height: 899_999 },
      isCatchingUp: true,
      isIncomplete: true,
      progress: () => ({ height: 899_000, chainHeight: this.height }),
    }
    chain() {
      return { height: this.height, lag: 1 }
    }
  }
  const follower = new Follower()
  await hosted({ explorer, follower }, async (asked) => {
    const home = await asked('/')
    expect([home.status, home.headers['x-complete']]).toEqual([200, 'false'])
    expect(home.body.toString()).toMatch(/900,000.*1 behind.*Names as of block 899,999/s)
    expectError(await asked('/svc/names/zz'), {
      ...{ status: 503, code: 'NOT_CAUGHT_UP' },
      data: { progress: { height: 899_000, chainHeight: 900_000 } },
    })
    follower.progress.isCatchingUp = false
    expect((await asked('/svc/names/zz')).status).toBe(404)
    expect((await asked('/')).headers['x-complete']).toBeUndefined()
  })
})

test('without pages, the root and the paths of pages are the host’s', async () => {
  await hosted({}, async (asked) => {
    for (const path of '/ /names /mine /api /status /explorer/style.css /robots.txt /health'.split(' '))
      expect([path, isOwn(await asked(path))]).toEqual([path, true])
  })
})

/** Paths of this service in a page. */
function linksIn(html: string): string[] {
  return [...html.matchAll(/ (?:href|src|action)="(\/[^/"][^"#]*|\/)"/g)].map(([, link = '']) =>
    link.replaceAll('&amp;', '&'),
  )
}

test.each([
  ['the root', ''],
  ['a path', '/mine/~tree'],
])('every link of the pages below %s leads to something of the gateway', async (_, path) => {
  await hosted({ explorer, path }, async (asked) => {
    const seen = new Set<string>()
    const wrong: string[] = []
    let next = [`${path}/`]
    // Pages of pages of pages: by then, every kind has been there.
    for (let depth = 0; depth < 3; depth++) {
      const found: string[] = []
      for (const link of next) {
        if (seen.has(link)) continue
        seen.add(link)
        const answer = await asked(link, { headers: { Accept: 'text/html' } })
        if (isOwn(answer) || answer.status >= 400) wrong.push(`${answer.status} ${link}`)
        const isPage = String(answer.headers['content-type']).startsWith('text/html')
        if (isPage && !link.startsWith(`${path}/content/`)) found.push(...linksIn(answer.body.toString()))
      }
      next = found
    }
    expect(wrong).toEqual([])
    const kinds = [
      'names',
      'tree',
      'inscriptions',
      'mine',
      'api',
      'name/ab',
      `ordinal/${outpoint}`,
      'openapi.json',
    ]
    for (const kind of kinds) expect([...seen].join(' ')).toContain(`${path}/${kind}`)
    expect([...seen].every((link) => link.startsWith(`${path}/`))).toBe(true)
    expect([...seen].filter((link) => /\/status|\/health|\/metrics/.test(link))).toEqual([])

    const home = await asked(`${path}/`)
    const port = /127\.0\.0\.1:\d+/.exec(String(home.headers['content-security-policy']))?.[0]
    const scripts = `script-src ${port}${path}/explorer/ ${port}${path}/mine/;`
    expect(home.headers['content-security-policy']).toContain(scripts)
    const search = await asked(`${path}/search?q=ab`)
    expect([search.status, search.headers.location]).toEqual([303, `${path}/name/ab`])
    const nothing = await asked(`${path}/name/zz`, { headers: { Accept: 'text/html' } })
    expect(nothing.status).toBe(200)
    expect(nothing.body.toString()).toContain(`href="${path}/mine?name=zz"`)
    const { json } = await asked(`${path}/deployment.json`)
    expect(json).toMatchObject({ minting: { paths: { node: `GET ${path}/svc/names/mine/{name}` } } })
  })
})

describe('hosts as sites', () => {
  const SITES = { gatewayHost: 'names.test', ownHosts: ['own.names.test'] }
  const at = (host: string, port: string, question: Question = {}): Question => ({
    ...question,
    headers: { Host: `${host}:${port}`, ...question.headers },
  })

  test('names and outpoints have theirs, whatever path the routes are below', async () => {
    for (const path of ['', '/tree'])
      await hosted({ ...SITES, path }, async (asked, port) => {
        const page = await asked('/index.html', at('ab.names.test', port))
        expect([page.status, page.body.toString()]).toEqual([200, '<p>of ab</p>'])
        expect(page.headers['content-security-policy']).toBeUndefined()
        expect(page.headers.link).toContain(`http://names.test:${port}${path}/svc/names/proof/ab`)
        const label = outpointLabel(parseOutpoint(site.outpoint(1)))
        const file = await asked('/', at(`${label}.c.names.test`, port))
        expect([file.status, file.body.toString()]).toEqual([200, '<p>of ab</p>'])
      })
  })

  test('every other host is the host’s own, and so is one below the zone that it says is', async () => {
    await hosted(SITES, async (asked, port) => {
      for (const host of ['127.0.0.1', 'overlay.test', 'names.test', 'own.names.test'])
        expect([host, isOwn(await asked('/', at(host, port)))]).toEqual([host, true])
      // Who says so is anybody.
      const headers = { 'X-Forwarded-Host': 'ab.names.test' }
      expect(isOwn(await asked('/index.html', at('overlay.test', port, { headers })))).toBe(true)
    })
    await hosted({ ...SITES, trustedProxies: 1 }, async (asked, port) => {
      const headers = { 'X-Forwarded-Host': 'ab.names.test' }
      expect((await asked('/index.html', at('overlay.test', port, { headers }))).status).toBe(200)
    })
  })

  test('a site has none of the routes, and says only of pages that are there', async () => {
    for (const [options, isThere] of [
      [SITES, false],
      [{ ...SITES, explorer }, true],
    ] as const)
      await hosted(options, async (asked, port) => {
        // As of every site, `index.html` is what is missing at its root.
        for (const path of ['/openapi.json', '/submit', '/names'])
          expect((await asked(path, at('ab.names.test', port))).body.toString()).toBe('<p>of ab</p>')
        expect((await asked('/svc/names/ab', at('ab.names.test', port))).status).toBe(404)
        const post = await asked('/submit', at('ab.names.test', port, { method: 'POST' }))
        expectError(post, { status: 405, code: 'METHOD_NOT_ALLOWED' })
        const free = await asked('/', at('zz.names.test', port))
        expect(free.status).toBe(404)
        expect(free.body.toString().includes('/mine?name=zz')).toBe(isThere)
        expect(free.body.toString()).toContain(`npx minetree mine zz --url http://names.test:${port}`)
        // It shows nothing but that it was mined.
        const bare = await asked('/', at('a.names.test', port))
        expect([bare.status, bare.body.toString()]).toEqual(isThere ? [302, ''] : [200, 'a'])
      })
  })

  test('what the host has in front of its routes is in front of the sites', async () => {
    const closed: RequestHandler = (_request, response) => void response.status(401).end()
    const ask = async (asked: Asked, port: string) => (await asked('/', at('ab.names.test', port))).status
    expect(await hosted({ ...SITES, explorer }, ask, [closed])).toBe(401)
  })

  test('a host that has read the body already is asked no less', async () => {
    await hosted(
      SITES,
      async (asked) => {
        const body = JSON.stringify([outpoint])
        const question = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body }
        expect((await asked('/svc/gateway/metadata', question)).status).toBe(200)
      },
      [express.json(), express.raw({ type: 'application/octet-stream' })],
    )
  })
})

test('what guards the paths of an engine guards them by whatever path wallets ask', async () => {
  const answering = { graph, lookupServices: answeringServices.bind(undefined, graph) }
  for (const [path, stores, guarded] of [
    ['', { graph }, ['/submit', '/lookup']],
    ['', answering, ['/submit', '/lookup']],
    ['/tree', { graph }, ['/submit', '/lookup']],
    // There it has a `/lookup` of its own.
    ['/tree', answering, ['/submit', '/tree/lookup']],
  ] as const)
    await hosted(
      { path },
      async (asked) => {
        for (const each of ['/svc/overlay/submit', '/svc/overlay/lookup', '/submit', '/lookup'].map(
          (at) => path + at,
        ))
          expect([each, (await asked(each, { method: 'POST' })).status]).toEqual([each, 401])
        expect((await asked(`${path}/svc/names/ab`)).status).toBe(200)
      },
      [
        (request, response, next) => {
          if (guarded.some((each) => each === request.path)) response.status(401).end()
          else next()
        },
      ],
      stores,
    )
})

test('a path that is none is refused at once', () => {
  for (const path of ['tree', '/tree/', '/', '/a b', '/:x', '/.', '/..', '/a/../b'])
    expect(() => attachGateway(express(), { graph }, { path })).toThrow(/^path must look like/)
})
