import { concatBytes } from '../../../../backend/src/protocol/bytes.js'
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
for (const name of ['a', 'al']) {
  const mint = chain.mint(name, { ownerLock: p2pkh(7) })
  await submit(mint)
  mints.push(mint)
}
const [a, al] = mints as [FakeTransaction, FakeTransaction]
const named = async (name: string) => await server.ask(`/svc/names/${name}`)

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
