import type { DerivingEngine, DerivingStore, Engine, OpenedStore } from './engine.js'
import { facts } from './facts-engine.js'
import { mariadb } from './mariadb-engine.js'
import { mongo } from './mongo-engine.js'
import { type OpenedSqlStore, type SqlEngine, sqlite } from './sql-store.js'

/** What `npm test` leaves to the rest of the tests, and the other way round (`jest.config.mjs`). */
const TIER = process.env.TEST_TIER
const isQuick = TIER === 'quick'

/** Databases with the tables that hosts still have. */
const TABLES: Engine[] = [mariadb, mongo]
const SQL_TABLES: SqlEngine[] = [sqlite, mariadb]
/** Every kind of store. Each passes the same tests: `npm test` runs them on facts, and the rest of the tests on the others. */
const ENGINES: DerivingEngine[] = [...(TIER === 'rest' ? [] : [facts]), ...(isQuick ? [] : TABLES)]

/** Stores on one engine, for the tests of one file. */
export interface Stores<Opened extends DerivingStore> {
  /** The engine's name. */
  name: string
  openStore(): Promise<Opened>
  /** Closes every store opened so far. */
  closeStores(): Promise<void>
  /** How many cases of a property to try. */
  runs(usual: number): number
}

/** Runs tests on each engine; on those that this machine has no server for, they are skipped, and their name says so. */
export function onEachEngine(tests: (stores: Stores<DerivingStore>) => void): void {
  for (const engine of ENGINES) onEngine(engine, tests)
}

/** Runs tests of what only tables have, on each database with tables. */
export function onEachTableEngine(tests: (stores: Stores<OpenedStore>) => void): void {
  for (const engine of TABLES) onEngine(engine, tests)
}

/** Runs tests of what only tables in SQL have, on each engine that speaks it. */
export function onEachSqlEngine(tests: (stores: Stores<OpenedSqlStore>) => void): void {
  for (const engine of SQL_TABLES) onEngine(engine, tests)
}

function onEngine<Opened extends DerivingStore>(
  engine: Omit<Engine, 'open'> & { open(): Promise<Opened> },
  tests: (stores: Stores<Opened>) => void,
): void {
  const { name, missing, share } = engine
  const opened: Opened[] = []
  const stores: Stores<Opened> = {
    name,
    async openStore() {
      const store = await engine.open()
      opened.push(store)
      return store
    },
    async closeStores() {
      for (const store of opened.splice(0)) await store.close()
    },
    runs: (usual) => Math.ceil(usual * share),
  }
  if (missing.length > 0) {
    describe.skip(`on ${name} (there is no ${missing.join(', no ')} here)`, () => tests(stores))
    return
  }
  describe(`on ${name}`, () => {
    beforeAll(() => engine.start())
    afterAll(async () => {
      await stores.closeStores()
      await engine.stop()
    })
    tests(stores)
  })
}

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
