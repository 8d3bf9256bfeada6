import { type ClientRequest, request } from 'node:http'
import type { OutlineSource } from '../../../../backend/src/graph/stored-transaction.js'
import { keptLog, whileReplaced } from '../../../support/gateway/faults.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { posted, treeOf, useServers } from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

const servers = useServers()
const { logger, records } = keptLog()
const chain = new FakeChain()
const server = await servers.start(treeOf(chain.deployment), { logger })
const { graph } = server.node

/** A line of mints that rest on each other, in no block yet, and what pays for them. */
const names = ['a', 'ab', 'abc', 'abcd', 'abcde']
const purse = chain.spend({ outputs: names.map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK })) })
const mints: FakeTransaction[] = []
await server.take(beefOf(chain.genesis))
for (const [vout, name] of names.entries()) {
  const unproven = [...mints]
  const mint = chain.mint(name, { funding: [{ transaction: purse, vout }] })
  await server.take(beefOf(mint, { proven: false, with: [chain.genesis, purse, ...unproven], unproven }))
  mints.push(mint)
}

const QUESTIONS: [string, { service: string; query: unknown }][] = [
  ['the history of a name', { service: 'ls_names', query: { name: 'abcde', history: true } }],
  ['an output that rests on unproven ones', { service: 'ls_names', query: { origin: 'abcde' } }],
]

function asked(question: unknown, headers: Record<string, string>): ClientRequest {
  const { hostname, port } = new URL(server.url)
  const sent = request({ hostname, port, path: '/lookup', method: 'POST', headers, agent: false })
  // It reports the connection that the test itself ends.
  sent.on('error', () => undefined)
  return sent.end(JSON.stringify(question))
}

describe.each(QUESTIONS)('%s', (_, question) => {
  test.each<[string, Record<string, string>]>([
    ['JSON', {}],
    ['binary', { 'X-Aggregation': 'yes', Accept: 'application/octet-stream' }],
  ])('is read no further for a client that leaves, in %s', async (_, headers) => {
    let read = (): void => undefined
    const mayRead = new Promise<void>((resolve) => (read = resolve))
    let begun = 0
    const transaction = graph.transactions.raw.bind(graph.transactions)
    let isHeld = true
    const by: OutlineSource['raw'] = (txid) => {
      begun++
      return isHeld ? mayRead.then(() => transaction(txid)) : transaction(txid)
    }
    const during = async (): Promise<void> => {
      const sent = asked(question, headers)
      await until(() => begun > 0)
      sent.destroy()
      // Until the server has seen that it is gone.
      await loopTurns()
      read()
      isHeld = false
      await loopTurns()
      expect(begun).toBe(1)
      const { status } = await server.ask('/lookup', posted(question))
      expect({ status, read: begun - 1 >= mints.length }).toEqual({ status: 200, read: true })
    }
    records.length = 0
    await whileReplaced(graph.transactions, 'raw', { by, during })
    expect(records).toEqual([])
  })
})
