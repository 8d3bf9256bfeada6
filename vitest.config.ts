import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What `TEST_TIER` selects. In `quick`, the contract of shared logs is run in memory alone. */
const TIERS: Record<string, string[]> = {
  quick: ['test/unit', 'test/engines/contract', 'test/engines/logs', 'test/histories'],
  all: ['test', 'trials'],
}

// Whoever names files, as in `npm test -- test/system/readme.test.ts`, wants these, and all of them.
const namesFiles = process.argv
  .slice(2)
  .some((argument) => /^(test|trials)\//.test(relative(import.meta.dirname, resolve(argument))))
const tier = namesFiles ? 'all' : (process.env.TEST_TIER ?? 'all')
process.env.TEST_TIER = tier
// Nobody pulls the plug here: on a disk, tests of stores wait for it at every commit. By night some are larger than memory.
if (
  process.env.TMPDIR === undefined &&
  process.env.NIGHTLY === undefined &&
  freeBytes('/dev/shm') > 4 * 1024 ** 3
) {
  const folder = mkdtempSync('/dev/shm/minetree-')
  process.env.TMPDIR = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}
// Hosts of the plugin would keep their indexes in the working directory.
process.env.INDEX_DIR ??= join(tmpdir(), `minetree-index-${process.pid}`)

function freeBytes(folder: string): number {
  if (!existsSync(folder)) return 0
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** How many seconds a suite takes on a quiet machine, of those that take more than a few. */
const seconds = JSON.parse(
  readFileSync(join(import.meta.dirname, 'test/support/seconds.json'), 'utf8'),
) as Record<string, number>

/** Starts the longest suites first, so that no core is left waiting for one of them at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const costOf = ({ moduleId }: TestSpecification): number =>
      seconds[relative(import.meta.dirname, moduleId)] ?? 0
    return [...files].sort((one, other) => costOf(other) - costOf(one))
  }
}

export default defineConfig({
  test: {
    globals: true,
    include: (TIERS[tier] ?? []).map((folder) => `${folder}/**/*.test.ts`),
    exclude: tier === 'quick' ? ['test/histories/long/**'] : [],
    globalSetup: 'test/support/services/start-on-demand.ts',
    setupFiles: 'test/support/shared-state.ts',
    sequence: { sequencer: LongestFirst },
    // The suites of a worker share its modules: to load them again for each would take more than most suites do.
    pool: 'forks',
    isolate: false,
    // Many tests wait for a timeout or for a process that they started: a core with one of them has time for another.
    maxWorkers: 2 * availableParallelism(),
    // Machines that run this may be slow, or busy with other tests.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    disableConsoleIntercept: true,
  },
})
