import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const chain = new FakeChain()
const server = await start(treeOf(chain.deployment))
const NAMES = ['a', 'b', 'ab', 'a-', 'a0', 'abc', 'abd', 'c', 'cz', 'czz']
const origins = new Map<string, string>()
await server.submit(beefOf(chain.genesis))
for (const name of NAMES) {
  const mint = chain.mint(name)
  await server.submit(beefOf(mint))
  origins.set(name, mint.outpoint(2))
}
const listed = (...names: string[]) => names.map((name) => ({ name, outpoint: origins.get(name) }))

test.each([
  ['all of them', '', { names: listed('a', 'a-', 'a0', 'ab', 'abc', 'abd', 'b', 'c', 'cz', 'czz') }],
  ['those below a prefix, with itself', '?prefix=ab', { names: listed('ab', 'abc', 'abd') }],
  ['those that go on with the last letter', '?prefix=c', { names: listed('c', 'cz', 'czz') }],
  ['a page', '?limit=3', { names: listed('a', 'a-', 'a0'), next: 'a0' }],
  ['the page behind it', '?limit=3&after=a0', { names: listed('ab', 'abc', 'abd'), next: 'abd' }],
  ['the last page, which says so', '?limit=3&after=c', { names: listed('cz', 'czz') }],
  ['a last page that is full', '?limit=2&after=c', { names: listed('cz', 'czz') }],
  ['a prefix that is a name, from behind it', '?prefix=ab&after=ab', { names: listed('abc', 'abd') }],
  [
    'behind a name that is not there',
    '?after=aab',
    { names: listed('ab', 'abc', 'abd', 'b', 'c', 'cz', 'czz') },
  ],
  ['none', '?prefix=zzz', { names: [] }],
])('the list is %s', async (_, query, expected) => {
  const { status, headers, json } = await server.ask(`/svc/names${query}`)
  expect({ status, json }).toEqual({ status: 200, json: expected })
  expect(headers['cache-control']).toBe('no-cache')
})

test.each([
  ['?prefix=A', 'BAD_NAME'],
  [`?prefix=${'a'.repeat(256)}`, 'BAD_NAME'],
  ['?prefix=a&prefix=b', 'BAD_NAME'],
  ['?limit=0', 'BAD_BODY'],
  ['?limit=1.5', 'BAD_BODY'],
])('%s is refused', async (query, code) => {
  const { status, json } = await server.ask(`/svc/names${query}`)
  expect({ status, json }).toMatchObject({ status: 400, json: { code, error: expect.any(String) } })
})
