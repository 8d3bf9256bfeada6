import type { FailedHook, HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import { deriveInHost, hostRules } from '../../../backend/src/graph/host-index.js'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { HookRetries } from '../../../backend/src/lookup-services/hook-retries.js'
import { recordBeef } from '../../../backend/src/lookup-services/hooks.js'
import { missedHooks } from '../../../backend/src/lookup-services/missed-hooks.js'
import { engineOutputsIn } from '../../../backend/src/storage/sql/engine-outputs.js'
import { sqlDatabase } from '../../../backend/src/storage/sql/rows.js'
import { StoredHookOutbox } from '../../../backend/src/storage/write/hook-outbox.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { until } from '../../support/server/waiting.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

afterEach(closeStores)

const TABLES = [
  'create table outputs (id integer primary key, txid text, outputIndex integer, topic text, satoshis integer)',
  'create table transactions (id integer primary key, txid text unique, beef blob)',
]

/** An index beside what an engine has stored in the same database. */
async function openHost() {
  const chain = new FakeChain()
  const { deployment } = chain
  const { store, database } = await openStore()
  hostRules(store).deployment = deployment
  deriveInHost(store)
  const run = (sql: string, values: (string | number | Buffer)[] = []) => database.writer.raw(sql, values)
  const missed = () =>
    missedHooks({
      service: 'ls_names',
      topic: 'tm_names',
      openEngine: engineOutputsIn(database.writer),
      index: store,
    })
  return {
    chain,
    store,
    run,
    missed,
    outbox: new StoredHookOutbox(sqlDatabase(database)),
    async createTables() {
      for (const sql of TABLES) await run(sql)
    },
    /** As the engine stores an output. */
    async insert(
      id: number,
      { txid, vout = 0, topic = 'tm_names' }: { txid: string; vout?: number; topic?: string },
    ) {
      await run('insert into outputs (id, txid, outputIndex, topic) values (?, ?, ?, ?)', [
        id,
        txid,
        vout,
        topic,
      ])
    },
    async insertBeef(transaction: FakeTransaction) {
      await run('insert into transactions (txid, beef) values (?, ?)', [
        transaction.txid,
        Buffer.from(beefOf(transaction)),
      ])
    },
    /** Records what was missed, and gives it as `<txid>_<vout>`. */
    async catchUp(): Promise<string[]> {
      const found: string[] = []
      for await (const hook of missed()) {
        if (hook.hook !== 'admitted') throw new Error('only admissions are missed')
        found.push(`${hook.outpoint.txid}_${hook.outpoint.vout}`)
        await recordBeef(store, readBeef(hook.beef), deployment)
      }
      return found
    },
  }
}

test('of what an engine stored, the index catches up with what it has not got, a transaction at a time', async () => {
  const host = await openHost()
  await host.createTables()
  const { genesis } = host.chain
  const [a, ab] = [host.chain.mint('a'), host.chain.mint('ab')]
  for (const each of [genesis, a, ab]) await host.insertBeef(each)
  await host.insert(1, { txid: ab.txid, vout: 1, topic: 'tm_opns' })
  await host.insert(2, { txid: ab.txid, vout: 2 })
  await host.insert(3, { txid: genesis.txid })
  await host.insert(4, { txid: a.txid, topic: 'tm_others' })
  expect(await host.catchUp()).toEqual([ab.outpoint(1), genesis.outpoint(0)])
  expect(await host.store.names.originOf('ab')).toBeUndefined()
  await host.insert(5, { txid: a.txid, vout: 2 })
  // What is only pending is passed on again.
  expect(await host.catchUp()).toEqual([ab.outpoint(1), a.outpoint(2)])
  expect(await host.store.names.originOf('ab')).toEqual({ txid: ab.txid, vout: 2 })
  expect(await host.catchUp()).toEqual([])
})

test('all pages are read, once; after that, from shortly before the last known output', async () => {
  const host = await openHost()
  await host.createTables()
  const { genesis } = host.chain
  const [a, b, c] = [host.chain.mint('a'), host.chain.mint('b'), host.chain.mint('c')]
  for (const each of [genesis, a, b, c]) await host.insertBeef(each)
  await host.run(
    `with recursive n(id) as (select 10 union all select id + 1 from n where id < 2500)
     insert into outputs (id, txid, outputIndex, topic) select id, '${'ab'.repeat(32)}', id, 'tm_names' from n`,
  )
  await host.insert(2501, { txid: genesis.txid })
  expect(await host.catchUp()).toEqual([genesis.outpoint(0)])
  // A lower id that was not visible yet, and one so far back that nobody can have been writing it.
  await host.run('delete from outputs where id = 2400')
  await host.insert(2400, { txid: a.txid })
  await host.insert(1, { txid: b.txid })
  expect(await host.catchUp()).toEqual([a.outpoint(0)])
  // Another database of the engine.
  await host.run('delete from outputs where id > 2000')
  await host.insert(2501, { txid: c.txid })
  expect(await host.catchUp()).toEqual([b.outpoint(0), c.outpoint(0)])
})

test('without the tables of an engine, or with others of these names, nothing is missed', async () => {
  const host = await openHost()
  expect(await host.catchUp()).toEqual([])
  await host.run('create table outputs (id integer primary key, name text)')
  await host.run('create table transactions (id integer primary key, txid text, beef blob)')
  expect(await host.catchUp()).toEqual([])
})

test('what can neither be recorded nor kept in the outbox is missed again', async () => {
  const host = await openHost()
  await host.createTables()
  const { genesis } = host.chain
  await host.insertBeef(genesis)
  await host.insert(1, { txid: genesis.txid })
  let isAway = true
  const outbox: HookOutbox = {
    keep: async (failed) => {
      if (isAway) throw new Error('the database is away')
      await host.outbox.keep(failed)
    },
    kept: (service) => host.outbox.kept(service),
    release: (failed) => host.outbox.release(failed),
  }
  const kept: string[] = []
  const retries = new HookRetries({
    service: 'ls_names',
    outbox,
    missed: host.missed,
    retry: async (failed: FailedHook) => {
      if (isAway) throw new Error('the database is away')
      if (failed.hook === 'admitted')
        await recordBeef(host.store, readBeef(failed.beef), host.chain.deployment)
    },
    onHookFailure: (failure) => kept.push(failure.kept),
    times: { soon: 5, longest: 20, idle: 20 },
  })
  try {
    await until(() => kept.includes('in memory'))
    expect(await host.store.settings.get('engine outputs of ls_names')).toBeUndefined()
    isAway = false
    await until(() => host.store.settings.get('engine outputs of ls_names'))
    expect(await host.store.transactions.has(genesis.txid)).toBe(true)
  } finally {
    await retries.close()
  }
})
