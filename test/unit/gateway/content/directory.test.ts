import { createHash } from 'node:crypto'
import { expectError as expectErrorAnswer } from '../../../support/gateway/expect-error.js'
import { DIRECTORY, directory, type File, inBytes, publisher, text } from '../../../support/gateway/site.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { type Answer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start()

const published = publisher({ server, chain })

/** Publishes, and asks for a path behind output 0. */
async function asked(files: (File | 'lock')[], path: string): Promise<Answer> {
  const site = await published(...files)
  return await server.ask(`/content/${site.outpoint(0)}${path}`)
}

function expectError(answer: Answer, status: number, code: string, error?: unknown): void {
  expectErrorAnswer(answer, { status, code, ...(error !== undefined && { error }) })
  expect(answer.headers['x-outpoint']).toBeUndefined()
}

/** Files elsewhere, for pointers that leave the transaction of their directory. */
const other = await published('lock', text('elsewhere'), text('elsewhere 2'))
const ABSENT = 'ab'.repeat(32)

describe('a path leads to a file', () => {
  const files = [text('one'), text('two')]
  const inner = directory({ '.': '_1', 'index.html': '_2', 'a.txt': '_1' })
  test.each<[string, File[], string, string]>([
    ['the default, without a path', [directory({ '.': '_1' }), ...files], '', 'one'],
    ['the default, with a query', [directory({ '.': '_1' }), ...files], '?x=raw', 'one'],
    ['the default before the index', [directory({ 'index.html': '_2', '.': '_1' }), ...files], '', 'one'],
    ['the default by its name', [directory({ '.': '_1', 'index.html': '_2' }), ...files], '/.', 'one'],
    ['the index for a default asked for by name', [directory({ 'index.html': '_2' }), ...files], '/.', 'two'],
    ['the index by its name', [directory({ '.': '_1', 'index.html': '_2' }), ...files], '/index.html', 'two'],
    ['an entry', [directory({ '.': '_1', 'a.txt': '_2' }), ...files], '/a.txt', 'two'],
    [
      'an entry that is missing: the index',
      [directory({ '.': '_1', 'index.html': '_2' }), ...files],
      '/a',
      'two',
    ],
    ['a slash behind a directory: its index', [directory({ sub: '_3' }), ...files, inner], '/sub/', 'two'],
    ['an entry further down', [directory({ sub: '_3' }), ...files, inner], '/sub/a.txt', 'one'],
    ['a default further down, by its name', [directory({ sub: '_3' }), ...files, inner], '/sub/.', 'one'],
    ['the index further down', [directory({ sub: '_3' }), ...files, inner], '/sub/missing', 'two'],
    ['a default that is a directory: its default', [directory({ '.': '_3' }), ...files, inner], '', 'one'],
    [
      'a default that is a directory without one: its index, in place',
      [directory({ '.': '_3', 'index.html': '_1' }), ...files, directory({ 'index.html': '_2' })],
      '',
      'two',
    ],
    ['an entry through the default', [directory({ '.': '_3' }), ...files, inner], '/./a.txt', 'one'],
    ['a file that is no directory, below it', [text('root')], '/a/b', 'root'],
    ['a file that is no directory, raw', [text('root')], '?raw', 'root'],
  ])('%s', async (_, site, path, expected) => {
    for (const files of [site, site.map((file) => inBytes(file))]) {
      const { status, headers, body } = await asked(files, path)
      expect({ status, body: body.toString('utf8') }).toEqual({ status: 200, body: expected })
      expect(headers['content-type']).toBe('text/plain')
      expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
      expect(headers.location).toBeUndefined()
    }
  })

  test.each<[string, string, string]>([
    ['a sibling', '_2', 'two'],
    ['an outpoint', other.outpoint(2), 'elsewhere 2'],
    ['a txid: its first content', other.txid, 'elsewhere'],
    ['a sibling between spaces', ' _2 ', 'two'],
  ])('through %s', async (_, pointer, expected) => {
    const site = [directory({ '.': pointer, a: pointer }), text('one'), text('two')]
    for (const path of ['', '/a']) expect((await asked(site, path)).body.toString('utf8')).toBe(expected)
  })

  test('siblings of a directory elsewhere are those of its own transaction', async () => {
    const inner = await published(text('right'), directory({ file: '_0' }))
    const site = await published(directory({ sub: inner.outpoint(1) }), text('wrong'))
    const { body, headers } = await server.ask(`/content/${site.outpoint(0)}/sub/file`)
    expect([body.toString('utf8'), headers['x-outpoint']]).toEqual(['right', inner.outpoint(0)])
  })

  test('siblings of a directory that moved on are those of where it was inscribed', async () => {
    const funding = chain.spend({ outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
    const spent = (transaction: FakeTransaction, ...scripts: Uint8Array[]) =>
      chain.spend({ inputs: [transaction], outputs: scripts })
    const [map, right] = [directory({ file: '_1', '.': '_1' }), text('right')].map(inscriptionScript)
    const site = spent(funding, map as Uint8Array, right as Uint8Array)
    const moved = spent(site, p2pkh(2), inscriptionScript(text('wrong')))
    await server.submit(beefOf(site, { with: [funding] }), ['tm_ordinals'])
    await server.submit(beefOf(moved, { with: [site] }), ['tm_ordinals'])
    for (const below of [':1/file', ':1/', ':-1/file', ':0/file']) {
      const { body, headers } = await server.ask(`/content/${moved.outpoint(0)}${below}`)
      expect([body.toString('utf8'), headers['x-outpoint']]).toEqual(['right', site.outpoint(1)])
    }
  })

  test('one body in two transactions is two directories', async () => {
    const map = directory({ file: '_1' })
    expect((await asked([map, text('first')], '/file')).body.toString('utf8')).toBe('first')
    expect((await asked([map, text('second')], '/file')).body.toString('utf8')).toBe('second')
  })
})

describe('a directory without a default', () => {
  test.each([
    ['', '/index.html'],
    ['/', '/index.html'],
    ['?a=1&b=%2F', '/index.html?a=1&b=%2F'],
    ['?', '/index.html?'],
    ['?to=//evil.example', '/index.html?to=//evil.example'],
    ['?a=%zz"<b>', '/index.html?a=%zz"<b>'],
  ])('%j is sent on to %s', async (asking, location) => {
    const site = await published(directory({ 'index.html': '_1' }), text('index'))
    const path = `/content/${site.outpoint(0)}`
    for (const method of ['GET', 'HEAD']) {
      const { status, headers, body } = await server.ask(path + asking, { method })
      expect({ status, location: headers.location }).toEqual({ status: 302, location: path + location })
      expect(body.length).toBe(0)
    }
    expect((await server.ask(path + location)).body.toString('utf8')).toBe('index')
  })

  test('is sent on under the pointer as it was asked for', async () => {
    const site = await published(directory({ 'index.html': '_1' }), text('index'))
    const { headers } = await server.ask(`/content/${site.txid}`)
    expect(headers.location).toBe(`/content/${site.txid}/index.html`)
  })

  test('and without an index is not found', async () => {
    for (const path of ['', '/']) expectError(await asked([directory({ a: '_0' })], path), 404, 'NOT_FOUND')
    expectError(await asked([directory({})], ''), 404, 'NOT_FOUND')
  })
})

describe('a directory as it was inscribed', () => {
  test.each([
    ['gw-fs/json', '?raw'],
    ['gw-fs/json', '/?raw'],
    ['gw-fs/json', '?x=2&raw'],
    ['ord-fs/json', '?raw'],
  ])('%s with %s', async (contentType, query) => {
    const map = directory({ '.': '_1' }, contentType)
    const site = await published(map, text('one'))
    const path = `/content/${site.outpoint(0)}`
    const { status, headers, body } = await server.ask(path + query)
    expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: contentType })
    expect([body.equals(map.body), headers['x-outpoint']]).toEqual([true, site.outpoint(0)])
    // And it is one: without the query its default answers.
    expect((await server.ask(path)).body.toString('utf8')).toBe('one')
  })

  test.each([
    'gw-fs/jsonx',
    // The type is matched exactly, so that every host reads the same directories.
    'GW-FS/JSON',
    'gw-fs/json; charset=utf-8',
    'gw-fs/json ',
  ])('%s is a file like any other', async (contentType) => {
    const map = directory({ '.': '_1', a: '_1' }, contentType)
    for (const path of ['', '/a'])
      expect((await asked([map, text('one')], path)).body.equals(map.body)).toBe(true)
  })

  test.each(['/sub', '/missing'])('is what %s leads to where that is a directory', async (path) => {
    const inner = directory({ '.': '_2' })
    const site = [directory({ sub: '_1', 'index.html': '_1' }), inner, text('one')]
    const { headers, body } = await asked(site, path)
    expect([headers['content-type'], body.equals(inner.body)]).toEqual([DIRECTORY, true])
  })

  test.each([
    ['1 MiB', 0, 200],
    ['a byte more', 1, 404],
  ])('of %s', async (_, more, expected) => {
    const start = '{"a":"_1"'
    const map = directory(`${start}${' '.repeat(1024 * 1024 - start.length - 1 + more)}}`)
    const site = await published(map, text('one'))
    const path = `/content/${site.outpoint(0)}`
    const answer = await server.ask(`${path}/a`)
    expect(answer.status).toBe(expected)
    const sentence = 'a directory of more than 1048576 bytes is served raw only, without paths'
    if (expected === 404) expectError(answer, 404, 'NOT_FOUND', sentence)
    expect((await server.ask(`${path}?raw`)).body.equals(map.body)).toBe(true)
  })
})

