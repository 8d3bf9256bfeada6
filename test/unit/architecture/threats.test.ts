import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

// `docs/threats.md` says which test holds each threat. What it names has to be there, or the page would rot.

const root = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/threats.md'), 'utf8')

interface Threat {
  line: string
  held: string
}

/** The lines of all tables with a column for the test, but for their heads. */
const threats: Threat[] = [...page.matchAll(/^\| (.+) \| .+ \| (.+) \|$/gm)]
  .map(([line, , held = '']) => ({ line, held }))
  .filter(({ held }) => held !== 'held by' && held !== '---')

/** What a cell names: files, each followed by the starts of titles in it. */
function named(held: string): { file: string; titles: string[] }[] {
  return [...held.matchAll(/`((?:test|trials)\/[^`]+)`:((?: "[^"]+",?)*)/g)].map(
    ([, file = '', titles = '']) => ({
      file,
      titles: [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => title),
    }),
  )
}

/** The titles of tests and of groups of them: the first thing said to `test` or `describe`, or to what their `each` gives. */
function titlesOf(file: string): string[] {
  const code = readFileSync(join(root, file), 'utf8')
  return [...code.matchAll(/(?:\b(?:test|describe|inBrowser)|\))\(\s*(['"`])((?:(?!\1).)+)\1/g)].map(
    ([, , title = '']) => title,
  )
}

test('the page has threats of every kind, and each of them once', () => {
  expect(threats.length).toBeGreaterThan(100)
  const lines = threats.map(({ line }) => line)
  expect(lines).toEqual([...new Set(lines)])
})

test('each threat names a test in a form that is read to its end', () => {
  const unread = threats.filter(({ held }) => {
    const rest = held.replace(/`(?:test|trials)\/[^`]+\.test\.ts`:(?: "[^"]+",?)+/g, '').trim()
    return rest !== '' || named(held).length === 0
  })
  expect(unread).toEqual([])
})

test('each test that the page names is there, under that name and no other', () => {
  const wrong = threats
    .flatMap(({ held }) => named(held))
    .flatMap(({ file, titles }) => {
      if (!existsSync(join(root, file))) return [`${file} is not there`]
      const all = titlesOf(file)
      return titles
        .map((start) => ({ start, count: all.filter((title) => title.startsWith(start)).length }))
        .filter(({ count }) => count !== 1)
        .map(({ start, count }) => `${file} has ${count} titles that start as "${start}"`)
    })
  expect([...new Set(wrong)]).toEqual([])
})
