import { availableParallelism } from 'node:os'

export default {
  testEnvironment: 'node',
  globalSetup: '<rootDir>/test/services/start-on-demand.mjs',
  globalTeardown: '<rootDir>/test/services/stop.mjs',
  // Machines that run this may be slow, or busy with other tests.
  testTimeout: 120_000,
  // Many tests wait for processes that they started: a core with one of them has time for another.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
  roots: ['<rootDir>/test'],
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
