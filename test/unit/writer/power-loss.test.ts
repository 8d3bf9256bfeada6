import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Sql } from '../../../backend/src/facts/connection.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

/** As SQLite numbers it. */
const FULL = 2

// What the settings are for is in the page; that SQLite keeps what it says of them is for SQLite to test.
test('the store has the settings against power loss that the page states', async () => {
  const store = new OpenedWriter()
  const { logFile } = store.writer as unknown as { logFile: Sql }
  expect(logFile.get('pragma journal_mode')).toEqual({ journal_mode: 'wal' })
  expect(logFile.get('pragma synchronous')).toEqual({ synchronous: FULL })
  await store.close()
  const page = readFileSync(resolve(import.meta.dirname, '../../../docs/operating.md'), 'utf8')
  expect(page).toContain('SQLite in WAL mode, `synchronous = full`')
})
