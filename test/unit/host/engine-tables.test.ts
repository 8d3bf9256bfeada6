import { type EngineTables, engineOn, missed } from '../../../backend/src/host/engine-tables.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'

const COLUMNS = [
  ...['outputs.id', 'outputs.txid', 'outputs.outputIndex', 'outputs.topic'],
  ...['transactions.txid', 'transactions.beef', 'applied_transactions.txid', 'applied_transactions.topic'],
]

test('on MySQL, of no transactions none is applied, and nothing is asked', async () => {
  const asked: string[] = []
  const tables = await engineOn({
    client: { dialect: 'mysql' },
    async raw(sql) {
      asked.push(sql)
      return [COLUMNS.map((name) => ({ name }))]
    },
  })()
  asked.length = 0
  expect(await tables?.applied([], ['tm_names'])).toEqual(new Set())
  expect(asked).toEqual([])
})

test('what the index lacks is read from shortly before the last place, and from the start of another engine', async () => {
  const engineOf = (name: string): EngineTables => ({
    page: async ({ after, limit }) =>
      Array.from({ length: 1500 }, (_, at) => ({ id: at + 1, outpoint: { txid: `${name} ${at}`, vout: 0 } }))
        .slice(after)
        .slice(0, limit),
    beefOf: async () => new Uint8Array(),
    ...{ applied: async () => new Set(), close: async () => {} },
  })
  const kept = new Map<string, string>()
  const settings = { get: async (name: string) => kept.get(name), set: kept.set.bind(kept) }
  const index = { admissions: { among: async () => [] }, settings } as unknown as FactStore
  const countOf = async (name: string): Promise<number> => {
    let count = 0
    for await (const _ of missed({ engine: engineOf(name), topic: 'tm_ordinals', index })) count++
    return count
  }
  expect([await countOf('one'), await countOf('one'), await countOf('other')]).toEqual([1500, 1000, 1500])
})
