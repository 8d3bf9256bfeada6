import { engineOn } from '../../../backend/src/host/engine-tables.js'

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
