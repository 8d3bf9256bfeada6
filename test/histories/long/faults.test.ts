import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { FAULTS, type Fault } from '../faults.js'
import { IS_LONG } from '../trial.js'

// `RUNS=1 npm test -- test/histories/long/faults.test.ts` puts each fault into a copy of the project, and expects the tests that
// `npm test` runs to find it: in any order, or against the model.

const ROOT = resolve(import.meta.dirname, '../../..')
const INDEX = 'backend/src/index'
/** The tests of `npm test` that ask an index, in the order of how long they take. */
const TESTS = [
  { name: 'any-order', files: ['test/histories/any-order.test.ts'] },
  {
    name: 'index',
    files: [
      'test/unit/index/apply.test.ts',
      'test/unit/writer/door.test.ts',
      ...['long-maps', 'sightings'].map((name) => `test/engines/contract/${name}.test.ts`),
    ],
  },
  { name: 'histories', files: ['test/histories/histories.test.ts'] },
] as const
/** A fault may be that something never ends. */
const LONGEST = 400_000

test.each(FAULTS)('there is code for a slip: $says', ({ file, from }) => {
  expect(readFileSync(join(ROOT, INDEX, file), 'utf8').split(from)).toHaveLength(2)
})

const copies: string[] = []
afterAll(() => {
  for (const each of copies) rmSync(each, { recursive: true, force: true })
})

/** What the tests need of the project, with a fault in it. */
function copyWith({ file, from, to }: Pick<Fault, 'file' | 'from' | 'to'>): string {
  const copy = mkdtempSync(join(tmpdir(), 'minetree-fault-'))
  copies.push(copy)
  for (const each of [
    'backend/src',
    'src',
    'test/support',
    'test/histories',
    'test/unit/index',
    'test/unit/writer',
    'test/engines/contract',
    'package.json',
    'vitest.config.ts',
    'assets',
  ])
    cpSync(join(ROOT, each), join(copy, each), { recursive: true })
  for (const each of ['backend/package.json', 'packages'])
    cpSync(join(ROOT, each), join(copy, each), {
      recursive: true,
      filter: (path) => !path.includes('node_modules'),
    })
  // One of the folders in which tests may be.
  mkdirSync(join(copy, 'trials'))
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const path = join(copy, INDEX, file)
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(from, () => to),
  )
  return copy
}

/** The first of the histories that fails in a copy. */
function finderIn(copy: string): string | undefined {
  const { NODE_OPTIONS: _, VITEST: __, RUNS: ___, SEED: ____, ...env } = process.env
  return TESTS.find(({ files }) => {
    // All but those that a database is started for.
    const { status } = spawnSync(
      'npm',
      ['test', '--', ...files, '--maxWorkers=1', '-t', '^(?!on (MariaDB|MongoDB))'],
      {
        cwd: copy,
        env,
        timeout: LONGEST,
        stdio: 'ignore',
      },
    )
    return status !== 0
  })?.name
}

const testLong = IS_LONG ? test : test.skip

testLong(
  'without a fault, nothing is found (only where RUNS is set)',
  () => {
    expect(finderIn(copyWith({ file: 'active.ts', from: '', to: '' }))).toBeUndefined()
  },
  1_800_000,
)

testLong.each(FAULTS)(
  'is found: $says (only where RUNS is set)',
  (fault) => {
    const finder = finderIn(copyWith(fault))
    process.stdout.write(`${fault.says}: ${finder ?? 'NOT FOUND'}\n`)
    expect(finder).toBe(fault.foundBy)
  },
  1_800_000,
)
