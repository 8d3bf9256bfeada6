import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { explorerWorld, HOSTILE } from '../../support/explorer/world.js'
import { beefOf, inscriptionScript } from '../../support/protocol/fake-chain.js'
import { OPERATOR, treeOf, useServers } from '../../support/server/test-server.js'

// Pages as they come over HTTP, with whatever strangers write.

const servers = useServers()
const world = explorerWorld()
const { outpoints } = world
const server = await servers.start({ ...treeOf(world.deployment), ...OPERATOR })
await world.fill(server)

const HTML = { headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }
const txid = outpoints.site.slice(0, 64)

const PAGES = [
  ...['/', '/names', '/names?order=name&prefix=a&after=al', '/tree', '/tree?prefix=al', '/charts'],
  ...['/name/alice', '/name/alice?from=1', '/name/alicia', '/inscriptions', '/status', '/api'],
  ...Object.values(outpoints).map((outpoint) => `/ordinal/${outpoint}`),
  `/type?type=${encodeURIComponent('text/plain')}`,
  `/map?${new URLSearchParams({ key: HOSTILE, value: HOSTILE })}`,
  `/parent/${outpoints.svg}`,
  `/tx/${txid}`,
  `/search?q=${encodeURIComponent(HOSTILE)}`,
]
const htmlOf = async (path: string, from = server): Promise<string> =>
  (await from.ask(path, HTML)).body.toString('utf8')

/** What the markup of a page may not have: strangers' markup, and anything inline. */
const FORBIDDEN = /<script(?! type="module" src="\/)|<style|\sstyle=|\son\w+="|javascript:|<img src=x|<b><b>/

describe.each(PAGES)('%s', (path) => {
  test('is a page with a strict policy, and none of a stranger’s markup', async () => {
    const { status, headers, body } = await server.ask(path, HTML)
    expect([200, 404]).toContain(status)
    if (!path.startsWith('/search')) expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(body.length),
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; script-src [\w.:]+\/explorer\/ [\w.:]+\/mine\/; style-src [\w.:]+\/explorer\/ [\w.:]+\/mine\/; .*frame-ancestors 'none'$/,
      ),
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    const html = body.toString('utf8')
    expect(html).not.toMatch(FORBIDDEN)
    expect(html).not.toContain('\u202e')
    expect(html.length).toBeLessThan(200_000)
    expect(html.includes('content="noindex"')).toBe(/^\/(?:search|map|type|name\/alicia)/.test(path))
  })

  test('is revalidated by its entity tag, and has a head', async () => {
    const { headers, status } = await server.ask(path, HTML)
    const head = await server.ask(path, { ...HTML, method: 'HEAD' })
    expect([head.status, head.body.length]).toEqual([status, 0])
    expect(headers.etag === undefined).toBe(status === 404)
    const tag = { 'If-None-Match': status === 200 ? String(headers.etag) : '*' }
    const again = await server.ask(path, { headers: { ...HTML.headers, ...tag } })
    expect(again.status).toBe(status === 200 ? 304 : status)
  })
})

