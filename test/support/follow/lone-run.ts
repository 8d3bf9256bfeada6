import type { FakeTransaction } from '../protocol/fake-chain.js'
import { listening } from '../server/connections.js'
import { HeaderChain } from '../server/header-chain.js'
import { HeaderService, headersSettings } from '../server/header-service.js'
import { HostTracker } from '../server/host-tracker.js'
import { startServerProcess } from '../server/server-process.js'
import {
  ask,
  type Environment,
  submission,
  type TestServer,
  treeOf,
  untilReady,
} from '../server/test-server.js'
import { eventually } from '../server/waiting.js'
import { storedRows } from '../storage/fact-rows.js'
import { ChainServices } from './chain-services.js'
import { expectedPlaces, LoneChain, type LonePlan } from './lone-chain.js'

/** A service that is under test. */
export interface LoneService {
  url: string
  isStored(txid: string): Promise<boolean>
  /** Ends it, as the test does in between: a process is killed. */
  end(): Promise<void>
}

/** What goes wrong with an answer. */
const FAULTS = [{ kind: 'status', status: 500 }, 'cut', 'other', 'half'] as const

/**
 * Submits transactions by themselves to a service that is ended and started in between, and expects each step of each ordinal
 * to be that of the model once the service is at rest.
 */
export async function expectLoneRun(
  plan: LonePlan,
  start: (env: Environment, tracker: HostTracker) => Promise<LoneService>,
): Promise<void> {
  const world = new LoneChain(plan.steps)
  const headers = new HeaderChain()
  const services = new ChainServices(headers)
  for (const each of [world.chain.genesis, ...world.transactions]) headers.mine([each])
  services.know(world.chain.genesis, ...world.transactions)
  const source = await listening(sourceOf(services, world, plan).listener)
  const tracker = new HostTracker(headers)
  const headersService = await listening(new HeaderService(headers).listener)
  const env = {
    ...treeOf(world.chain.deployment),
    ...headersSettings(headers, headersService.url),
    ...{ CHAIN_SOURCES: source.url, CHAIN_SOURCE_RATE: '1000' },
    ...{ FOLLOW_ORDINALS: 'none', READS_PER_MINUTE: '0' },
  }
  let service = await start(env, tracker)
  try {
    const submitted = new Set<FakeTransaction>()
    for (const [at, choice] of plan.order.entries()) {
      const transaction = world.transactions[choice % world.transactions.length] as FakeTransaction
      submitted.add(transaction)
      const beef = headers.branch.beef(transaction)
      expect((await ask(service.url, '/submit', submission(beef, ['tm_ordinals']))).status).toBe(200)
      if (!plan.restarts.includes(at)) continue
      await service.end()
      service = await start(env, tracker)
    }
    await eventually(() => expectAtRest(world, service, submitted))
  } finally {
    await service.end()
    await source.close()
    await headersService.close()
  }
}

async function expectAtRest(
  world: LoneChain,
  service: LoneService,
  submitted: ReadonlySet<FakeTransaction>,
): Promise<void> {
  const stored = new Set<FakeTransaction>()
  for (const each of world.transactions) if (await service.isStored(each.txid)) stored.add(each)
  for (const each of submitted) expect(stored).toContain(each)
  const expected: Record<string, unknown> = {}
  const found: Record<string, unknown> = {}
  for (const [outpoint, { satoshis, transaction }] of world.outputs) {
    if (satoshis !== 1 || !stored.has(transaction)) continue
    const places = expectedPlaces(world, outpoint, (other) => stored.has(other))
    const sequences = places === undefined ? [-1] : [...places.keys(), -1]
    const paths = sequences.map((each) => `/content/${outpoint}:${each}`)
    const answers = await Promise.all(paths.map((path) => ask(service.url, path)))
    const proof = await ask(service.url, `/svc/gateway/provenance/${outpoint}`)
    expected[outpoint] = places === undefined ? [undefined, 404] : [...places, places.at(-1), 200]
    found[outpoint] = [...answers.map((each) => each.headers['x-outpoint']), proof.status]
  }
  expect(found).toEqual(expected)
}

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

/** A server in this process. */
export function loneServer({ url, node, stop }: TestServer): LoneService {
  const { transactions } = node.graph
  return { url, isStored: async (txid) => (await transactions.raw(txid)) !== undefined, end: stop }
}

/** A server in a process of its own, on SQLite in a folder, that is killed. */
export async function loneProcess(
  env: Environment & { DATA_DIR: string },
  main: string,
): Promise<LoneService> {
  const { url, kill } = await startServerProcess({ main, env })
  await untilReady({ ask: (path) => ask(url, path) })
  return {
    url,
    isStored: async (txid) =>
      storedRows(env.DATA_DIR).transactions?.some((row) => row.includes(txid)) ?? false,
    end: async () => void (await kill('SIGKILL')),
  }
}
