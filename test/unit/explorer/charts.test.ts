import { explorerWorld } from '../../support/explorer/world.js'
import { beefOf, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { OPERATOR, treeOf, useServers } from '../../support/server/test-server.js'

// What the map and the charts say is what there is.

const servers = useServers()
const world = explorerWorld()
const server = await servers.start({ ...treeOf(world.deployment), ...OPERATOR })
await world.fill(server)

const page = async (path: string): Promise<string> => {
  const { status, body } = await server.ask(path)
  expect(status).toBe(200)
  return body.toString('utf8')
}

/** All names that begin with a prefix. */
async function namesBelow(prefix: string): Promise<string[]> {
  const found: string[] = []
  for (let after = ''; ; after = found.at(-1) ?? '') {
    const query = new URLSearchParams({ prefix, limit: '100', ...(after !== '' && { after }) })
    const { json } = await server.ask(`/svc/names?${query}`)
    const { names } = json as { names: { name: string }[] }
    found.push(...names.map(({ name }) => name))
    if (names.length < 100) return found
  }
}

/** The arcs of the map of a page: where each leads to, by its title. */
function arcsOf(html: string): Map<string, string> {
  const arcs = html.matchAll(/<a href="([^"]*)" tabindex="-1"><title>([^<]*)<\/title><path class="ring-/g)
  return new Map(Array.from(arcs, ([, href = '', title = '']) => [title, href]))
}

test.each(['', 's', 'sa'])('the map below %j has an arc for each branch of three levels', async (prefix) => {
  const names = await namesBelow(prefix)
  const html = await page(`/tree?prefix=${prefix}`)
  expect(html).toContain(`${names.length} names${prefix === '' ? '' : ` below ${prefix}`}`)
  const arcs = arcsOf(html)
  const near = names.filter(({ length }) => length > prefix.length && length <= prefix.length + 3)
  for (const name of near) {
    const below = names.filter((each) => each.startsWith(name)).length
    const title = `${name}: ${below} ${below === 1 ? 'name' : 'names'}`
    expect([title, arcs.get(title)]).toEqual([title, below === 1 ? `/name/${name}` : `/tree?prefix=${name}`])
  }
  expect(arcs.size).toBe(near.length)
})

test('only branches that can be seen are followed', () => {
  const asked = { domain: '', levels: 3 }
  const { names } = server.node.store.charts.branches({ ...asked, share: 0 })
  const { branches } = server.node.store.charts.branches({ ...asked, share: 0.1 })
  const large = branches.filter((each) => each.names >= names * 0.1)
  expect(large.length).toBeGreaterThan(0)
  expect(branches.filter((each) => each.branches.length > 0)).toEqual(large)
})

test('charts count names by height once they are proven, and inscriptions by type and size', async () => {
  const html = await page('/charts')
  const { json } = await server.ask('/svc/gateway/counts')
  const { inscriptions, names } = json as { inscriptions: number; names: number }
  expect(html).toContain(`${inscriptions} inscriptions of `)
  expect(html).toMatch(/<td>sites<\/td><td class="end">\d+<\/td>/)
  expect(html).toMatch(new RegExp(`<figcaption>${names} names in blocks [\\d,]+ to [\\d,]+\\.<`))
  expect(html).toContain('A name takes 4 hashes on average')
  // The date below a height is some 60 pixels wide.
  const places = Array.from(html.matchAll(/<tspan x="([\d.]+)"/g), ([, x]) => Number(x))
  const gaps = places
    .slice(1)
    .map((x, at) => x - (places[at] ?? 0))
    .filter((gap) => gap > 0)
  expect(Math.min(...gaps)).toBeGreaterThan(61)
  const { chain } = world
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const proven = chain.mint('7')
  const mint = chain.mint('78', { funding: [{ transaction: purse, vout: 0 }] })
  const unproven = beefOf(mint, { proven: false, with: [proven, purse] })
  await server.take(beefOf(proven), ['tm_names'])
  expect((await server.submit(unproven, ['tm_names'])).status).toBe(200)
  expect(await page('/charts')).toMatch(/[\d,]+, and 1 without a known block\./)
})

test('heights that nobody checks make no more rows', async () => {
  const { chain } = world
  for (const [at, height] of [1000, 0x7fff7fff, 0x7fffffff].entries()) {
    const beef = beefOf(chain.mint(`${at}`), { height })
    await server.take(beef, ['tm_names'])
  }
  const { step, counts } = server.node.store.charts.namesByHeight()
  expect(0x7fffffff / step).toBeLessThanOrEqual(101)
  expect(counts.filter(({ from }) => from > 0)).toEqual([{ from: 99 * step, names: 2 }])
  expect(counts.reduce((sum, { names }) => sum + names, 0)).toBeGreaterThan(2)
  expect(await page('/charts')).toContain('in blocks')
})

test('a name that is blocked is no arc', async () => {
  expect(arcsOf(await page('/tree?prefix=ali')).size).toBe(2)
  await server.block({ name: 'alice' })
  const html = await page('/tree?prefix=ali')
  expect(html).not.toContain('>alice<')
  expect([...arcsOf(html).values()]).toEqual(['/tree?prefix=alic'])
})
