import { encodeAddress } from '../../../../backend/src/protocol/address.js'
import { concatBytes, toHex } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { ownerOf } from '../../../support/graph/owner-of.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const chain = new FakeChain()
const server = await start(treeOf(chain.deployment))
const submit = async (transaction: FakeTransaction, ...parents: FakeTransaction[]): Promise<void> => {
  await server.take(beefOf(transaction, { with: parents }))
}
const transferred = async (from: FakeTransaction, vout: number, lockingScript: Uint8Array, satoshis = 1) => {
  const spend = chain.spend({ inputs: [{ transaction: from, vout }], outputs: [{ satoshis, lockingScript }] })
  await server.take(beefOf(spend, { with: [from] }), ['tm_ordinals'])
  return spend
}

await submit(chain.genesis)
const mints: FakeTransaction[] = []
for (const name of ['a', 'al', 'b']) {
  const mint = chain.mint(name, { ownerLock: p2pkh(7) })
  await submit(mint)
  mints.push(mint)
}
const [a, al, b] = mints as [FakeTransaction, FakeTransaction, FakeTransaction]
const script = concatBytes(p2pkh(8), mapTail({ url: 'https://a.example', royalties: '{"a":1}' }))
const held = await transferred(a, 2, script)
const node = (name: string): string => formatOutpoint(chain.node(name).outpoint)
const named = async (name: string) => await server.ask(`/svc/names/${name}`)

test('a name that stays has all of itself', async () => {
  const { status, headers, json } = await named('al')
  expect([status, headers['cache-control']]).toEqual([200, 'no-cache'])
  const tip = {
    ...{ outpoint: al.outpoint(2), owner: encodeAddress(ownerOf(7), 'main'), spent: false },
    script: toHex(al.transaction.outputs[2]?.lockingScript ?? new Uint8Array()),
  }
  const record = { name: 'al', origin: al.outpoint(2), tip, sequence: 0, map: {} }
  expect(json).toEqual({ ...record, node: node('al'), height: al.height })
})

test('a name that was handed on is where its ordinal is, with what was said of it', async () => {
  const owner = encodeAddress(ownerOf(8), 'main')
  expect((await named('a')).json).toEqual({
    ...{ name: 'a', origin: a.outpoint(2), sequence: 1, node: node('a'), height: a.height },
    tip: { outpoint: held.outpoint(0), owner, script: toHex(script), spent: false },
    map: { url: 'https://a.example', royalties: { a: 1 } },
  })
})

test('a name that was burnt is spent where it ended', async () => {
  // Into an output that is no ordinal, of a transaction that admits something else.
  await transferred(b, 2, concatBytes(p2pkh(1), mapTail({ x: 'y' })), 4)
  const { json } = await named('b')
  expect(json).toMatchObject({ tip: { outpoint: b.outpoint(2), spent: true }, sequence: 0, node: node('b') })
})

test('a host that does not take the ordinals of names knows where they were mined', async () => {
  const other = await start({ ...treeOf(chain.deployment), CONTENT_TYPES: 'image/*' })
  for (const transaction of [chain.genesis, a]) await other.submit(beefOf(transaction))
  const known = { name: 'a', origin: a.outpoint(2), node: a.outpoint(1), height: a.height }
  expect((await other.ask('/svc/names/a')).json).toEqual(known)
})

test('a script that holds a file is left out of the record', async () => {
  const tip = await transferred(al, 2, concatBytes(p2pkh(8), mapTail({ file: 'x'.repeat(70_000) })))
  const { json } = await named('al')
  expect(json).toMatchObject({ tip: { outpoint: tip.outpoint(0) }, sequence: 1 })
  expect((json as { tip: object }).tip).not.toHaveProperty('script')
})