describe('a path that leads nowhere', () => {
  const one = text('one')
  test.each<[string, (File | 'lock')[], string]>([
    ['an entry that is missing', [directory({ '.': '_1', a: '_1' }), one], '/b'],
    [
      'an empty segment, though a name is empty',
      [directory({ sub: '_1' }), directory({ '': '_1' })],
      '/sub/',
    ],
    ['two slashes', [directory({ '.': '_1', 'index.html': '_1', '': '_0' }), one], '//'],
    ['a missing segment in the middle', [directory({ '.': '_0', 'index.html': '_0', a: '_1' }), one], '/b/a'],
    ['a file in the middle', [directory({ a: '_1', 'index.html': '_1' }), one], '/a/b'],
    ['a slash behind a file', [directory({ a: '_1', 'index.html': '_1' }), one], '/a/'],
    ['a sibling that is not there', [directory({ a: '_7' })], '/a'],
    ['a sibling without content', [directory({ a: '_1' }), 'lock'], '/a'],
    ['an outpoint that this store has not', [directory({ a: `${ABSENT}_0`, 'index.html': '_1' }), one], '/a'],
    ['a default that is not there', [directory({ '.': '_7', 'index.html': '_1' }), one], ''],
    ['an index that is not there', [directory({ 'index.html': '_7' })], '/index.html'],
    ['a default whose directory has none', [directory({ '.': '_1' }), directory({ a: '_0' })], ''],
    ['a directory in the middle that is none', [directory({ a: '_1' }), directory('[]')], '/a/b'],
  ])('%s', async (_, site, path) => {
    expectError(await asked(site, path), 404, 'NOT_FOUND')
  })

  test.each(['', 'a.txt', '_', '_-1', 'ord://', 'https://example.com/', '\0', '\ud800'])(
    'through %j, which is no pointer',
    async (pointer) => {
      const site = [directory({ a: pointer, '.': pointer, 'index.html': '_1' }), text('one')]
      for (const path of ['', '/a', '/a/b']) expectError(await asked(site, path), 404, 'NOT_FOUND')
    },
  )
})