test('no link leads nowhere', async () => {
  const links = new Set<string>()
  for (const path of PAGES) {
    const html = (await server.ask(path, HTML)).body.toString('utf8')
    for (const [, href = ''] of html.matchAll(/ (?:href|src)="(\/(?!\/)[^"#]*)/g))
      links.add(href.replaceAll('&amp;', '&'))
  }
  // Of long directories it is not known whether they have an index, and the files of pages are in no test of one process.
  const unsure = [outpoints['long directory'], outpoints['short directory']].map((each) => `/content/${each}`)
  const asked = [...links].filter((link) =>
    ['/mine', '/my', '/explorer/', ...unsure].every((start) => !link.startsWith(start)),
  )
  const dead: string[] = []
  for (const link of asked)
    if ((await server.ask(link, { ...HTML, method: 'HEAD' })).status >= 400) dead.push(link)
  expect(dead).toEqual([])
  expect(asked.length).toBeGreaterThan(100)
})

test('what is hostile is shown, as text', async () => {
  const html = await htmlOf(`/ordinal/${outpoints.hostile}`)
  expect(html).toContain('<bdi dir="auto">&lt;script>alert(1)&lt;/script>')
  expect(html).toContain('\\u{202e}gnirts\\u{0}\\u{200b}')
})

test('a frame of the explorer cannot reach another host, and is sandboxed twice', async () => {
  const html = await htmlOf(`/ordinal/${outpoints.page}`)
  const [frame = ''] = /<iframe[^>]*>/.exec(html) ?? []
  expect(frame).toContain('sandbox="allow-scripts"')
  expect(frame).toContain('loading="lazy"')
  const { headers } = await server.ask(`/content/${outpoints.page}?framed`)
  expect(headers['content-security-policy']).toMatch(/^sandbox [^;]*; default-src 'self' /)
  // What it frames would have a policy of its own, which lets it reach any host.
  expect(headers['content-security-policy']).toContain("; frame-src 'none'; object-src 'none';")
  const plain = await server.ask(`/content/${outpoints.page}`)
  expect(plain.headers['content-security-policy']).not.toContain('default-src')
})

test('a directory of ten thousand entries is counted, and a hundred of them are shown', async () => {
  const html = await htmlOf(`/ordinal/${outpoints['short directory']}`)
  expect(html).toContain('10,000 files')
  expect(html).toContain('And 9,900 more files')
  const long = await htmlOf(`/ordinal/${outpoints['long directory']}`)
  expect(long).toContain('too long to list here')
})

test('a directory without an index is a list of its files, which are links, and a tile with their names', async () => {
  const html = await htmlOf(`/ordinal/${outpoints.files}`)
  const preview = html.slice(html.indexOf('class="frame"'), html.indexOf('</ul>'))
  expect(preview).not.toContain('<iframe')
  const host = `${outpointLabel(parseOutpoint(outpoints.files))}.c.localhost:${new URL(server.url).port}`
  expect(preview).toContain(`<a href="//${host}/file%200.txt"><bdi dir="auto">file 0.txt</bdi></a>`)
  expect((await server.ask('/file%200.txt', { headers: { Host: host } })).body.toString()).toBe('gm')
  // No path leads there: browsers take it for the folder above.
  expect(preview).toContain('<li><bdi dir="auto">..</bdi></li>')
  expect(preview).toContain('&lt;script>')
  expect(preview).toContain('A directory of 22 files without an index')
  expect(html.match(/file%2019\.txt"/g)).toHaveLength(1)
  expect(html).toContain(`<a class="btn" href="//${host}/?raw">Open content</a>`)
  const tile = await htmlOf('/inscriptions')
  expect(tile).toMatch(new RegExp(`href="/ordinal/${outpoints.files}">(?:(?!</a>).)*and 17 more`, 's'))
})

let streaming: Promise<string> | undefined
/** The second chunk of a stream, which begins with the recording. */
function streamed(): Promise<string> {
  streaming ??= (async () => {
    const lockingScript = inscriptionScript({ contentType: 'gw/stream', body: new Uint8Array(9) })
    const inputs = [parseOutpoint(outpoints.audio)]
    const chunk = world.chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    await server.take(beefOf(chunk), ['tm_ordinals'])
    return chunk.outpoint(0)
  })()
  return streaming
}

test('a stream is played as a whole, though its ordinal holds the last chunk', async () => {
  for (const outpoint of [outpoints.audio, await streamed()]) {
    const html = await htmlOf(`/ordinal/${outpoint}`)
    expect(html).toMatch(new RegExp(`<audio [^>]*src="/svc/gateway/stream/${outpoints.audio}"`))
  }
  expect((await server.ask(`/svc/gateway/stream/${outpoints.audio}`)).body.length).toBe(9009)
})

test('a page changes with what it shows', async () => {
  const world = explorerWorld({ names: 0 })
  const other = await servers.start(treeOf(world.deployment))
  await world.fill(other)
  const before = await other.ask('/name/home')
  const mint = world.chain.mint('homes')
  await other.submit(beefOf(mint), ['tm_names', 'tm_ordinals'])
  const after = await other.ask('/name/home')
  expect(before.body.toString()).not.toContain('href="/name/homes"')
  expect(after.body.toString()).toContain('href="/name/homes"')
  expect((await other.ask('/')).body.toString()).toContain('href="/name/homes"')
})

test('a name and each output of it lead to its host, at the port that the system chose, and have the MAP of its tip', async () => {
  const { json } = await server.ask('/svc/names/origin/alice')
  for (const path of ['/name/alice', `/ordinal/${(json as { outpoint: string }).outpoint}`]) {
    const page = await htmlOf(path)
    expect(page).toContain(`href="//alice.localhost:${new URL(server.url).port}/"`)
    expect(page).toMatch(/>Metadata.*The site of Alice/s)
    expect(page.includes('Looks like')).toBe(path.startsWith('/name'))
  }
  // Nothing looks like this one.
  expect(await htmlOf('/name/home')).not.toContain('Looks like')
})

describe('a search leads to', () => {
  const cases: [query: string, path: string][] = [
    ['alice', '/name/alice'],
    [' ALICE ', '/name/alice'],
    [outpoints.svg, `/ordinal/${outpoints.svg}`],
    [outpoints.svg.replace('_', '.'), `/ordinal/${outpoints.svg}`],
    [txid, `/tx/${txid}`],
    ['1111111111111111111114oLvT2', '/address/1111111111111111111114oLvT2'],
    ['', '/'],
  ]
  test.each(cases)('%j: %s', async (query, path) => {
    const { status, headers } = await server.ask(`/search?q=${encodeURIComponent(query)}`)
    expect([status, headers.location]).toEqual([303, path])
  })

  test('a name, or what it takes to mine it, for the begin of one', async () => {
    const { status, body } = await server.ask('/search?q=satoshi-c')
    expect(status).toBe(303)
    expect(body.toString()).not.toContain('<script')
    const { headers } = await server.ask('/search?q=nobody')
    expect(headers.location).toBe('/name/nobody')
  })
})

test.each(['names', 'inscriptions'])('the feed of %s is well-formed Atom', async (kind) => {
  const { status, headers, body } = await server.ask(`/feeds/${kind}.atom`)
  expect([status, headers['content-type']]).toEqual([200, 'application/atom+xml; charset=utf-8'])
  const xml = body.toString('utf8')
  expect(xml.match(/<entry>/g)?.length).toBeGreaterThan(5)
  expect(xml).toContain(`<link rel="self" href="/feeds/${kind}.atom"/>`)
  for (const [, id] of xml.matchAll(/<id>([^<]*)<\/id>/g)) expect(id).toMatch(/^tag:minetree,2026:\//)
  // Whoever asks cannot put a host into it.
  const Host = 'elsewhere.example'
  for (const [name, value] of [
    ['Host', Host],
    ['X-Forwarded-Host', Host],
    ['Forwarded', `host=${Host}`],
  ] as const) {
    const elsewhere = await server.ask(`/feeds/${kind}.atom`, { headers: { [name]: value } })
    expect(elsewhere.body.toString('utf8')).toBe(xml)
  }
  const opened = [...xml.matchAll(/<(\w+)(?: [^>]*[^/])?>/g)].map(([, tag]) => tag).sort()
  const closed = [...xml.matchAll(/<\/(\w+)>/g)].map(([, tag]) => tag).sort()
  expect(opened).toEqual(closed)
})

describe('an error', () => {
  const unknown = `${'ab'.repeat(32)}_0`
  const ROUTES: [status: number, path: string, method?: string][] = [
    [404, '/nothing/here'],
    [400, '/name/Nobody!'],
    [400, '/ordinal/x'],
    [404, `/ordinal/${unknown}`],
    [404, `/tx/${'ab'.repeat(32)}`],
    [404, '/tree?prefix=qqq'],
    [400, `/content/x`],
    [404, `/content/${unknown}`],
    [404, `/svc/gateway/metadata/${unknown}`],
    [404, '/svc/names/nobody'],
    [404, '/mine'],
    [401, '/admin/blocked'],
    [400, '/submit', 'POST'],
  ]

  const typeOf = ({ status, headers }: Awaited<ReturnType<typeof server.ask>>) =>
    [status, headers.vary, headers['content-type']].join()

  test.each(ROUTES)(
    '%i of %s is a page for people, and JSON for all else',
    async (status, path, method = 'GET') => {
      const accepting = async (accept?: string) =>
        await server.ask(path, { method, headers: accept === undefined ? {} : { Accept: accept } })
      const plain = await accepting()
      const data = ['*/*', 'application/json', 'application/json, text/html;q=0.9', 'image/png'].map(
        accepting,
      )
      for (const answer of [plain, ...(await Promise.all(data))]) {
        expect(typeOf(answer)).toBe(`${status},Accept,application/json; charset=utf-8`)
        expect(answer.json).toMatchObject({ error: expect.any(String), code: expect.any(String) })
        expect(answer.headers['content-security-policy']).toBeUndefined()
      }
      for (const accept of ['text/html', HTML.headers.Accept, 'application/json;q=0.5, text/html']) {
        const page = await accepting(accept)
        expect(typeOf(page)).toBe(`${status},Accept,text/html; charset=utf-8`)
        expect(page.headers['cache-control']).toBe('no-store')
        for (const name of ['www-authenticate', 'access-control-allow-origin'])
          expect(page.headers[name]).toBe(plain.headers[name])
        expect(page.headers['content-security-policy']).toMatch(
          /^default-src 'none'; .*frame-ancestors 'self'$/,
        )
        expect(page.body.toString('utf8')).not.toMatch(/<script|<style/)
        expect(page.body.toString('utf8')).toContain((plain.json as { code: string }).code)
      }
    },
  )

  test('that quotes what was asked quotes it as text', async () => {
    const { body } = await server.ask(`/svc/gateway/metadata/${encodeURIComponent(HOSTILE)}`, HTML)
    expect(body.toString('utf8')).not.toMatch(FORBIDDEN)
  })

  test('is none of the last chunk of a stream whose first is blocked: it is shown as what it is', async () => {
    const chunk = await streamed()
    await server.block({ outpoint: outpoints.audio })
    const page = await server.ask(`/ordinal/${chunk}`, HTML)
    expect(page.status).toBe(200)
    expect(page.body.toString('utf8')).not.toContain('<audio')
    expect((await server.ask(`/ordinal/${outpoints.audio}`, HTML)).status).toBe(451)
  })

  test('for what is blocked has no trace of it', async () => {
    await server.block({ outpoint: outpoints.gm })
    const page = await server.ask(`/ordinal/${outpoints.gm}`, HTML)
    expect(page.status).toBe(451)
    expect(page.body.toString('utf8')).toContain('The operator has blocked this.')
    expect(await htmlOf('/inscriptions')).not.toContain(outpoints.gm)
  })
})
