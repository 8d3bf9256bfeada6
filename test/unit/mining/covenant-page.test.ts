import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { PROFILES, termsOf } from '../../../backend/src/protocol/profile.js'
import { assemble, covenantCode, covenantParts } from '../../../src/mining/covenant.js'

const page = readFileSync(join(import.meta.dirname, '../../../docs/covenant.md'), 'utf8')
const terms = termsOf(PROFILES.local, { covenantVersion: 2 })
const first = termsOf(PROFILES.local, { covenantVersion: 1 })

/** The script blocks of the page by the part that each stands under. */
const blocks: Record<string, string> = Object.fromEntries(
  [...page.matchAll(/^### `(\w+)`$(?:(?!^###).)*?^```script\n(.*?)^```$/gms)].map(([, part, block]) => [
    part,
    block ?? '',
  ]),
)

/** Assembles a block of the page, comments left out. */
function assembled(block: string): string {
  const words = block
    .replace(/#.*$/gm, '')
    .split(/\s+/)
    .filter((word) => word.length > 0)
  return toHex(assemble(words.map((word) => (/^<.*>$/.test(word) ? fromHex(word.slice(1, -1)) : word))))
}

test('docs/covenant.md has the parts of the covenant, in order, byte for byte', () => {
  const parts = Object.entries(covenantParts(terms)).map(([part, bytes]) => [part, toHex(bytes)])
  expect(Object.entries(blocks).map(([part, block]) => [part, assembled(block)])).toEqual(parts)
})

test('says how long they are', () => {
  expect(page).toContain(
    `${covenantCode(terms).length} bytes of version 2 for the terms of a local network (${covenantCode(first).length} of version 1)`,
  )
})

/** What the page writes instead in a tree of version 1: part, words of version 2, words of version 1. */
const instead = [...page.matchAll(/^\| `(\w+)` \| `([^`]+)` \| `?([^`|]*?)`? \|$/gm)].map(
  ([, part = '', second = '', words = '']) => ({ part, second, words: words === 'nothing' ? '' : words }),
)

test('and what version 1 has in their place', () => {
  expect(instead.length).toBeGreaterThan(0)
  const changed = { ...blocks }
  for (const { part, second, words } of instead) {
    const block = (changed[part] ?? '').replace(/#.*$/gm, '').replace(/\s+/g, ' ')
    expect(block).toContain(second)
    changed[part] = block.replace(second, words)
  }
  const parts = Object.entries(covenantParts(first)).map(([part, bytes]) => [part, toHex(bytes)])
  // The position where the code ends is another one.
  changed.split = (changed.split ?? '').replace(
    String(covenantCode(terms).length + 2),
    String(covenantCode(first).length + 2),
  )
  expect(Object.entries(changed).map(([part, block]) => [part, assembled(block)])).toEqual(parts)
})
