import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Database from 'libsql'
import { graphRecords } from '../../../../backend/src/graph/records.js'
import { runReindex } from '../../../../src/cli/maintenance.js'
import { NotReadyError } from '../../../../src/gateway/http/errors.js'
import { createApp } from '../../../../src/server/app.js'
import { readConfig } from '../../../../src/server/config/config.js'
import type { IndexMaintenance, IndexStatus } from '../../../../src/server/store/index-maintenance.js'
import { keptOutput } from '../../../support/cli/commands.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { type Deed, does, everyDeed } from '../../../support/graph/deeds.js'
import { beefOf, FakeChain, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  ask,
  SILENT,
  sqlOf,
  storedRows,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const SETTINGS = {
  // What other databases have as well.
  STORAGE: 'tables',
  ...treeOf(chain.deployment),
  CHAIN_TRACKER: 'scripts-only',
}
const deeds = everyDeed(chain)

/** A store with every kind of rows, that nobody has open. */
async function stored(): Promise<{ dataDir: string; rows: Record<string, string[]> }> {
  const dataDir = await servers.folder()
  const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
  for (const deed of deeds) await does(server.node, deed)
  await server.stop()
  return { dataDir, rows: rowsOf(dataDir) }
}

/** The rows without the number of reorganisations: a rebuild resolves the same conflicts again and counts them. */
function rowsOf(dataDir: string): Record<string, string[]> {
  const { graph_settings = [], ...rows } = storedRows(dataDir)
  return { ...rows, graph_settings: graph_settings.filter((row) => !row.includes('"turns"')) }
}

/** Changes a store behind the back of the server that has it open. */
function damage(dataDir: string, sql: string): void {
  const database = new Database(join(dataDir, 'minetree.sqlite'))
  database.exec(sql)
  database.close()
}

test('the store that these tests damage has rows of every kind', async () => {
  const { rows } = await stored()
  const empty = Object.keys(rows).filter((table) => rows[table]?.length === 0)
  const none = ['backlog', 'headers', 'held', 'hook_notes', 'interactions', 'pending'].map(
    (name) => `graph_${name}`,
  )
  expect(empty.sort()).toEqual(none)
})

const NOWHERE = `x'${'00'.repeat(32)}', 7`

test.each([
  ['outputs that the index lacks', 'delete from graph_outputs; delete from graph_traits'],
  ['one output that it lacks', 'delete from graph_outputs where content_length > 1000'],
  ['a node that it lacks', "delete from graph_nodes where domain = 'a'"],
  ['names that it lacks', 'delete from graph_names'],
  ['the rows of inactive transactions', 'delete from graph_silent_facts'],
  ['an extra node', `insert into graph_nodes (txid, vout, domain) values (${NOWHERE}, 'z')`],
  ['an extra name', `insert into graph_names (txid, vout, name) values (${NOWHERE}, 'z')`],
  [
    'an extra output',
    `insert into graph_outputs (txid, vout, satoshis, unsettled, lineage_txid, lineage_vout, step)
     values (${NOWHERE}, 1, 0, ${NOWHERE}, 0)`,
  ],
  [
    'an extra inactive output',
    `insert into graph_silent_facts (txid, vout, kind, body) values (${NOWHERE}, 'output', x'00')`,
  ],
  ['as many extra names as missing ones', `update graph_names set txid = x'${'00'.repeat(32)}'`],
])('a start makes equal: %s', async (_, sql) => {
  const { dataDir, rows } = await stored()
  damage(dataDir, sql)
  expect(rowsOf(dataDir)).not.toEqual(rows)
  const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
  await untilReady(server)
  await server.stop()
  expect(rowsOf(dataDir)).toEqual(rows)
})

test('a transaction whose bytes are gone is forgotten, and is taken when it is sent again', async () => {
  const { dataDir, rows } = await stored()
  const [, , , mint, together] = deeds
  damage(dataDir, `delete from graph_pieces where owner in (select txid from graph_names)`)
  const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
  await untilReady(server)
  const { graph } = server.node
  expect(await graph.names.originOf('a')).toBeUndefined()
  for (const deed of [mint, together]) if (deed !== undefined) await does(server.node, deed)
  expect(await graph.names.originOf('a')).toBeDefined()
  await server.stop()
  const scoreless = (all: Record<string, string[]>) => ({
    ...all,
    graph_admissions: all.graph_admissions?.map((row) => JSON.stringify(JSON.parse(row).slice(0, 3))).sort(),
  })
  expect(scoreless(rowsOf(dataDir))).toEqual(scoreless(rows))
})

test('nothing is written where all agree', async () => {
  const { dataDir } = await stored()
  const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
  let writes = 0
  sqlOf(server.node).writer.on('query', () => writes++)
  await server.node.maintenance.run()
  expect(server.node.maintenance.status).toEqual({ state: 'equal', done: 1 })
  expect(writes).toBe(0)
})

describe('reindex', () => {
  const run = async (dataDir: string): Promise<string> => {
    const { output, written } = keptOutput()
    const config = readConfig({ ...SETTINGS, DATA_DIR: dataDir })
    await runReindex({ config, logger: SILENT, output })
    return await written()
  }

  test('makes the same index again', async () => {
    const { dataDir, rows } = await stored()
    expect(await run(dataDir)).toBe('rebuilt the index\n')
    expect(rowsOf(dataDir)).toEqual(rows)
  })

  test('counts a pending transaction once, however often it runs', async () => {
    const dataDir = await servers.folder()
    const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
    const waiting = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: OPEN_LOCK }] })
    expect((await server.submit(beefOf(waiting), ['tm_ordinals'])).status).toBe(200)
    await server.stop()
    const rows = rowsOf(dataDir)
    expect(rows.graph_pending).toHaveLength(1)
    for (let times = 0; times < 2; times++) await run(dataDir)
    expect(rowsOf(dataDir)).toEqual(rows)
  })

  test('makes it of the transactions, proofs and admissions alone', async () => {
    const { dataDir, rows } = await stored()
    const derived = ['outputs', 'nodes', 'names', 'traits', 'spends', 'silent_facts', 'silent_spends']
    damage(dataDir, derived.map((table) => `delete from graph_${table};`).join(' '))
    damage(dataDir, 'update graph_transactions set silent = 1 - silent, mined = null')
    damage(dataDir, 'delete from graph_pieces where owner not in (select txid from graph_transactions)')
    await run(dataDir)
    expect(rowsOf(dataDir)).toEqual(rows)
  })

  test('leaves a store alone that a server has open', async () => {
    const server = await servers.start(SETTINGS)
    await expect(run(server.dataDir)).rejects.toThrow('another minetree process has it open')
  })

  test('that was ended is gone on with by the next start', async () => {
    const { dataDir, rows } = await stored()
    damage(dataDir, "insert into graph_settings (name, value) values ('reindex', 'needed')")
    damage(dataDir, 'delete from graph_nodes; delete from graph_traits')
    const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
    await untilReady(server)
    await server.stop()
    expect(rowsOf(dataDir)).toEqual(rows)
  })
})

