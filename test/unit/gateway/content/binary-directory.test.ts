import { expectError } from '../../../support/gateway/expect-error.js'
import { binaryDirectory, directory, type File, publisher, text } from '../../../support/gateway/site.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { OPERATOR, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start({ MAX_DIRECTORY_BYTES: '200000' })
const published = publisher({ server, chain })

async function asked(files: File[], path: string): ReturnType<typeof server.ask> {
  return await server.ask(`/content/${(await published(...files)).outpoint(0)}${path}`)
}

const elsewhere = await published(text('elsewhere'), text('elsewhere 1'))

test('an entry leads to an output of its own transaction, or of any', async () => {
  const site = [binaryDirectory({ here: '_1', there: elsewhere.outpoint(1) }), text('here')]
  expect((await asked(site, '/here')).body.toString()).toBe('here')
  expect((await asked(site, '/there')).body.toString()).toBe('elsewhere 1')
  expectError(await asked([binaryDirectory({ a: '_1' })], '/a'), { status: 404, code: 'NOT_FOUND' })
})

test('directories of both formats lead into each other', async () => {
  const site = [
    directory({ bytes: '_1' }),
    binaryDirectory({ json: '_2' }),
    directory({ file: '_3' }),
    text('found'),
  ]
  expect((await asked(site, '/bytes/json/file')).body.toString()).toBe('found')
})

test('raw, it comes as inscribed, also if it is none', async () => {
  for (const body of [binaryDirectory({ a: '_1' }).body, Uint8Array.of(2)]) {
    const { status, headers, body: sent } = await asked([{ contentType: 'ordfs/dir', body }], '?raw')
    expect([status, headers['content-type'], sent.equals(body)]).toEqual([200, 'ordfs/dir', true])
  }
})

const LONG = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`name ${at}`, '_1']))

function expectBad(answer: Awaited<ReturnType<typeof asked>>, offset: number, error?: unknown): void {
  expectError(answer, {
    status: 400,
    code: 'BAD_DIRECTORY',
    data: { offset },
    ...(error !== undefined && { error }),
  })
}

describe('a mistake is 400 with its offset', () => {
  const { body } = binaryDirectory({ 'a.txt': '_1' })
  const long = Uint8Array.of(...binaryDirectory(LONG).body, 0)
  test.each<[string, Uint8Array, string, number]>([
    ['in the version, without a path', Uint8Array.of(2, ...body.slice(1)), '', 0],
    ['in the flags', Uint8Array.of(...body.slice(0, 3), 16, ...body.slice(4)), '/a.txt', 3],
    ['at the end', body.subarray(0, -1), '/missing/further', body.length - 1],
    ['at the end of a long one', long, '/a', long.length - 1],
  ])('%s', async (_, wrong, path, offset) => {
    const answer = await asked([{ contentType: 'ordfs/dir', body: wrong }, text('a')], path)
    expectBad(answer, offset, expect.stringContaining(`at byte ${offset}`))
  })

  test('further down too, and other paths of the site are found', async () => {
    const bad = { contentType: 'ordfs/dir', body: Uint8Array.of(1) }
    const site = [binaryDirectory({ ok: '_1', sub: '_2' }), text('ok'), bad]
    expectBad(await asked(site, '/sub/x'), 1)
    expect((await asked(site, '/ok')).body.toString()).toBe('ok')
  })
})

test('the same bytes are one thing as ordfs/dir and another as JSON', async () => {
  const json = directory({ a: '_1' })
  const file = text('found')
  expectBad(await asked([{ ...json, contentType: 'ordfs/dir' }, file], '/a'), 0)
  expect((await asked([json, file], '/a')).body.toString()).toBe('found')
})

test('a long one is read, and one over the limit is raw only', async () => {
  expect((await asked([binaryDirectory(LONG), text('found')], '/name%209999')).body.toString()).toBe('found')
  const larger = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`name ${at}`, '_1']))
  expectError(await asked([binaryDirectory(larger), text('')], '/name%201'), {
    status: 404,
    code: 'NOT_FOUND',
  })
})

