import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { FACT, transactionFact } from '../../../backend/src/facts/log.js'
import { latestOf, register, registerFact } from '../../../backend/src/facts/registers.js'
import { appended, grouped } from '../../../backend/src/facts/shared-log.js'
import { Pending, State } from '../../../backend/src/facts/state.js'
import { CHUNK_BYTES } from '../../../backend/src/graph/records.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { prunedRow } from '../../../backend/src/writer/state-changes.js'
import { copyLog } from '../../../src/server/store/facts/copy-log.js'
import { openSharedLog } from '../../../src/server/store/open-shared-log.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../support/protocol/fake-chain.js'
import {
  type Environment,
  type TestServer,
  treeOf,
  untilReady,
  useServers,
} from '../../support/server/test-server.js'
import { onOneSharedEngine } from '../../support/storage/databases.js'
import { inLog } from '../../support/storage/fact-store.js'

const LONG = concatBytes(new Uint8Array(CHUNK_BYTES).fill(7), utf8('the end of a long body'))
/** More than one page. */
const MANY = 2500
const never = new AbortController().signal

const copy = (from: string, to: string, options: Partial<Parameters<typeof copyLog>[0]> = {}) =>
  copyLog({ from, to, signal: never, onProgress: () => {}, ...options })

const stopping = (from: string, to: string): Promise<unknown> => {
  const stop = new AbortController()
  return copy(from, to, { signal: stop.signal, onProgress: () => stop.abort(new Error('stopped')) })
}

interface World {
  chain: FakeChain
  mint: FakeTransaction
  long: FakeTransaction
  /** Pending, and what spends it. */
  money: FakeTransaction
  built: FakeTransaction
  /** Waits, as it lost. */
  loser: FakeTransaction
  held: FakeTransaction
}

function world(): World {
  const chain = new FakeChain()
  const noteOf = (body: Uint8Array, coin?: FakeTransaction): FakeTransaction =>
    chain.spend({
      inputs: coin === undefined ? [] : [{ transaction: coin, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body }) }],
    })
  const [money, stake] = [0, 1].map(() =>
    chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
  ) as [FakeTransaction, FakeTransaction]
  return {
    ...{
      chain,
      mint: chain.mint('a'),
      long: noteOf(LONG, stake),
      money,
    },
    built: noteOf(utf8('built'), money),
    // The long one has its coin.
    loser: noteOf(utf8('a loser'), stake),
    held: noteOf(utf8('held')),
  }
}

onOneSharedEngine('copies of a log, to and from', (databases) => {
  const { start: startServer, folder } = useServers()
  const start = async (env: Environment): Promise<TestServer> => {
    const server = await startServer(env)
    // An index that is not derived to the end has neither the names nor the scores of its log.
    await untilReady(server)
    return server
  }
  const database = async (): Promise<string> => Object.values(await databases.settings())[0] ?? ''
  const isShared = (place: string): boolean => place.includes('://')
  const settings = ({ chain }: World, place: string): Environment => ({
    ...{ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' },
    ...(isShared(place) ? { [databases.isSql ? 'KNEX_URL' : 'MONGO_URL']: place } : { DATA_DIR: place }),
  })

  function filesOf({ dataDir }: TestServer, place: string): { log: string; index: string } {
    return storeFiles(isShared(place) ? join(dataDir, 'gateway') : dataDir)
  }

  /** What a server that has stopped has: without places, which differ where changes of what is pending have some, and scores. */
  function contents(files: { log: string; index: string }): Record<string, unknown[]> {
    const [index, log] = [new Sql(files.index), new Sql(files.log)]
    const rows = Object.fromEntries(
      Object.entries(canonicalRows(index)).map(([name, rows]) => [
        name,
        rows
          .filter((row) => !row.startsWith('{"subject":"setting base"'))
          .map((row) => row.replace(/,"(?:seq|ord)":\d+/g, ''))
          .sort(),
      ]),
    )
    const pending = log.all('select txid, waiting, client, raw from pending order by arrived')
    const held = log.all('select * from held')
    for (const sql of [index, log]) sql.close()
    return { ...rows, pending, held }
  }

  /** A folder with a log. */
  async function filled(world: World): Promise<string> {
    const { chain, mint, long, money, loser, held } = world
    const place = join(await folder(), 'store')
    const server = await start(settings(world, place))
    for (const each of [chain.genesis, mint]) await server.take(beefOf(each))
    await server.take(beefOf(long), ['tm_ordinals'])
    await server.stop()
    inLog(place, (sql, log) => {
      new Pending(sql).add(money, [], { isWaiting: false })
      new Pending(sql).add(loser, [], { isWaiting: true, client: 'aa' })
      const lock = { height: 9_000_000, time: 0 }
      new State(sql).hold({ txid: held.txid, lock, beef: beefOf(held) }, { maxCount: 9 })
      sql.exec('begin')
      for (let n = 1; n <= MANY; n++) log.insert(registerFact(register.sighting('ab'.repeat(32)), n, 'seen'))
      sql.exec('commit')
    })
    return place
  }

  async function expectWhole(world: World, place: string): Promise<Record<string, unknown[]>> {
    const server = await start(settings(world, place))
    const { mint, long } = world
    expect(await server.ask('/svc/names/origin/a')).toMatchObject({ json: { outpoint: mint.outpoint(2) } })
    expect((await server.ask(`/content/${long.outpoint(0)}`)).body.equals(LONG)).toBe(true)
    await server.stop()
    return contents(filesOf(server, place))
  }

  test('have all facts and all that is pending or held, also of one another', async () => {
    const everything = world()
    const source = await filled(everything)
    const [one, two, back] = [await database(), await database(), join(await folder(), 'copy')]
    const { facts } = await copy(source, one)
    expect((await copy(one, two)).facts).toBe(facts)
    expect((await copy(two, back)).facts).toBe(facts)
    const wanted = await expectWhole(everything, source)
    expect(wanted.pending).toHaveLength(2)
    expect(wanted.held).toHaveLength(1)
    for (const place of [one, two, back]) expect(await expectWhole(everything, place)).toEqual(wanted)
    // What was pending is known where it is needed.
    for (const place of [two, back]) {
      const server = await start(settings(everything, place))
      const { built } = everything
      const only = beefOf(built, { proven: false, with: [everything.money] })
      expect((await server.submit(only, ['tm_ordinals'])).status).toBe(200)
      await server.stop()
      expect(contents(filesOf(server, place)).pending).toHaveLength(1)
    }
  })

  test('that were interrupted keep what was removed and came again', async () => {
    const [from, to] = [await database(), join(await folder(), 'copy')]
    const shared = await openSharedLog(databases.isSql ? { knexUrl: from } : { mongoUrl: from })
    const { mint } = world()
    const fact = transactionFact(mint)
    const sightings = Array.from({ length: MANY }, (_, n) =>
      registerFact(register.sighting('ab'.repeat(32)), n + 1, 'seen'),
    )
    await shared.insert(appended(0, [fact, prunedRow({ ...fact, seq: 1 }), fact]))
    for (const some of grouped(sightings, 250)) await shared.insert(appended(await shared.last(), some))
    await shared.discard([1])
    await shared.close()
    await expect(stopping(from, to)).rejects.toThrow('stopped')
    await copy(from, to)
    inLog(to, (_sql, log) => {
      expect(log.get(FACT.transaction, fact.key)?.body).toEqual(Buffer.from(fact.body))
      expect(latestOf(log, register.sighting('ab'.repeat(32)))?.n).toBe(MANY)
    })
  })
})
