import { setTimeout as sleep } from 'node:timers/promises'
import { parseOutpoint } from '../backend/src/protocol/outpoint.js'
import type { EngineVersion } from '../test/support/plugin/engines.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { networkIn, withNetworkFolder } from './facts-network.js'
import { HostMaterial, OTHER } from './host-material.js'
import { Host, type Place } from './host-places.js'
import type { HostSetup } from './host-process.js'
import { inLineOf, timed } from './support.js'

const BRANCH = 20_000
const A_BATCH = 500
/** The pause of the client of another topic after an answer, in milliseconds. */
const PAUSE = 20
/** How long the other topic is measured alone, in milliseconds. */
const ALONE = 10_000

/**
 * How long a submission to another topic of the host takes while the plugin reads its log and derives its index, and while it
 * applies a reorganisation.
 */
export async function* waits(
  title: string,
  place: Place & { engine: EngineVersion },
): AsyncGenerator<string> {
  yield* withNetworkFolder((network) => waitsOver(network, title, place))
}

async function* waitsOver(
  network: string,
  title: string,
  place: Place & { engine: EngineVersion },
): AsyncGenerator<string> {
  const { deployment, count, inscriptions } = networkIn(network)
  const setup: HostSetup = { ...place, plugin: 'ours', deployment, admitted: ADMITTED }
  let host = await Host.start(setup)
  try {
    await host.ask({ fill: network })
    host = await host.startAgain()
    const last = { service: 'ls_ordinals', query: { outpoint: inscriptions.at(-1) } }
    yield `${title}, a rebuild of ${count}: ${await during(host, () => host.ask({ until: last }))}`
    yield `  alone: ${await during(host, () => sleep(ALONE))}`
    const { branch, competing } = reorganisation()
    for (let at = 0; at < branch.length; at += A_BATCH)
      await host.ask({ record: branch.slice(at, at + A_BATCH).map(({ txid, raw }) => ({ txid, raw })) })
    const tip = { service: 'ls_ordinals', query: { outpoint: branch.at(-1)?.outpoint(0) } }
    await host.ask({ until: tip })
    const won = { service: 'ls_ordinals', query: { outpoint: competing.outpoint(0) } }
    const reorganise = async (): Promise<void> => {
      await host.submit(beefOf(competing), ['tm_ordinals'])
      await host.ask({ until: won })
    }
    yield `${title}, a reorganisation of ${branch.length}: ${await during(host, reorganise)}`
  } finally {
    await host.end()
  }
}

const ADMITTED: HostSetup['admitted'] = { longer: 0, mints: { [OTHER]: [0] }, others: {} }

/** An ordinal that moves, each time with MAP, and a mined transaction that spends the same coin as its first move. */
function reorganisation(): { branch: FakeTransaction[]; competing: FakeTransaction } {
  const chain = new FakeChain()
  const coin = parseOutpoint(`${'d'.repeat(64)}_0`)
  const branch: FakeTransaction[] = []
  while (branch.length < BRANCH) {
    const before = branch.at(-1)
    const lockingScript = Uint8Array.from([
      ...p2pkh(branch.length),
      ...mapTail({ step: String(branch.length) }),
    ])
    const inputs = [before === undefined ? coin : { transaction: before, vout: 0 }]
    branch.push(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] }))
  }
  const lockingScript = Uint8Array.from([...p2pkh(1), ...mapTail({ step: 'another' })])
  return { branch, competing: chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript }] }) }
}

/** The times of submissions to the host's own topic during some work. */
async function during(host: Host, work: () => Promise<unknown>): Promise<string> {
  const material = new HostMaterial()
  const times: number[] = []
  const own: number[] = []
  const inLine = (): number => inLineOf(host.pid) + inLineOf(process.pid)
  let isDone = false
  await host.ask({ delays: 'begin' })
  const submitting = (async () => {
    while (!isDone) {
      const { beef } = await material.next('inscription')
      const before = inLine()
      const took = await timed(() => host.submit(beef, [OTHER]))
      times.push(took)
      own.push(Math.max(0, took - (inLine() - before)))
      await sleep(PAUSE)
    }
  })()
  const wall = await timed(work)
  isDone = true
  await submitting
  const loop = await host.ask<{ p99: number; max: number }>({ delays: 'end' })
  const summary = (some: number[]): string => {
    some.sort((one, other) => one - other)
    const at = (share: number): string => (some[Math.floor(some.length * share)] ?? Number.NaN).toFixed(1)
    return `${at(0.5)} ms (median), ${at(0.99)} (99 %), ${some.at(-1)?.toFixed(1)} (longest)`
  }
  return `${(wall / 1000).toFixed(1)} s; ${times.length} submissions to another topic took ${summary(own)} (wanted: at most 50) beside what the machine ran otherwise on all cores, ${summary(times)} in all; the event loop was late by ${loop.p99.toFixed(1)} ms (99 %), ${loop.max.toFixed(1)} (longest)`
}
