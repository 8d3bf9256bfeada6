import {
  HTTPSOverlayBroadcastFacilitator,
  HTTPSOverlayLookupFacilitator,
  type LookupAnswer,
  Transaction,
} from '@bsv/sdk'
import { toHex, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

// What wallets run: the SDK's own clients, over HTTP, against this server.

const servers = useServers()
const broadcast = new HTTPSOverlayBroadcastFacilitator(undefined, true)

let server: TestServer
const chain = new FakeChain()
const [a, ab, abc, b] = [chain.mint('a'), chain.mint('ab'), chain.mint('abc'), chain.mint('b')]

interface Sent {
  topics?: string[]
  offChainValues?: number[]
  url?: string
}
const send = (transaction: FakeTransaction, { url = server.url, ...more }: Sent = {}) =>
  broadcast.send(url, { beef: Array.from(beefOf(transaction)), topics: ['tm_names'], ...more })

beforeAll(async () => {
  server = await servers.start(treeOf(chain.deployment))
  for (const transaction of [chain.genesis, a, ab, abc]) await send(transaction)
})

/** What an answer's outputs are: the transaction that the BEEF is of, the index, and the script there. */
const outputsOf = ({ outputs }: LookupAnswer) =>
  outputs.map(({ beef, outputIndex }) => {
    const transaction = Transaction.fromBEEF(beef)
    const script = transaction.outputs[outputIndex]?.lockingScript.toHex()
    return { txid: transaction.id('hex'), outputIndex, script }
  })

function expected(transaction: FakeTransaction, outputIndex: number) {
  const script = transaction.transaction.outputs[outputIndex]?.lockingScript
  return { txid: transaction.txid, outputIndex, script: script && toHex(script) }
}

describe('submitting with the SDK', () => {
  test('a mint is acknowledged in both topics', async () => {
    expect(await send(b, { topics: ['tm_names', 'tm_ordinals'] })).toMatchObject({
      tm_names: { outputsToAdmit: [0, 1, 2], coinsToRetain: [0] },
      tm_ordinals: { outputsToAdmit: [2] },
    })
  })

  test('values that are on no chain may ride along', async () => {
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8('with values') })
    const steak = await send(note, { topics: ['tm_ordinals'], offChainValues: [1, 2, 3] })
    expect(steak).toMatchObject({ tm_ordinals: { outputsToAdmit: [0] } })
    expect((await server.ask(`/content/${note.outpoint(0)}`)).body.toString()).toBe('with values')
  })

  test('the address of the host may end with a slash', async () => {
    const url = `${server.url}/`
    expect(await send(a, { url })).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
    const lookup = new HTTPSOverlayLookupFacilitator(undefined, true).lookup(url, {
      service: 'ls_names',
      query: { name: 'ab' },
    })
    expect(outputsOf(await lookup)).toEqual([expected(ab, 2)])
    const body = utf8(JSON.stringify({ 'index.html': `ord://${ab.outpoint(2)}` }))
    const folder = chain.inscribe({ contentType: 'ord-fs/json', body })
    await send(folder, { topics: ['tm_ordinals'] })
    const path = `/content/${folder.outpoint(0)}`
    // By two slashes, a browser would be led to another host.
    expect((await server.ask(`/${path}`)).headers.location).toBe(`${path}/index.html`)
  })

  test('a topic that is not here is an error to the client', async () => {
    await expect(send(a, { topics: ['tm_other'] })).rejects.toThrow('Failed to facilitate broadcast')
  })
})
