import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { DIRECTORY, directory, type File, publisher, text } from '../../../support/gateway/site.js'
import { FakeChain, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

// Directories that somebody made to see what happens; test/unit/gateway/content/directory.test.ts has those that mean well.

const servers = useServers()
const server = await servers.start()
const published = publisher({ server, chain: new FakeChain() })

const NOT_FOUND = { status: 404, code: 'NOT_FOUND' }
const TOO_DEEP = { status: 400, code: 'NESTING_TOO_DEEP', error: 'directory nesting too deep' }
const MiB = 1024 * 1024

const path = (site: FakeTransaction, below = ''): string => `/content/${site.outpoint(0)}${below}`

async function bodyOf(site: FakeTransaction, below = ''): Promise<string> {
  const { status, body } = await server.ask(path(site, below))
  expect(status).toBe(200)
  return body.toString('utf8')
}

describe('a name that every object answers to', () => {
  const inherited = ['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty']
  const ofMaps = ['size', 'get', 'has', 'entries', 'then', 'length', '0', '__defineGetter__']
  const plain = published(directory({ a: '_1' }), text('one'))
  const indexed = published(directory({ 'index.html': '_1' }), text('index'))

  test.each([...inherited, ...ofMaps])('%s is in a map that has it, and in no other', async (name) => {
    for (const below of [`/${name}`, `/${name}/a`, `/${name}/`, `/a/${name}`])
      expectError(await server.ask(path(await plain, below)), NOT_FOUND)
    expect(await bodyOf(await indexed, `/${name}`)).toBe('index')
    // As text: written as a literal, `__proto__` would be no key.
    const map = `{"${name}":"_1"}`
    const site = await published(directory(map), directory(map.replace('_1', '_2')), text('two'))
    expect(await bodyOf(site, `/${name}/${name}`)).toBe('two')
    expectError(await server.ask(path(site, '/other')), NOT_FOUND)
  })

  test('leaves all other objects as they were', () => {
    expect([Object.keys(Object.prototype), ({} as Record<string, unknown>).a]).toEqual([[], undefined])
  })
})

describe('a map that leads back', () => {
  test.each<[string, File[], string[]]>([
    ['to itself as its default', [directory({ '.': '_0' })], ['', '/', '/.', '/./.', '/./a']],
    [
      'to itself by a name',
      [directory({ a: '_0' })],
      ['/a'.repeat(9), '/a'.repeat(4000), `${'/a'.repeat(8)}/none`, `${'/a'.repeat(8)}/`],
    ],
    ['to itself as its index', [directory({ 'index.html': '_0' })], ['/index.html'.repeat(9)]],
    ['to another that leads to it', [directory({ '.': '_1' }), directory({ '.': '_0' })], ['', '/.']],
    ['to another by names', [directory({ a: '_1' }), directory({ b: '_0' })], [`${'/a/b'.repeat(4)}/a`]],
    ['through an index', [directory({ '.': '_1' }), directory({ '.': '_0', 'index.html': '_0' })], ['']],
  ])('%s', async (_, files, paths) => {
    const site = await published(...files)
    for (const below of paths) {
      // A default in the middle of a path is a name like any other: the walk ends where it finds nothing.
      const expected = below.endsWith('/./a') ? NOT_FOUND : TOO_DEEP
      expectError(await server.ask(path(site, below)), expected)
    }
    expect(await bodyOf(site, '?raw')).toBe(Buffer.from(files[0]?.body ?? '').toString('utf8'))
  })

  test('to its own index, where a redirect ends at the map itself', async () => {
    const site = await published(directory({ 'index.html': '_0' }))
    const { status, headers } = await server.ask(path(site))
    expect([status, headers.location]).toEqual([302, path(site, '/index.html')])
    const index = await server.ask(headers.location ?? '')
    expect([index.status, index.headers['content-type']]).toEqual([200, DIRECTORY])
  })
})

describe('a body that claims to be a directory', () => {
  const ENTRY = '"a":"_1",".":"_1","index.html":"_1"'
  const bytes = (...parts: (string | number[])[]): Uint8Array =>
    concatBytes(...parts.map((part) => (typeof part === 'string' ? utf8(part) : Uint8Array.from(part))))

  test.each<[string, Uint8Array]>([
    ['of no UTF-8 in a name', bytes(`{${ENTRY},"`, [0xff], '":"_1"}')],
    ['in UTF-16', Uint8Array.from(Buffer.from(`{${ENTRY}}`, 'utf16le'))],
    ['behind a byte order mark', bytes([0xef, 0xbb, 0xbf], `{${ENTRY}}`)],
    ['of no bytes', bytes()],
    ['with a slash in a name', bytes(`{${ENTRY},"b/c":"_1"}`)],
    ['with a map in it', bytes(`{${ENTRY},"sub":{"b":"_1"}}`)],
    ['that breaks off', bytes(`{${ENTRY}`)],
    ['of 100,000 brackets', bytes('['.repeat(100_000))],
    ['of 100,000 maps in each other', bytes('{"a":'.repeat(100_000), '"_1"', '}'.repeat(100_000))],
    ['of 5 MiB', bytes(`{${ENTRY},"b":"`, '_'.repeat(5 * MiB), '"}')],
  ])('%s is served raw, and no path leads into it', async (_, body) => {
    const site = await published({ contentType: DIRECTORY, body }, text('one'))
    // Twice: the second is answered from what the first left.
    for (const below of ['', '/', '/a', '/.', '/a/b', '', '/__proto__'])
      expectError(await server.ask(path(site, below)), {
        ...NOT_FOUND,
        error: expect.stringMatching(/raw only/),
      })
    const raw = await server.ask(path(site, '?raw'))
    expect([raw.status, raw.headers['content-type']]).toEqual([200, DIRECTORY])
    expect([raw.headers['x-content-type-options'], raw.body.equals(body)]).toEqual(['nosniff', true])
  })
})
