import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { FAULTS, type Fault } from '../faults.js'
import { IS_LONG } from '../trial.js'

// `RUNS=40 npm test -- test/histories/long/faults.test.ts` puts each fault into a copy of the project, and expects its histories to
// find it: in any order, against what is recorded, or, in so many runs, against the model.

const ROOT = resolve(import.meta.dirname, '../../..')
const INDEX = 'backend/src/index'
/** In the order of how long they take; each with the tests of it that ask an index. */
const TESTS = [
  { name: 'any-order', only: 'any order', runs: undefined },
  { name: 'recorded', only: 'recorded', runs: undefined },
  { name: 'histories', only: 'where tracker', runs: process.env.RUNS },
]
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
function copyWith({ file, from, to }: Fault): string {
  const copy = mkdtempSync(join(tmpdir(), 'minetree-fault-'))
  copies.push(copy)
  for (const each of [
    'backend/src',
    'src',
    'test/support',
    'test/histories',
    'package.json',
    'jest.config.mjs',
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
  const { NODE_OPTIONS: _, JEST_WORKER_ID: __, ...env } = process.env
  return TESTS.find(({ name, only, runs }) => {
    const { status } = spawnSync(
      'npm',
      ['test', '--', `test/histories/${name}.test.ts`, '--maxWorkers=1', '-t', only],
      {
        cwd: copy,
        env: { ...env, SEED: '1', ANY_ORDER_SEEDS: '10', RUNS: runs },
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
    expect(finderIn(copyWith({ says: '', file: 'active.ts', from: '', to: '' }))).toBeUndefined()
  },
  1_800_000,
)

testLong.each(FAULTS)(
  'is found: $says (only where RUNS is set)',
  (fault) => {
    const finder = finderIn(copyWith(fault))
    process.stdout.write(`${fault.says}: ${finder ?? 'NOT FOUND'}\n`)
    expect(finder).toBeDefined()
  },
  1_800_000,
)