describe('symbolic links', () => {
  /** The text of a link is its name, with spaces around what is no name. */
  const LINKS = {
    a: 'file',
    chain: 'a',
    'to-sub': 'sub',
    'into-sub': './sub//file',
    'through-link': 'to-sub/up',
    here: '.',
    'sub-and-back': 'sub/../file',
    out: '../file',
    'further-out': 'sub/../../file',
    absolute: '/file',
    nothing: 'missing',
    'through-a-file': 'file/file',
    'behind-a-file': 'file/..',
    empty: '',
    itself: 'itself',
    long: `${'./'.repeat(512)}file`,
    'nearly-long': `${'./'.repeat(510)}file`,
    'no-text': '\ud800',
  }
  const links = Object.entries(LINKS)
  const names = links.map(([name]) => name)
  const map = { file: '_1', sub: '_2', ...Object.fromEntries(names.map((name, at) => [name, `_${at + 6}`])) }
  const site = [
    binaryDirectory(map, names),
    text('the file'),
    binaryDirectory({ file: '_3', up: '_4', 'up-up': '_5', '.': '_4' }, ['up', 'up-up', '.']),
    text('in sub'),
    text('../file'),
    text('../../file'),
    ...links.map(([, path]) =>
      path === '\ud800' ? { contentType: 'text/plain', body: Uint8Array.of(0xff) } : text(path),
    ),
  ]

  test.each([
    ['to a sibling', '/a', 'the file'],
    ['to a link', '/chain', 'the file'],
    ['to a directory, on the way', '/to-sub/file', 'in sub'],
    ['to a path', '/into-sub', 'in sub'],
    ['to a directory above, from where the directory is', '/sub/up', 'the file'],
    ['through a link to a directory', '/to-sub/up', 'the file'],
    ['through a link, by a path', '/through-link', 'the file'],
    ['to its own directory', '/here/here/file', 'the file'],
    ['down and up again', '/sub-and-back', 'the file'],
    ['as the default of a directory', '/sub/.', 'the file'],
    ['of nearly a kibibyte', '/nearly-long', 'the file'],
  ])('%s', async (_, path, expected) => {
    const { status, headers, body } = await asked(site, path)
    expect({ status, body: body.toString() }).toEqual({ status: 200, body: expected })
    expect(headers['content-type']).toBe('text/plain')
  })

  test('to a directory show the directory as it was inscribed', async () => {
    const { headers, body } = await asked(site, '/to-sub')
    expect(headers['content-type']).toBe('ordfs/dir')
    expect(body.equals(site[2]?.body ?? body.subarray(1))).toBe(true)
  })

  test.each([
    ...['out', 'further-out', 'sub/up-up', 'to-sub/up-up', 'absolute', 'nothing'],
    ...['through-a-file', 'behind-a-file', 'empty', 'long', 'no-text'],
  ])('%s leads nowhere, and is no entry', async (name) => {
    expectError(await asked(site, `/${name}`), { status: 404, code: 'NOT_FOUND' })
    const withIndex = binaryDirectory({ ...map, 'index.html': '_1' }, names)
    if (!name.includes('/'))
      expect((await asked([withIndex, ...site.slice(1)], `/${name}`)).body.toString()).toBe('the file')
  })

  test('never leave the root that was asked for, though it is in a directory that has more', async () => {
    const { outpoint } = await published(...site)
    expectError(await server.ask(`/content/${outpoint(2)}/up`), { status: 404, code: 'NOT_FOUND' })
    expect((await server.ask(`/content/${outpoint(0)}/sub/up`)).status).toBe(200)
  })

  test('that lead to themselves, or through too many others, end as directories do', async () => {
    const deep = { status: 400, code: 'NESTING_TOO_DEEP', error: 'directory nesting too deep' }
    expectError(await asked(site, '/itself'), deep)
    const circle = [binaryDirectory({ a: '_1', b: '_2' }, ['a', 'b']), text('b'), text('a')]
    expectError(await asked(circle, '/a'), deep)
    const steps = Array.from({ length: 9 }, (_, at) => `${at}`)
    const entries = Object.fromEntries(steps.map((name, at) => [name, `_${at + 1}`]))
    const row = [binaryDirectory(entries, steps.slice(1))]
    const files = steps.map((_, at) => text(at === 0 ? 'end' : `${at - 1}`))
    expect((await asked([...row, ...files], '/7')).body.toString()).toBe('end')
    expectError(await asked([...row, ...files], '/8'), deep)
    const back = [
      binaryDirectory({ a: '_1', sub: '_2', file: '_3' }, ['a']),
      binaryDirectory({}),
      text('file'),
    ]
    const through = (times: number): File[] => back.toSpliced(1, 0, text(`${'sub/../'.repeat(times)}file`))
    expect((await asked(through(6), '/a')).body.toString()).toBe('file')
    expectError(await asked(through(7), '/a'), deep)
  })

  test('to a file that is blocked are blocked', async () => {
    const own = await servers.start(OPERATOR)
    const made = await publisher({ server: own, chain })(
      binaryDirectory({ a: '_1', file: '_2' }, ['a']),
      text('file'),
      text('blocked'),
    )
    const path = `/content/${made.outpoint(0)}/a`
    expect((await own.ask(path)).status).toBe(200)
    await own.block({ outpoint: made.outpoint(2) })
    expectError(await own.ask(path), { status: 451, code: 'BLOCKED' })
  })
})
