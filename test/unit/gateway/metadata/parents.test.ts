import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { text } from '../../../support/gateway/site.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, useServers } from '../../../support/server/test-server.js'

/** A parent counts only where the transaction spends the ordinal that the envelope names (BRC-160). */

const { start } = useServers()
const inscribing = (body: string, parent?: string) =>
  inscriptionScript({ ...text(body), ...(parent !== undefined && { parent: parseOutpoint(parent) }) })

/** A family: an ordinal that is inscribed, moved twice, and then spent by a transaction whose output 1 names it. */
function family(chain: FakeChain, names: (steps: FakeTransaction[]) => string, spends = true) {
  const [funding, coin] = [5, 9].map((satoshis) =>
    chain.spend({ outputs: [{ satoshis, lockingScript: p2pkh(0) }] }),
  ) as [FakeTransaction, FakeTransaction]
  const origin = chain.move(funding, 0, inscribing(`origin ${funding.txid}`))
  const first = chain.move(origin, 0, p2pkh(1))
  const second = chain.move(first, 0, p2pkh(2))
  const steps = [origin, first, second]
  const inputs = spends ? [second, coin] : [coin]
  const outputs = [...(spends ? [p2pkh(3)] : []), inscribing('child', names(steps))]
  const child = chain.spend({ inputs, outputs })
  const sources = new Map([
    [origin, [funding]],
    [first, [origin]],
    [second, [first]],
    [child, inputs],
  ])
  return { origin, steps, child, childAt: child.outpoint(spends ? 1 : 0), all: [...steps, child], sources }
}

async function told(server: TestServer, outpoint: string, parent: string) {
  const [content, tip, record, lookup, list] = await Promise.all([
    server.ask(`/content/${outpoint}`),
    server.ask(`/content/${outpoint}:-1`),
    server.ask(`/svc/gateway/metadata/${outpoint}`),
    server.ask('/lookup', posted({ service: 'ls_ordinals', query: { parent } })),
    server.ask(`/svc/gateway/ordinals?parent=${parent}`),
  ])
  const { outputs } = lookup.json as { outputs: unknown[] }
  const { ordinals } = list.json as { ordinals: { outpoint: string }[] }
  const { parent: recorded, claimedParent } = record.json as Record<string, unknown>
  return {
    headers: [content.headers['x-parent'], tip.headers['x-parent']],
    record: {
      ...(recorded !== undefined && { parent: recorded }),
      ...(claimedParent !== undefined && { claimedParent }),
    },
    found: outputs.length,
    listed: ordinals.map((each) => each.outpoint),
  }
}

const counting = (outpoint: string, parent: string) => ({
  headers: [parent, parent],
  record: { parent },
  found: 1,
  listed: [outpoint],
})
const claiming = (parent: string) => ({
  headers: [undefined, undefined],
  record: { claimedParent: parent },
  found: 0,
  listed: [],
})

/** Parents first, last, and between: every order is what `test/histories/any-order.test.ts` tries. */
const ORDERS = [
  [0, 1, 2, 3],
  [3, 2, 1, 0],
]
const NAMED: [string, (steps: FakeTransaction[]) => string, boolean, boolean][] = [
  ['its origin', ([origin]) => origin?.outpoint(0) ?? '', true, true],
  ['a step on the way', ([, first]) => first?.outpoint(0) ?? '', true, true],
  ['the spent output', ([, , second]) => second?.outpoint(0) ?? '', true, true],
  ['its origin, and spends something else', ([origin]) => origin?.outpoint(0) ?? '', false, false],
  ['the last output, and spends something else', ([, , second]) => second?.outpoint(0) ?? '', false, false],
  ['another output of that transaction', ([origin]) => `${origin?.txid}_1`, true, false],
  ['an output that nobody knows', () => `${'ab'.repeat(32)}_0`, true, false],
]

describe.each(NAMED)('a child that names %s', (_, names, spends, counts) => {
  test('has that parent or none, in whatever order its parents arrive', async () => {
    const server = await start()
    const chain = new FakeChain()
    for (const order of ORDERS) {
      const { all, steps, childAt, sources } = family(chain, names, spends)
      for (const at of order) {
        const transaction = all[at] as FakeTransaction
        const beef = beefOf(transaction, { with: sources.get(transaction) ?? [] })
        await server.take(beef, ['tm_ordinals'])
        // In between, too, answers are kept in memory.
        await server.ask(`/content/${childAt}`)
        await server.ask(`/svc/gateway/metadata/${childAt}`)
        await server.ask(`/svc/gateway/ordinals?parent=${names(steps)}`)
      }
      const parent = names(steps)
      expect({ order, ...(await told(server, childAt, parent)) }).toEqual({
        order,
        ...(counts ? counting(childAt, parent) : claiming(parent)),
      })
    }
  })
})

test('children of several parents each have that which their transaction spends', async () => {
  const server = await start()
  const chain = new FakeChain()
  const origins = ['a', 'b', 'c'].map((body) => chain.inscribe(text(body)))
  for (const origin of origins) await server.submit(beefOf(origin), ['tm_ordinals'])
  const [a, b, c] = origins as [FakeTransaction, FakeTransaction, FakeTransaction]
  const coin = chain.spend({ outputs: [{ satoshis: 9, lockingScript: p2pkh(0) }] })
  const named = [a, b, c].map((each) => each.outpoint(0))
  const child = chain.spend({
    inputs: [a, b, coin],
    outputs: [p2pkh(1), p2pkh(1), ...named.map((parent) => inscribing(`of ${parent}`, parent))],
  })
  await server.submit(beefOf(child, { with: [a, b, coin] }), ['tm_ordinals'])
  for (const [at, parent] of named.entries())
    expect(await told(server, child.outpoint(2 + at), parent)).toEqual(
      at < 2 ? counting(child.outpoint(2 + at), parent) : claiming(parent),
    )
})

test('a later inscription that names a parent falsely does not take the one that counts', async () => {
  const server = await start()
  const chain = new FakeChain()
  const { all, steps, childAt, child, sources } = family(chain, ([origin]) => origin?.outpoint(0) ?? '')
  for (const each of all)
    await server.submit(beefOf(each, { with: sources.get(each) ?? [] }), ['tm_ordinals'])
  const forged = `${'cd'.repeat(32)}_3`
  const again = chain.move(child, 1, inscribing('again', forged))
  await server.submit(beefOf(again, { with: [child] }), ['tm_ordinals'])
  const { json, headers } = await server.ask(`/svc/gateway/metadata/${childAt}:-1`)
  const record = { parent: steps[0]?.outpoint(0), claimedParent: forged, contentOutpoint: again.outpoint(0) }
  expect(json).toMatchObject(record)
  expect(headers).not.toHaveProperty('x-parent')
  expect((await server.ask(`/content/${childAt}:-1`)).headers['x-parent']).toBe(steps[0]?.outpoint(0))
})
