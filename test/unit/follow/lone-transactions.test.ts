import fc from 'fast-check'
import { ChainServices } from '../../support/follow/chain-services.js'
import { expectedPlaces, LoneChain, type LonePlan, lonePlan } from '../../support/follow/lone-chain.js'
import type { FakeTransaction } from '../../support/protocol/fake-chain.js'
import { listening } from '../../support/server/connections.js'
import { HeaderChain } from '../../support/server/header-chain.js'
import { useHeaderServices } from '../../support/server/header-service.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'

const servers = useServers()
const headerServices = useHeaderServices()
const { RUNS = '4', SEED = '1', ONLY } = process.env

/** What goes wrong with an answer. */
const FAULTS = [{ kind: 'status', status: 500 }, 'cut', 'other', 'half'] as const

const plans = fc.sample(lonePlan, { seed: Number(SEED), numRuns: Number(RUNS) })

test.each([...plans.entries()].filter(([at]) => ONLY === undefined || at === Number(ONLY)))(
  'proven transactions without parents, in any order, with a source that fails now and then: %i',
  async (_, plan) => {
    const world = new LoneChain(plan.steps)
    const headers = new HeaderChain()
    const services = new ChainServices(headers)
    for (const each of [world.chain.genesis, ...world.transactions]) headers.mine([each])
    services.know(world.chain.genesis, ...world.transactions)
    const source = await listening(sourceOf(services, world, plan).listener)
    const { url: CHAIN_TRACKER } = await headerServices.start(headers)
    const DATA_DIR = await servers.folder()
    const start = () =>
      servers.start({
        ...treeOf(world.chain.deployment),
        ...{ CHAIN_TRACKER, CHAIN_SOURCES: source.url, CHAIN_SOURCE_RATE: '1000', DATA_DIR },
        FOLLOW_ORDINALS: 'none',
      })
    try {
      let server = await start()
      const submitted = new Set<FakeTransaction>()
      for (const [at, choice] of plan.order.entries()) {
        const transaction = world.transactions[choice % world.transactions.length] as FakeTransaction
        submitted.add(transaction)
        const { status } = await server.submit(headers.branch.beef(transaction), ['tm_ordinals'])
        expect(status).toBe(200)
        if (!plan.restarts.includes(at)) continue
        await server.stop()
        server = await start()
      }
      const { graph } = server.node
      await eventually(async () => {
        const stored = new Set<FakeTransaction>()
        for (const each of world.transactions)
          if ((await graph.transactions.heightOf(each.txid)) !== undefined) stored.add(each)
        for (const each of submitted) expect(stored).toContain(each)
        const expected: Record<string, unknown> = {}
        const found: Record<string, unknown> = {}
        for (const [outpoint, { satoshis, transaction }] of world.outputs) {
          if (satoshis !== 1 || !stored.has(transaction)) continue
          const places = expectedPlaces(world, outpoint, (other) => stored.has(other))
          expected[outpoint] = places === undefined ? 404 : [...places, places.at(-1)]
          const sequences = places === undefined ? [-1] : [...places.keys(), -1]
          const answers = await Promise.all(
            sequences.map((each) => server.ask(`/content/${outpoint}:${each}`)),
          )
          found[outpoint] =
            places === undefined ? answers[0]?.status : answers.map((each) => each.headers['x-outpoint'])
          if (places === undefined) continue
          const proof = await server.ask(`/svc/gateway/provenance/${outpoint}`)
          expect([outpoint, proof.status]).toEqual([outpoint, 200])
        }
        expect(found).toEqual(expected)
      })
      await server.stop()
    } finally {
      await source.close()
    }
  },
)

/** A source that lacks some of the transactions for a while, and answers some questions wrongly. */
function sourceOf(services: ChainServices, world: LoneChain, { lacking, faults }: LonePlan) {
  const service = services.service('junglebus')
  const left = new Map<string, number>()
  for (const { which, questions } of lacking) {
    const { txid } = world.transactions[which % world.transactions.length] as FakeTransaction
    left.set(txid, questions)
  }
  service.fault = (path, nth) => {
    const txid = /[0-9a-f]{64}/.exec(path)?.[0] ?? ''
    const questions = left.get(txid) ?? 0
    if (questions > 0) {
      left.set(txid, questions - 1)
      return { kind: 'status', status: 404 }
    }
    return faults.includes(nth) ? FAULTS[nth % FAULTS.length] : undefined
  }
  return service
}
