import { readConfig } from '../../../src/server/config/config.js'

/**
 * The settings of a server of tests. On the embedded store, its storage is that of `MINETREE_TEST_STORAGE`, so that the same tests
 * run on each: `MINETREE_TEST_STORAGE=facts npm test -- test/unit/server`.
 */
export function withTestStorage<Env extends Record<string, string>>(env: Env): Env & { STORAGE?: string } {
  const { MINETREE_TEST_STORAGE: storage } = process.env
  const isElsewhere = env.KNEX_URL !== undefined || env.MONGO_URL !== undefined
  return storage === undefined || isElsewhere ? env : { STORAGE: storage, ...env }
}

/** The settings of a server of tests, read ({@link withTestStorage}). */
export function testConfig(env: Record<string, string>): ReturnType<typeof readConfig> {
  return readConfig(withTestStorage(env))
}
