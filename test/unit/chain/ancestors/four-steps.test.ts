import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { ChainServices } from '../../../support/follow/chain-services.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { listening } from '../../../support/server/connections.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { HostTracker } from '../../../support/server/host-tracker.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'
import { eventually } from '../../../support/server/waiting.js'

const servers = useServers()
const closing: { close(): Promise<void> }[] = []
afterAll(async () => {
  for (const each of closing) await each.close()
})

/** An ordinal of four transactions. In each, what pays is before it or after it among the inputs. */
function fourSteps(chain: FakeChain, { paysFirst }: { paysFirst: boolean }) {
  const coin = (satoshis: number) => ({ satoshis, lockingScript: OPEN_LOCK })
  // Each step is paid for by a coin of another transaction, of which nobody here has heard.
  const purses = [0, 1, 2, 3].map(() => chain.spend({ inputs: [], outputs: [coin(40)] }))
  const payment = (step: number) => ({ transaction: purses[step] as FakeTransaction, vout: 0 })
  const body = { contentType: 'text/plain', body: utf8('an ordinal'), lock: OPEN_LOCK }
  const inscribed = { satoshis: 1, lockingScript: inscriptionScript(body) }
  const first = chain.spend({ inputs: [payment(0)], outputs: [coin(39), inscribed] })
  const steps = [{ transaction: first, vout: 1 }]
  for (const step of [1, 2, 3]) {
    const spent = steps.slice(-1)
    const pays = payment(step)
    const transaction = chain.spend(
      paysFirst
        ? { inputs: [pays, ...spent], outputs: [coin(40), coin(1)] }
        : { inputs: [...spent, pays], outputs: [coin(1), coin(40)] },
    )
    steps.push({ transaction, vout: paysFirst ? 1 : 0 })
  }
  return { purses, steps }
}

describe('four proven transactions of an ordinal, submitted without their parents', () => {
  test.each([
    { paysFirst: false, order: [0, 1, 2, 3] },
    { paysFirst: false, order: [3, 2, 1, 0] },
    { paysFirst: true, order: [0, 1, 2, 3] },
    { paysFirst: true, order: [2, 0, 3, 1] },
  ])('answer at every step: $order, paid for first: $paysFirst', async ({ paysFirst, order }) => {
    const chain = new FakeChain()
    const { purses, steps } = fourSteps(chain, { paysFirst })
    const headers = new HeaderChain()
    const services = new ChainServices(headers)
    const mined: FakeTransaction[] = [
      chain.genesis,
      ...purses,
      ...steps.map(({ transaction }) => transaction),
    ]
    for (const each of mined) headers.mine([each])
    services.know(...mined)
    const source = await listening(services.listener('junglebus'))
    closing.push(source)
    const settings = { CHAIN_SOURCES: source.url, CHAIN_SOURCE_RATE: '1000' }
    const tracker = new HostTracker(headers)
    const server = await servers.start({ ...treeOf(chain.deployment), ...settings }, { tracker })
    for (const at of order) {
      const { transaction } = steps[at] as (typeof steps)[0]
      const { status } = await server.submit(headers.branch.beef(transaction), ['tm_ordinals'])
      expect(status).toBe(200)
    }
    const origin = steps[0]?.transaction.outpoint(1) ?? ''
    const places = steps.map(({ transaction, vout }) => transaction.outpoint(vout))
    await eventually(async () => {
      const answers = await Promise.all(
        [...places.keys(), -1].map((sequence) => server.ask(`/content/${origin}:${sequence}`)),
      )
      expect(
        answers.map(({ status, headers: got }) => [status, got['x-outpoint'], got['x-ord-seq']]),
      ).toEqual([...places, places[3]].map((place, at) => [200, place, String(Math.min(at, 3))]))
    })
    const proof = await server.ask(`/svc/gateway/provenance/${origin}`)
    expect(proof.status).toBe(200)
  })
})
