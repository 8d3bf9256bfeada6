import { MINE_PAGE_FILES } from '../../../../src/gateway/pages/mine-page-routes.js'
import { builtPages } from '../../../support/cli/built-package.js'
import { expectError } from '../../../support/gateway/expect-error.js'
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
    const { headers } = await ask(path)
    expect(headers).toMatchObject({
      ...{ 'cache-control': 'no-cache', 'content-type': type, 'x-content-type-options': 'nosniff' },
      ...{ 'cross-origin-opener-policy': 'same-origin', 'cross-origin-resource-policy': 'same-origin' },
      'referrer-policy': 'no-referrer',
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
    const error = 'this page is not part of this build'
    expectError(await bare.ask(path), { status: 404, code: 'NOT_FOUND', error })
  })
})

test('the page loads nothing but its own files', async () => {
  const page = (await ask('/mine')).body.toString('utf8')
  const loaded = [...page.matchAll(/(?:src|rel="(?:icon|stylesheet)" href)="([^"]*)"/g)].map(([, url]) => url)
  expect(loaded.sort().join(' ')).toBe('/explorer/explorer.js /explorer/style.css /favicon.svg /mine/main.js')
  expect(page).not.toMatch(/<style|style=|\son\w+=|<script(?! type="module" src=)/)
})

test.each(['/mine/other.js', '/mine/..%2fpackage.json', '/mine/constructor', '/mine/main.js/x', '/mine/%00'])(
  '%s is not there, which is said as everywhere',
  async (path) => {
    const answer = await ask(path)
    expectError(answer, { status: 404, code: 'NOT_FOUND' })
    expect(answer.headers['content-security-policy']).toBeUndefined()
  },
)

test('a server does not start with an incomplete page', async () => {
  const folder = new URL(`file://${await servers.folder()}/`)
  const started = servers.start({}, { pages: folder })
  await expect(started).rejects.toThrow(/the files of the pages are incomplete; run `npm run build`/)
})
