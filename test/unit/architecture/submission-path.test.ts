import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')

/** The files that the guide names in the section, in order. A name without a folder stands beside the file before it. */
function filesOfSection(title: string): string[] {
  const guide = readFileSync(join(root, 'docs/contributing.md'), 'utf8')
  const section = guide.split(/^## /m).find((each) => each.startsWith(title)) ?? ''
  let folder = ''
  return [...section.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = '']) => {
    const path = name.includes('/') ? name : join(folder, name)
    folder = dirname(path)
    return path
  })
}

/** What a small submission to a host without block headers does not need: the thread of large ones, and who checks proofs. */
const ELSEWHERE = ['src/server/writer/submission-worker.ts', 'src/chain/tracker/chain-tracker.ts']

/**
 * No walk may get longer than it is; what shortens one lowers its numbers. Functions and promises vary by a few with what of the
 * event loop runs between.
 */
const LONGEST = {
  mint: { files: 74, functions: 613, promises: 54, statements: 57 },
  path: { files: 35, functions: 215, promises: 6, statements: 11 },
  lookup: { files: 44, functions: 250, promises: 64, statements: 32 },
}

const STEPS = filesOfSection('How a BEEF gets in')

interface Walk extends Record<keyof (typeof LONGEST)['mint'], number> {
  ran: string[]
}

/** What `npm run map -- --walk --files` prints. */
const walks = ((): Record<string, Walk> => {
  const printed = execFileSync('npm', ['run', '--silent', 'map', '--', '--walk', '--files'], {
    cwd: root,
    encoding: 'utf8',
  })
  const each = printed.split(/^(?=\w+: )/m).map((text): [string, Walk] => {
    const [head = '', ...files] = text.trimEnd().split('\n')
    const [, name = '', ...counts] =
      /^(\w+): (\d+) files, (\d+) functions, (\d+) promises, (\d+) statements$/.exec(head) ?? []
    const [count = 0, functions = 0, promises = 0, statements = 0] = counts.map(Number)
    const ran = files.map((line) => `${line.trim().split(' ')[0]}.ts`)
    return [name, { files: count, functions, promises, statements, ran }]
  })
  return Object.fromEntries(each)
})()

test.each(Object.entries(LONGEST))('the walk of a %s is no longer than it was', (name, longest) => {
  const { ran, ...counts } = walks[name] as Walk
  expect(new Set(ran).size).toBe(counts.files)
  expect(ran.filter((file) => !existsSync(join(root, file)))).toEqual([])
  for (const [what, most] of Object.entries(longest)) {
    expect(counts[what as keyof typeof counts]).toBeGreaterThan(0)
    expect({ [what]: counts[what as keyof typeof counts] <= most }).toEqual({ [what]: true })
  }
})

test('a submission runs all files that the guide names on its way, each named once', () => {
  expect(new Set(STEPS).size).toBe(STEPS.length)
  expect(STEPS.length).toBeGreaterThan(20)
  const { ran } = walks.mint as Walk
  expect(STEPS.filter((path) => !ran.includes(path))).toEqual(ELSEWHERE)
})
