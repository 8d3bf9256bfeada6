import type { IndexReader } from '../../../../backend/src/read/host-index.js'
import NamesTopicManager from '../../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { asEngine, useFronts } from '../../../support/server/peer-front.js'
import { StrictEngine } from '../../../support/server/strict-engine.js'
import {
  admittedOn,
  askOffered,
  inStep,
  SyncedWorld,
  submitAll,
} from '../../../support/server/synced-world.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

// Syncs with the overlay engine of 2026, in both directions.

const { start } = useServers()
const fronts = useFronts()
const ORDINALS = ['tm_ordinals']

/** The index of an engine's host that holds nothing yet. */
const EMPTY = {
  transactions: { get: async () => undefined },
  names: { genuineNodes: () => [] },
  ordinals: { output: () => undefined },
} as unknown as IndexReader

test('the engine takes every output that this host offers, page by page', async () => {
  const world = new SyncedWorld()
  const { deployment } = world.chain
  const full = await start(treeOf(deployment))
  await submitAll(full, [world.genesis, ...world.mint(12)])
  await submitAll(full, [...world.inscribe(4), ...world.transfer(9)], ORDINALS)
  const managers = {
    tm_names: new NamesTopicManager({ deployment }),
    tm_ordinals: new OrdinalsTopicManager({ store: EMPTY }),
  }
  for (const [topic, manager] of Object.entries(managers)) {
    for (const limit of [2, 5, 10_000]) {
      const engine = new StrictEngine(full, { topic, manager })
      await engine.sync(limit)
      const offered = await askOffered(full, { topic })
      expect(engine.taken.size).toBe(offered.length)
    }
  }
})

test('a host takes from the engine what it has in the topic that is named, in one round', async () => {
  const world = new SyncedWorld()
  const { deployment, genesis } = world.chain
  const full = await start(treeOf(deployment))
  const mints = [world.genesis, ...world.mint(6)]
  const moves = [...world.inscribe(2), ...world.transfer(4)]
  await submitAll(full, mints)
  await submitAll(full, moves, ORDINALS)
  const front = await fronts.open(full)
  const engine = asEngine([...mints, ...moves])
  const topicless: unknown[] = []
  let askedOfGenesis = 0
  front.fault = (exchange) => {
    const { path, topic, asked } = exchange
    if (path === '/requestForeignGASPNode' && !/^tm_(names|ordinals)$/.test(topic ?? ''))
      topicless.push(asked)
    if (path === '/lookup' && JSON.stringify(asked).includes(genesis.txid)) askedOfGenesis++
    return engine(exchange)
  }
  const late = await start({ ...treeOf(deployment), SYNC_INTERVAL_MS: '0', SYNC_PEERS: front.url })
  // In its only round: the genesis has no sources, which is nothing to wait for.
  await inStep(await admittedOn(full), full, late)
  expect(topicless).toEqual([])
  expect(askedOfGenesis).toBe(0)
  // Refused in the graph of a mint, and asked for by itself.
  expect(front.nodes.filter((txid) => txid === genesis.txid)).toHaveLength(2)
})
