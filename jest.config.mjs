import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

/** What `TEST_TIER` selects. The contract of shared logs is run twice: `quick` in memory, `rest` on databases. */
const TIERS = {
  quick: ['test/unit', 'test/engines/contract', 'test/engines/logs', 'test/histories'],
  rest: ['test/engines/logs', 'test/engines/servers', 'test/system', 'test/histories/long', 'trials'],
  all: ['test', 'trials'],
}

// Whoever names files, as in `npm test -- test/system/readme.test.ts`, wants these, and all of them.
const namesFiles = process.argv.slice(2).some((argument) => /^(test|trials)\//.test(argument))
const tier = namesFiles ? 'all' : (process.env.TEST_TIER ?? 'all')
process.env.TEST_TIER = tier
// Hosts of the plugin would keep their indexes in the working directory.
process.env.INDEX_DIR ??= join(tmpdir(), `minetree-index-${process.pid}`)

export default {
  testEnvironment: '<rootDir>/test/support/quick-globals.mjs',
  globalSetup: '<rootDir>/test/support/services/start-on-demand.mjs',
  globalTeardown: '<rootDir>/test/support/services/stop.mjs',
  setupFilesAfterEnv: ['<rootDir>/test/support/clock.mjs'],
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  // Machines that run this may be slow, or busy with other tests.
  testTimeout: 300_000,
  // Many tests wait for a timeout or for a process that they started: a core with one of them has time for another.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
  // A worker keeps the modules of every suite that it has run. One of gigabytes takes more than the half second to exit after
  // which jest kills it, and says that it "failed to exit gracefully".
  workerIdleMemoryLimit: '512MB',
  roots: TIERS[tier].map((folder) => `<rootDir>/${folder}`),
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: tier === 'quick' ? ['/node_modules/', '/test/histories/long/'] : ['/node_modules/'],
  extensionsToTreatAsEsm: ['.ts', '.tsx'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
    '^.+\\.tsx$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', tsx: true },
          transform: { react: { runtime: 'automatic', importSource: 'preact' } },
        },
        module: { type: 'es6' },
      },
    ],
  },
  // Sources import with the extension of what they compile to.
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
}
