import { createConnection } from 'mysql2/promise'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { type GaspHost, startGaspHost } from '../../support/plugin/gasp-host.js'
import { SyncedWorld } from '../../support/server/synced-world.js'
import {
  ask,
  posted,
  submission,
  type TestServer,
  treeOf,
  useServers,
} from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { MISSING_FOR_MARIADB, mariadbUrl } from '../../support/services/mariadb.js'
import { freshDatabaseName, portOfShared } from '../../support/services/shared.js'

// Hosts with the engine's own GASP and our plugin, beside our server, over HTTP: whoever asks ends with the same.

/** Starting hosts and filling them takes a while on a busy machine. */
const PATIENCE = 600_000
const ENGINE = '2.0.2'
/** How much there is to sync, in tenths of 100 mints and 40 transfers. */
const SIZE = IS_NIGHTLY ? 10 : 1
const BOTH = ['tm_names', 'tm_ordinals']
const ORDINALS = ['tm_ordinals']

const { start } = useServers()
const databases: string[] = []
const onMariadb = MISSING_FOR_MARIADB.length > 0 ? describe.skip : describe

afterAll(async () => {
  if (databases.length === 0) return
  const root = await createConnection(mariadbUrl(await portOfShared('mariadb'), ''))
  for (const name of databases) await root.query(`drop database ${name}`)
  await root.end()
})

/** An empty database; its URL. */
async function database(): Promise<string> {
  const port = await portOfShared('mariadb')
  const name = freshDatabaseName()
  const root = await createConnection(mariadbUrl(port, ''))
  await root.query(`create database ${name}`)
  await root.end()
  databases.push(name)
  return mariadbUrl(port, name)
}

interface Asked {
  url: string
}

/** A host of an engine with our plugin. */
async function host(
  world: SyncedWorld,
  knexUrl: string,
  { peers = [], attached = false }: { peers?: Asked[]; attached?: boolean } = {},
): Promise<GaspHost> {
  const { deployment } = world.chain
  const urls = peers.map(({ url }) => url)
  const started = await startGaspHost({ knexUrl, deployment, engine: ENGINE, peers: urls, attached })
  onTestFinished(() => started.stop())
  return started
}

async function submitAll({ url }: Asked, beefs: readonly Uint8Array[], topics: string[]): Promise<void> {
  for (const beef of beefs) {
    const { status, body } = await ask(url, '/submit', submission(beef, topics))
    if (status !== 200) throw new Error(`not taken: ${body.toString()}`)
  }
}

/** Half of the growth that both sides are to have alike. */
async function grow(world: SyncedWorld, side: Asked): Promise<void> {
  await submitAll(side, world.mint(5 * SIZE), BOTH)
  await submitAll(side, [...world.inscribe(SIZE), ...world.transfer(2 * SIZE)], ORDINALS)
}

/** The outpoints that a lookup service answers with. */
async function found({ url }: Asked, service: string, query: unknown): Promise<string[]> {
  const { status, json, body } = await ask(url, '/lookup', posted({ service, query }))
  if (status !== 200) throw new Error(`no answer to ${JSON.stringify(query)}: ${body.toString()}`)
  const { outputs } = json as { outputs: { beef: number[]; outputIndex: number }[] }
  return outputs.map(({ beef, outputIndex }) => `${readBeef(beef).subject.txid}_${outputIndex}`)
}

/** What a host says: its names with their nodes, and of each name and note its origin, content and tip. */
async function answersOf(asked: Asked, world: SyncedWorld): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {}
  for (const [name, mint] of world.mints) {
    answers[name] = {
      name: await found(asked, 'ls_names', { name }),
      origin: await found(asked, 'ls_names', { origin: name }),
      node: await found(asked, 'ls_names', { node: name }),
      ...(await ordinal(asked, mint.outpoint(2))),
    }
  }
  for (const note of world.notes) answers[note] = await ordinal(asked, note)
  return answers
}

async function ordinal(asked: Asked, outpoint: string): Promise<object> {
  const { status, body, headers } = await ask(asked.url, `/content/${outpoint}:-1`)
  return {
    tip: await found(asked, 'ls_ordinals', { outpoint, seq: -1 }),
    content: {
      status,
      body: body.toString('latin1'),
      origin: headers['x-origin'],
      seq: headers['x-ord-seq'],
    },
  }
}

/** What hosts say otherwise: each with both answers. */
function differences(one: Record<string, unknown>, other: Record<string, unknown>): unknown[] {
  return Object.keys(one)
    .filter((key) => JSON.stringify(one[key]) !== JSON.stringify(other[key]))
    .map((key) => ({ of: key, one: one[key], other: other[key] }))
}

onMariadb('with the GASP of the engine', () => {
  test(
    'our server takes everything from a host, and what it has later, and another host takes what leaves serving to the engine',
    async () => {
      const world = new SyncedWorld()
      const full = await host(world, await database())
      await submitAll(full, [world.genesis, ...world.mint(5 * SIZE)], BOTH)
      const empty = await host(world, await database(), { peers: [full] })
      await empty.sync()
      expect(differences(await answersOf(full, world), await answersOf(empty, world))).toEqual([])
      await grow(world, full)
      const env = { ...treeOf(world.chain.deployment), SYNC_PEERS: full.url, SYNC_INTERVAL_MS: '100' }
      const ours = await start(env)
      await settles(ours, full, world)
      await grow(world, full)
      await settles(ours, full, world)
    },
    PATIENCE,
  )

  test.each([
    ['our server', 2, async (world: SyncedWorld) => await start(treeOf(world.chain.deployment))],
    [
      'another one that mounts our routes',
      IS_NIGHTLY ? 2 : 1,
      async (world: SyncedWorld) => await host(world, await database(), { attached: true }),
    ],
  ])(
    'a host takes everything from %s, in %d parts',
    async (_, parts, open) => {
      const world = new SyncedWorld()
      const full = await open(world)
      await submitAll(full, [world.genesis], BOTH)
      const knexUrl = await database()
      for (let part = 0; part < parts; part++) {
        await grow(world, full)
        const taking = await host(world, knexUrl, { peers: [full] })
        await taking.sync()
        expect(differences(await answersOf(full, world), await answersOf(taking, world))).toEqual([])
        await taking.stop()
      }
    },
    PATIENCE,
  )
})

/** Waits until our server, which asks again and again, says the same as its peer. Before, it may say that it cannot know. */
async function settles(ours: TestServer, peer: Asked, world: SyncedWorld): Promise<void> {
  const wanted = await answersOf(peer, world)
  const name = [...world.mints.keys()].at(-1)
  await eventually(async () => expect(await found(ours, 'ls_names', { name })).toHaveLength(1))
  await eventually(async () => expect(differences(wanted, await answersOf(ours, world))).toEqual([]))
}
