import { MINE_PAGE_FILES } from '../../../../src/gateway/pages/mine-page-routes.js'
import { builtPages } from '../../../support/cli/built-package.js'
import { useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const pages = await builtPages()
const { ask, url } = await servers.start({}, { pages })
const folders = ['/explorer/', '/mine/'].map((folder) => new URL(url).host + folder).join(' ')
const bare = await servers.start()

const PATHS: [path: string, type: string][] = [
  ['/mine', 'text/html; charset=utf-8'],
  ['/my', 'text/html; charset=utf-8'],
  ...MINE_PAGE_FILES.map((name): [string, string] => [`/mine/${name}`, 'text/javascript; charset=utf-8']),
]

describe.each(PATHS)('%s', (path, type) => {
  test('comes as what it is, and shut to other pages', async () => {
    const { status, headers, body } = await ask(path)
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'cache-control': 'no-cache',
      'content-length': String(body.length),
      'content-type': type,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      etag: expect.stringMatching(/^"[0-9a-f]{64}"$/),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(String(headers['content-security-policy']).split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${folders} 'wasm-unsafe-eval'`,
      `worker-src ${folders}`,
      `style-src ${folders}`,
      "connect-src 'self' http://localhost:3301 http://localhost:3321 https://localhost:2121",
      "img-src 'self'",
      "base-uri 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
    ])
  })

  test('is not there where the page was not built', async () => {
    const { status, json } = await bare.ask(path)
    expect(status).toBe(404)
    expect(json).toMatchObject({ code: 'NOT_FOUND', error: 'this page is not part of this build' })
  })
})

test('the page loads nothing but its own files', async () => {
  const page = (await ask('/mine')).body.toString('utf8')
  const loaded = [...page.matchAll(/(?:src|rel="(?:icon|stylesheet)" href)="([^"]*)"/g)].map(([, url]) => url)
  expect(loaded.sort()).toEqual([
    '/explorer/explorer.js',
    '/explorer/style.css',
    '/favicon.svg',
    '/mine/main.js',
  ])
  expect(page).not.toMatch(/<style|style=|\son\w+=|<script(?! type="module" src=)/)
})

test.each(['/mine/other.js', '/mine/..%2fpackage.json', '/mine/constructor', '/mine/main.js/x', '/mine/%00'])(
  '%s is not there, which is said as everywhere',
  async (path) => {
    const { status, headers, json } = await ask(path)
    expect(status).toBe(404)
    expect(json).toMatchObject({ code: 'NOT_FOUND', error: expect.any(String) })
    expect([headers['cache-control'], headers['content-security-policy']]).toEqual(['no-store', undefined])
  },
)

test('a server does not start with an incomplete page', async () => {
  const folder = new URL(`file://${await servers.folder()}/`)
  await expect(servers.start({}, { pages: folder })).rejects.toThrow(
    /the files of the pages are incomplete; run `npm run build`/,
  )
})
