import type { OpenedSqlStore } from './sql-store.js'
import { sqlite } from './sqlite-engine.js'

const opened: OpenedSqlStore[] = []

/** Opens a fresh store on a SQLite file of its own. The test closes it with {@link closeStores}. */
export async function openStore(): Promise<OpenedSqlStore> {
  const store = await sqlite.open()
  opened.push(store)
  return store
}

/** Closes every store opened so far and removes its folder. */
export async function closeStores(): Promise<void> {
  for (const store of opened.splice(0)) await store.close()
}
