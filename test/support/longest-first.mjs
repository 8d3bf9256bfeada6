import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import TestSequencer from '@jest/test-sequencer'

/** How many seconds a suite takes on a quiet machine, of those that take more than a few. */
const seconds = JSON.parse(readFileSync(new URL('seconds.json', import.meta.url), 'utf8'))

/** Starts the longest suites first, so that no core is left waiting for one of them at the end. */
export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const costOf = ({ path, context }) => seconds[relative(context.config.rootDir, path)] ?? 0
    return [...super.sort(tests)].sort((one, other) => costOf(other) - costOf(one))
  }
}
