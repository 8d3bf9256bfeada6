import { fromHex, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { anchorRoot, nextAnchor } from '../../../backend/src/protocol/topic-anchors.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'

// The published vectors: `conformance/vectors/sync/brc136-basm.json` of ts-stack.

const shown = (bytes: Uint8Array): string => toHex(reversed(bytes))
const hashOf = (byte: string): Uint8Array => fromHex(byte.repeat(32))
const ODD = 'acbd47d5022a6c5e954ad677df8ec221c893f871889826df53f0f1ad3f023e22'

test.each([
  ['nothing', [], '00'.repeat(32)],
  ['one', ['01'], '01'.repeat(32)],
  ['two', ['01', '02'], 'b4100303b9e99ada4b479b0bb93d9b549cb057a1c4be08896bc982debe20ce39'],
  ['three', ['01', '02', '03'], ODD],
])('the root over %s', (_, txids, root) => {
  expect(shown(anchorRoot(txids.map(hashOf), hash256))).toBe(root)
})

test('the hash over all blocks', () => {
  const block = { hash: hashOf('04'), root: reversed(fromHex(ODD)) }
  expect(shown(nextAnchor(new Uint8Array(32), block, hash256))).toBe(
    'd0d3e770802c7c28ca1da59cc92263d59425f00e48d421ffebb02497b4702307',
  )
})