describe('levels', () => {
  const TOO_DEEP = 'directory nesting too deep'

  /** `count` directories, each the entry `d` and the default of the one before; a file is in each. */
  function nested(count: number, key: string): File[] {
    const file = `_${count}`
    const levels = Array.from({ length: count }, (_, at) =>
      directory({ ...(at + 1 < count ? { [key]: `_${at + 1}` } : { '.': file }), f: file }),
    )
    return [...levels, text('deep')]
  }

  test.each([
    [1, '/f'],
    [8, `${'/d'.repeat(7)}/f`],
    [8, `${'/d'.repeat(7)}/.`],
  ])('%i: %s is found', async (count, path) => {
    expect((await asked(nested(count, 'd'), path)).body.toString('utf8')).toBe('deep')
  })

  test.each([`${'/d'.repeat(8)}/f`, `${'/d'.repeat(8)}/.`, `${'/d'.repeat(8)}/`, `${'/d'.repeat(8)}/none/f`])(
    '9: %s is too deep',
    async (path) => {
      expectError(await asked(nested(9, 'd'), path), 400, 'NESTING_TOO_DEEP', TOO_DEEP)
    },
  )

  test('9: the ninth itself is the end of a path, and is not opened', async () => {
    const { status, headers } = await asked(nested(9, 'd'), '/d'.repeat(8))
    expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: DIRECTORY })
  })

  test('of defaults count as well', async () => {
    expect((await asked(nested(8, '.'), '')).body.toString('utf8')).toBe('deep')
    expectError(await asked(nested(9, '.'), ''), 400, 'NESTING_TOO_DEEP', TOO_DEEP)
    expectError(await asked(nested(9, '.'), '/.'), 400, 'NESTING_TOO_DEEP', TOO_DEEP)
  })
})

