import { availableParallelism } from 'node:os'

/** What `TEST_TIER` selects. The contract suite is run twice: `quick` on SQLite, `rest` on the other engines. */
const TIERS = {
  quick: ['test/unit', 'test/engines/contract'],
  rest: ['test/engines', 'test/system', 'trials'],
  all: ['test', 'trials'],
}

// Whoever names files, as in `npm test -- test/system/readme.test.ts`, wants these, and all of them.
const namesFiles = process.argv.slice(2).some((argument) => /^(test|trials)\//.test(argument))
const tier = namesFiles ? 'all' : (process.env.TEST_TIER ?? 'all')
process.env.TEST_TIER = tier
const cores = availableParallelism()

export default {
  testEnvironment: 'node',
  globalSetup: '<rootDir>/test/support/services/start-on-demand.mjs',
  globalTeardown: '<rootDir>/test/support/services/stop.mjs',
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  // Machines that run this may be slow, or busy with other tests.
  testTimeout: 120_000,
  // Beyond the quick ones, many tests wait for processes that they started: a core with one of them has time for another.
  maxWorkers: tier === 'quick' ? cores : Math.ceil(cores * 1.5),
  roots: TIERS[tier].map((folder) => `<rootDir>/${folder}`),
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  // Sources import with the extension of what they compile to.
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
}
