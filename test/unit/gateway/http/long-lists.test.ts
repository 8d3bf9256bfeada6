import { createHash } from 'node:crypto'
import { dependency } from '../../../../backend/src/graph/dependencies.js'
import { attribute } from '../../../../backend/src/graph/listings.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import type { AnswerMemory } from '../../../../backend/src/read/fact-store.js'
import { FactStore } from '../../../../backend/src/read/fact-store.js'
import { Reader } from '../../../../backend/src/read/reader.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import type { Writer } from '../../../../backend/src/writer/writer.js'
import { beefOf, FakeChain, inscriptionScript, p2pkh } from '../../../support/protocol/fake-chain.js'
import { OPERATOR, treeOf, useServers } from '../../../support/server/test-server.js'

// Somebody inscribes thousands of times what the operator has blocked by its hash: lists lead through it in slices.

const COPIES = 2500
const servers = useServers()
const chain = new FakeChain()
const server = await servers.start({ ...treeOf(chain.deployment), ...OPERATOR })
const { graph } = server.node

const copied = utf8('copied')
const inscribe = (bodies: Uint8Array[]) => {
  const purse = chain.spend({ outputs: [{ satoshis: bodies.length, lockingScript: p2pkh(1) }] })
  const outputs = bodies.map((body) => ({
    satoshis: 1,
    lockingScript: inscriptionScript({ contentType: 'text/plain', body }),
  }))
  const transaction = chain.spend({ inputs: [purse], outputs })
  return { transaction, beef: beefOf(transaction, { with: [purse] }) }
}
const good = inscribe([utf8('good'), utf8('also good')])
const copies = inscribe(Array.from({ length: COPIES }, () => copied))
for (const { beef } of [good, copies]) await server.take(beef, ['tm_ordinals'])
await server.block({ sha256: createHash('sha256').update(copied).digest('hex') })
const held = [0, 1].map((vout) => ({ txid: good.transaction.txid, vout }))
const LISTS = {
  'the newest inscriptions': ({ served }: FactStore) => served.listings.newestInscriptions({ limit: 10 }),
  'ordinals by their type': ({ served }: FactStore) =>
    served.listings.ordinalsBy({ attribute: attribute.contentType('text/plain'), limit: 10 }),
}

test.each(Object.entries(LISTS))('%s are found behind it, after others were served', async (_, read) => {
  const answer = graph.afterLong(() => graph.consistent(() => read(graph)))
  expect(answer).toBeInstanceOf(Promise)
  expect((await answer).map(({ outpoint }) => outpoint)).toEqual(expect.arrayContaining(held))
})

test.each([
  '/',
  '/inscriptions',
  '/type?type=text%2Fplain',
  '/feeds/inscriptions.atom',
  '/svc/gateway/newest/inscriptions',
  '/svc/gateway/ordinals?contentType=text%2Fplain',
])('%s has what is behind it', async (path) => {
  const { status, body } = await server.ask(path)
  expect(status).toBe(200)
  expect(Buffer.from(body).toString()).toContain(good.transaction.txid)
})

test('an answer with such a list is not kept as if what was written meanwhile were in it', async () => {
  const commits = { value: 1 }
  const kept: unknown[] = []
  const answers: AnswerMemory = { get: () => undefined, keep: (_, answer) => kept.push(answer.commits) }
  const reader = new Reader(storeFiles(server.dataDir), { commits })
  const store = new FactStore({ reader, answers, writer: {} as Writer })
  const cache = { key: 'a', dependsOn: () => [dependency.all], weightOf: () => 1 }
  await store.afterLong(() =>
    store.consistent(() => {
      commits.value++
      return LISTS['the newest inscriptions'](store)
    }, cache),
  )
  expect([commits.value, kept]).toEqual([4, [2]])
  reader.close()
})