describe('names', () => {
  test.each([
    ['with an encoded slash', '/a%2Fb', '{"a":"_2","b":"_2"}'],
    ['with an encoded slash in lower case', '/a%2fb', '{"a":"_2","b":"_2"}'],
    ['that would be two after a second decoding', '/a%252Fb', '{"a":"_2","b":"_2"}'],
    ['that are not those of the map in case', '/A', '{"a":"_1"}'],
    ['composed otherwise', '/e%CC%81', '{"é":"_1"}'],
  ])('%s are not found', async (_, path, map) => {
    expectError(await asked([directory(map), text('one'), directory({ b: '_1' })], path), 404, 'NOT_FOUND')
  })

  test.each([
    ['two dots', '/..', '{"..":"_1"}'],
    ['a NUL', '/%00', '{"\\u0000":"_1"}'],
    ['an escaped slash as it stands', '/a%252Fb', '{"a%2Fb":"_1"}'],
    ['a space', '/a%20b', '{"a b":"_1"}'],
    ['a line break', '/a%0D%0AX-Evil:%201', '{"a\\r\\nX-Evil: 1":"_1"}'],
    ['a character beyond 16 bits', '/%F0%9F%8C%B3', '{"🌳":"_1"}'],
  ])('of %s are names like any other', async (_, path, map) => {
    const { status, body, headers } = await asked([directory(map), text('one'), text('two')], path)
    expect({ status, body: body.toString('utf8') }).toEqual({ status: 200, body: 'one' })
    expect(headers['x-evil']).toBeUndefined()
  })
})

const page = text('<p>page', 'text/html')
const pages = await published(directory({ '.': '_2', sub: '_1' }), directory({ 'page.html': '_2' }), page)
const hash = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex')
const tag = `"${hash(`${hash(page.body)} text/html`)}"`

test.each(['', '/', '/.', '/sub/page.html'])(
  'a file below a directory by %j has its headers',
  async (path) => {
    const { headers } = await server.ask(`/content/${pages.outpoint(0)}${path}`)
    expect(headers).toMatchObject({
      'content-type': 'text/html',
      etag: tag,
      'x-outpoint': pages.outpoint(2),
      'content-security-policy': expect.stringContaining('sandbox'),
    })
  },
)

test('a file evicted is not served any more, though the map of its directory is known', async () => {
  const site = await published(directory({ a: '_1', b: '_2' }), text('one'), text('two'))
  const path = `/content/${site.outpoint(0)}`
  expect((await server.ask(`${path}/a`)).status).toBe(200)
  await server.node.graph.evict({ txid: site.txid, vout: 1 })
  expectError(await server.ask(`${path}/a`), 451, 'BLOCKED')
  expect((await server.ask(`${path}/b`)).body.toString('utf8')).toBe('two')
  await server.node.graph.evict({ txid: site.txid, vout: 0 })
  expectError(await server.ask(`${path}/b`), 451, 'BLOCKED')
})

test('a map is read once, whatever is asked for in it and however wrong it is', async () => {
  const maps = [directory({ once: '_1' }), directory({ a: '_3', b: '_2' }), directory('[ ]')]
  const site = await published(...maps, text('one'))
  const { graph } = server.node
  const read: string[] = []
  const contentChunks = graph.served.content.chunks.bind(graph.served.content)
  graph.served.content.chunks = (sha256) => {
    read.push(sha256)
    return contentChunks(sha256)
  }
  const paths = ['/once/none', '/once/b/x', '/none', '/once/b/y', '/once/none']
  for (const path of paths)
    expectError(await server.ask(`/content/${site.outpoint(0)}${path}`), 404, 'NOT_FOUND')
  graph.served.content.chunks = contentChunks
  expect({ bodies: new Set(read).size, reads: read.length }).toEqual({ bodies: 3, reads: 3 })
})
