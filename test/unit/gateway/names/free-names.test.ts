import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { OPERATOR, treeOf, useServers } from '../../../support/server/test-server.js'

// Whether a name is free and what it takes, as JSON and as a page, and that no route is in the way of a name.

const servers = useServers()
const chain = new FakeChain({ difficulty: 4 })
const server = await servers.start({ ...treeOf(chain.deployment), ...OPERATOR })
await server.submit(beefOf(chain.genesis))
const mine = async (name: string): Promise<void> => {
  for (const mint of chain.mintAll(name)) await server.take(beefOf(mint), ['tm_names', 'tm_ordinals'])
}
await mine('al')
await server.block({ name: 'bad' })

type Offer = Record<'mints' | 'hashes' | 'bytes' | 'satoshis', number> & { name: string; free: boolean }
const offers = async (names: string): Promise<Offer[]> =>
  ((await server.ask(`/svc/names?available=${names}`)).json as { names: Offer[] }).names
const pageOf = async (path: string): Promise<string> =>
  (await server.ask(path, { headers: { Accept: 'text/html' } })).body.toString()

test('many names are asked about at once, taken, free and blocked', async () => {
  const { status, headers, json } = await server.ask('/svc/names?available=al,alice,bad,z')
  expect([status, headers['cache-control']]).toEqual([200, 'no-cache'])
  expect(json).toMatchObject({ difficulty: 4, satoshisPerKilobyte: 100 })
  expect((json as { names: object[] }).names).toMatchObject([
    { name: 'al', free: false },
    { name: 'alice', free: true, domain: 'al', mints: 3, hashes: 48 },
    { name: 'bad', free: false, blocked: true },
    { name: 'z', free: true, domain: '', mints: 1, hashes: 16 },
  ])
})

test('the size of mints is what they have, to some bytes of each', async () => {
  const [offer] = await offers('albe')
  const mints = chain.mintAll('albe')
  // Theirs are paid for by a coin without a signature, and their nonces are 10 bytes shorter than those that a search finds.
  const actual = mints.reduce((sum, { raw }) => sum + raw.length + 107 + 10, 0)
  expect(mints).toHaveLength(offer?.mints ?? 0)
  expect(Math.abs((offer?.bytes ?? 0) - actual)).toBeLessThan(mints.length * 30)
  expect(offer?.satoshis).toBe(Math.ceil((offer?.bytes ?? 0) / 10))
})

test.each([
  ['nothing', '', 400, 'BAD_NAME'],
  ['a capital', 'a,B', 400, 'BAD_NAME'],
  ['a name that is too long', 'a'.repeat(256), 400, 'BAD_NAME'],
  ['a hole', 'a,,b', 400, 'BAD_NAME'],
  ['too many', Array(101).fill('a').join(','), 413, 'TOO_LARGE'],
])('%s is refused', async (_, names, status, code) => {
  expectError(await server.ask(`/svc/names?available=${names}`), { status, code })
})

test('a hundred names are answered', async () => {
  const found = await offers(Array.from({ length: 100 }, (_, at) => `${'z'.repeat(60)}${at}`).join(','))
  expect(found).toHaveLength(100)
})

test('the page of a free name has the same figures, leads to mining it, and is not for search engines', async () => {
  const [offer] = await offers('alice')
  const { status, headers, body } = await server.ask('/name/alice')
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  const html = body.toString()
  expect(html).toContain('<meta name="robots" content="noindex"/>')
  expect(html).toContain('href="/mine?name=alice"')
  expect(html).toContain(`data-hashes="${offer?.hashes}"`)
  expect(html).toContain(`about ${offer?.satoshis?.toLocaleString('en-GB')} satoshis`)
  expect(html).toContain('3 mints')
  // What is mined on the way is free as well, and has such a page.
  for (const name of ['ali', 'alic']) expect(html).toContain(`href="/name/${name}"`)
  for (const [, other = ''] of html.matchAll(/href="\/name\/([a-z0-9-]+)"/g))
    expect([other, other === 'a' || other === 'al']).toEqual([other, !(await offers(other))[0]?.free])
  // The routes of the specification say what they said.
  expectError(await server.ask('/svc/names/alice'), { status: 404, code: 'NOT_FOUND' })
})

test('the page of a free name is another one once it is mined, and once its prefix is', async () => {
  expect(await pageOf('/name/bo')).toContain('2 mints')
  await mine('b')
  expect(await pageOf('/name/bo')).toContain('1 mint,')
  await mine('bo')
  expect(await pageOf('/name/bo')).toContain('Nothing is published on this name yet.')
})

test('no name like a blocked one is offered', async () => {
  expect(await pageOf('/name/ba-d')).not.toContain('/name/bad"')
  expectError(await server.ask('/name/bad'), { status: 451, code: 'BLOCKED' })
})

test.each([
  ['/name/Home', '/name/home'],
  ['/name/HOME?from=2', '/name/home?from=2'],
  ['/name/%20home%20', '/name/home'],
])('%s leads to %s', async (path, location) => {
  const { status, headers } = await server.ask(path)
  expect([status, headers.location]).toEqual([301, location])
})

test.each([
  ['a letter of another alphabet', 'hоme'],
  ['the sign of Kelvin, of which the small letter is k', '\u212aate'],
  ['a wide letter', '\uff41'],
  ['something between that nobody sees', 'ho\u200bme'],
  ['a space, which may be a hyphen or nothing', 'my home'],
  ['a dot', 'home.'],
])('%s leads to no other name', async (_, text) => {
  expectError(await server.ask(`/name/${encodeURIComponent(text)}`), { status: 400, code: 'BAD_NAME' })
  expectError(await server.ask(`/svc/names/${encodeURIComponent(text)}`), { status: 400, code: 'BAD_NAME' })
  expect((await server.ask(`/search?q=${encodeURIComponent(text)}`)).status).toBe(404)
})

test('a search leads to the page of a free name, and offers names to choose from for what is none', async () => {
  const { status, headers } = await server.ask('/search?q=Zeppelin')
  expect([status, headers.location]).toEqual([303, '/name/zeppelin'])
  const html = (await server.ask('/search?q=My%20home')).body.toString()
  for (const name of ['my-home', 'myhome']) expect(html).toContain(`href="/name/${name}"`)
})

test('no route is in the way of a name: each word of a path is one, and is found when it is mined', async () => {
  const { paths } = (await server.ask('/openapi.json')).json as { paths: object }
  const words = new Set(
    [...Object.keys(paths), '/available', '/new', '/newest', '/feed', '/feeds', '/free']
      .flatMap((path) => path.split('/'))
      .filter((word) => /^[a-z0-9-]{1,20}$/.test(word)),
  )
  expect([...words]).toEqual(
    expect.arrayContaining(['origin', 'origins', 'mine', 'proof', 'search', 'names']),
  )
  for (const word of words) await mine(word)
  for (const word of words) {
    expect((await server.ask(`/svc/names/${word}`)).json).toMatchObject({ name: word })
    const long = word.length > 16 ? ' class="long"' : ''
    expect(await pageOf(`/name/${word}`)).toContain(`<h1${long}>${word}</h1>`)
  }
})
