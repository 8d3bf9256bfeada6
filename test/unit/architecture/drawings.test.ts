import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DRAWINGS } from '../../../trials/drawings/drawings.js'
import { Sheet } from '../../../trials/drawings/sheet.js'

// The drawings of the documentation are what `npm run drawings` writes.

const folder = resolve(import.meta.dirname, '../../../docs/drawings')

test('docs/drawings has every drawing and nothing else', () => {
  expect(readdirSync(folder).toSorted()).toEqual(Object.keys(DRAWINGS).toSorted())
})

test.each(Object.entries(DRAWINGS))('%s is what the script draws', (file, draw) => {
  expect(readFileSync(join(folder, file), 'utf8')).toBe(draw().svg())
})

test('every drawing is shown on a page, with a text in place of it', () => {
  const pages = readdirSync(join(folder, '..')).filter((name) => name.endsWith('.md'))
  const text = pages.map((name) => readFileSync(join(folder, '..', name), 'utf8')).join('\n')
  const shown = [...text.matchAll(/!\[[^\]]{20,}\]\(drawings\/([\w.]+)\)/g)].map(([, file]) => file)
  expect(Object.keys(DRAWINGS).filter((file) => !shown.includes(file))).toEqual([])
})

describe('a sheet', () => {
  const sheet = () => new Sheet({ width: 100, height: 100 }, { title: 'A', description: 'B' })

  test('refuses words that do not fit', () => {
    expect(() => sheet().box({ x: 0, y: 0, width: 60, lines: ['too long for it'] })).toThrow(
      'has room for 48',
    )
    expect(() => sheet().words({ x: 80, y: 0 }, ['too long'])).toThrow('has room for 8')
  })

  test('escapes its words', () => {
    const drawn = sheet()
    drawn.words({ x: 0, y: 20 }, ['<a> & b'])
    expect(drawn.svg()).toContain('>&lt;a&gt; &amp; b<')
  })
})