describe('while the index is not known to be equal', () => {
  /** A host whose index has this status. */
  async function hostThatIs(status: IndexStatus): Promise<(path: string) => Promise<Answer>> {
    const { node } = await servers.start(SETTINGS)
    const { config, overlay, graph } = node
    const app = createApp({
      config,
      overlay,
      graph,
      ping: async () => {},
      index: () => status,
      logger: SILENT,
    })
    const server = createServer(app).listen(0, '127.0.0.1')
    listening.push(server)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return (path) => ask(`http://127.0.0.1:${port}`, path)
  }
  const listening: Server[] = []
  afterAll(() => {
    for (const server of listening) server.close()
  })

  test('a host that compares says so, is not ready, and answers', async () => {
    const asked = await hostThatIs({ state: 'comparing', done: 0.25 })
    expectError(await asked('/health/ready'), { status: 503, code: 'NOT_READY' })
    expect((await asked('/health/ready')).json).toMatchObject({ error: expect.stringContaining('75 % left') })
    const health = await asked('/health')
    expect(health.status).toBe(503)
    expect(health.json).toMatchObject({ ready: false, index: { state: 'comparing', done: 0.25 } })
    expect((await asked('/health/live')).status).toBe(200)
    expect((await asked('/svc/names')).status).toBe(200)
  })

  test('a host whose index cannot be made equal is not ready, and answers', async () => {
    const asked = await hostThatIs({ state: 'unequal', done: 1 })
    expectError(await asked('/health/ready'), { status: 503, code: 'NOT_READY' })
    expect((await asked('/svc/names')).status).toBe(200)
  })

  test('a host that rebuilds the index answers only health requests', async () => {
    const asked = await hostThatIs({ state: 'rebuilding', done: 0.5 })
    const closed = ['/svc/names', '/content/x', '/openapi.json', '/nowhere', '/health/ready']
    for (const path of closed) expectError(await asked(path), { status: 503, code: 'NOT_READY' })
    expectError(await asked('/lookup'), { status: 503, code: 'NOT_READY', overlay: true })
    expect((await asked('/health/live')).status).toBe(200)
    expect((await asked('/health')).json).toMatchObject({ index: { state: 'rebuilding' } })
  })

  test('what waited for its turn while the index was left half is refused', async () => {
    const server = await servers.start(SETTINGS)
    const { node } = server
    await untilReady(server)
    damage(server.dataDir, "insert into graph_settings (name, value) values ('reindex', 'needed')")
    await (node.maintenance as IndexMaintenance).open()
    const submit = () => does(node, deeds[0] as Deed)
    await expect(submit()).rejects.toThrow(NotReadyError)
    expectError(await server.submit(beefOf(chain.genesis)), { status: 503, code: 'NOT_READY', overlay: true })
    await node.maintenance.run()
    await submit()
    expect(await node.graph.admissions.isApplied('tm_names', chain.genesis.txid)).toBe(true)
  })
})

test('a comparison of many outputs lets readers have their turn', async () => {
  const { node } = await servers.start(SETTINGS)
  await node.maintenance.run()
  const admissions = Array.from({ length: 20_000 }, (_, number) => ({
    topic: 'tm_other',
    outpoint: { txid: number.toString(16).padStart(64, '0'), vout: 0 },
    score: number,
  }))
  await node.graph.record(graphRecords({ admissions }))
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await node.maintenance.run()
  isDone = true
  expect(turns).toBeGreaterThan(9)
})
