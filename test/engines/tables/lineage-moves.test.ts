import { TIP } from '../../../backend/src/graph/graph-store.js'
import { recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { record, workOff } from '../../support/storage/arrival.js'
import type { DerivingStore } from '../../support/storage/engine.js'
import { fill, HEIGHT, lineage, scriptOf } from '../../support/storage/long-lineages.js'
import { onEachSqlEngine, onEachTableEngine } from '../../support/storage/stores.js'

// Long ordinals that arrive in any order: what writes do to link them, and that it comes to the same.

const servers = useServers()
const chain = new FakeChain()
let admission: Parameters<DerivingStore['store']['deriveBy']>[0]

beforeAll(async () => {
  const { node } = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
  admission = node.overlay.admission
})

// What tables do in parts, and with rows of what does not count: facts have neither.
onEachTableEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  async function filled(transactions: FakeTransaction[], reevaluations?: number): Promise<DerivingStore> {
    return await fill(await openStore(), transactions, {
      ...admission,
      ...(reevaluations !== undefined && { reevaluations }),
    })
  }

  describe('the coins before an ordinal that received them in a double spend', () => {
    const coin = (satoshis: number): FakeTransaction =>
      chain.spend({ inputs: [], outputs: [{ satoshis, lockingScript: p2pkh(1) }] })
    const plain = { satoshis: 1, lockingScript: p2pkh(2) }
    const [source, purse] = [coin(1), coin(5)]
    const inputs = [{ transaction: source, vout: 0 }]
    const moved = chain.spend({ inputs, outputs: [plain] })
    const movedElsewhere = chain.spend({ inputs, outputs: [plain, plain] })
    const paid = { transaction: purse, vout: 0 }
    const ordinal = chain.spend({
      inputs: [{ transaction: moved, vout: 0 }, paid],
      outputs: [{ satoshis: 1, lockingScript: scriptOf('inscribed', 0) }],
    })
    const paidElsewhere = chain.spend({ inputs: [paid], outputs: [plain] })

    const carriersOf = async (opened: DerivingStore): Promise<number> => {
      await workOff(opened)
      const { graph_outputs: rows = [] } = await opened.rows()
      return rows.filter((row) => /"carrier":(1|true)/.test(row)).length
    }

    test('are found once a block is revoked that held another spend', async () => {
      const opened = await filled([source, purse, moved], 2)
      const { proof } = recordOf(paidElsewhere, 190)
      await record(opened, { transaction: paidElsewhere, height: 190 })
      await record(opened, { transaction: ordinal, height: 200 })
      expect(await carriersOf(opened)).toBe(0)
      if (proof === undefined) throw new Error('no proof')
      await opened.store.disprove(proof)
      expect(await carriersOf(opened)).toBe(2)
    })

    test('stay forgotten if they count again, and it does not', async () => {
      const opened = await filled([source, purse])
      for (const each of [moved, ordinal]) await record(opened, { transaction: each })
      expect(await carriersOf(opened)).toBe(2)
      await record(opened, { transaction: movedElsewhere, height: 150 })
      await record(opened, { transaction: paidElsewhere, height: 190 })
      expect(await carriersOf(opened)).toBe(0)
      await record(opened, { transaction: moved, height: 120 })
      expect(await carriersOf(opened)).toBe(0)
      expect(await opened.store.transactions.reasonAgainst(moved.txid)).toBeUndefined()
    })
  })

  test('an origin that arrives last is followed by as many outputs as one write moves', async () => {
    const [coin, ...steps] = lineage(
      chain,
      Array.from({ length: 20 }, () => 'inscribed' as const),
    )
    const [origin] = steps
    const opened = await filled(steps.toReversed(), 6)
    if (coin === undefined || origin === undefined) throw new Error('no lineage')
    const { store } = opened
    const outpoint = { txid: origin.txid, vout: 0 }
    expect(await store.ordinals.at(outpoint, TIP)).toBeUndefined()
    await record(opened, { transaction: coin, height: HEIGHT })
    const seen: (number | undefined)[] = []
    do seen.push((await store.ordinals.at(outpoint, TIP))?.sequence)
    while (await store.backlog.workOff())
    expect(seen.slice(0, 4)).toEqual([5, 11, 17, 20])
    expect(await store.backlog.isBehind()).toBe(false)
  })
})

onEachSqlEngine(({ name, openStore, closeStores }) => {
  afterEach(closeStores)

  /** How many outputs were moved from one lineage into another until all steps had arrived. */
  async function moved(steps: FakeTransaction[]): Promise<number> {
    const opened = await openStore()
    const { store, database } = opened
    store.deriveBy(admission)
    await database.writer.raw('create table moved_outputs (step integer)')
    const isSqlite = name === 'SQLite'
    await database.writer.raw(
      `create trigger count_moved after update on graph_outputs for each row
       ${isSqlite ? 'when old.lineage_txid <> new.lineage_txid or old.lineage_vout <> new.lineage_vout' : ''}
       begin
         ${isSqlite ? '' : 'if old.lineage_txid <> new.lineage_txid or old.lineage_vout <> new.lineage_vout then'}
         insert into moved_outputs values (1);
         ${isSqlite ? '' : 'end if;'}
       end`,
    )
    for (const step of steps) {
      await record(opened, { transaction: step, height: HEIGHT })
      await workOff(opened)
    }
    const [row] = await database.reader.all('select count(*) as moved from moved_outputs', [])
    return Number(row.moved)
  }

  test('a lineage that arrives tip first moves each output about twice, and in any order some more times', async () => {
    const steps = lineage(
      chain,
      Array.from({ length: 150 }, () => 'inscribed' as const),
    )
    const tipFirst = await moved(steps.toReversed())
    expect(tipFirst).toBeLessThanOrEqual(2 * steps.length)
    const halves = steps.filter((_, step) => step % 2 === 0)
    const others = steps.filter((_, step) => step % 2 === 1)
    expect(await moved([...halves.toReversed(), ...others])).toBeLessThanOrEqual(
      steps.length * (Math.log2(steps.length) + 1),
    )
  })
})
