import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import { covenantCode, covenantParts } from '../../../src/mining/covenant.js'
import { assemble } from '../../../src/mining/covenant-parts.js'

const page = readFileSync(join(import.meta.dirname, '../../../docs/covenant.md'), 'utf8')
const deployment = deploymentOf(PROFILES.local, { genesis: { txid: '00'.repeat(32), vout: 0 } })
if (deployment === undefined) throw new Error('a genesis makes a deployment')

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
  const parts = Object.entries(covenantParts(deployment)).map(([part, bytes]) => [part, toHex(bytes)])
  expect(Object.entries(blocks).map(([part, block]) => [part, assembled(block)])).toEqual(parts)
})

test('and says how long they are', () => {
  expect(page).toContain(`by default, ${covenantCode(deployment).length} of them`)
})
