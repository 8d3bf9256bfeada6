import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { closeStores, openStore } from '../../support/storage/stores.js'

afterEach(closeStores)

/** As SQLite numbers it. */
const FULL = 2

// What the settings are for is in the page; that SQLite keeps what it says of them is for SQLite to test.
test('the store has the settings against power loss that the page states', async () => {
  const { database } = await openStore()
  const [journal] = await database.writer.raw('pragma journal_mode')
  const [synchronous] = await database.writer.raw('pragma synchronous')
  expect(journal).toEqual({ journal_mode: 'wal' })
  expect(synchronous).toEqual({ synchronous: FULL })
  const page = readFileSync(resolve(import.meta.dirname, '../../../docs/durability.md'), 'utf8')
  expect(page).toContain('in WAL mode with `synchronous = full`')
})
