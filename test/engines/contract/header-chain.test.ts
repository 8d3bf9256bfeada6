import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { encodeHeader } from '../../../backend/src/protocol/block-header.js'
import { joinBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import type { HeaderStore } from '../../../backend/src/protocol/header-store.js'
import { openStore } from '../../support/storage/stores.js'

// Rows have a hundred headers each, or forty: what is asked and changed here begins and ends within them, and between them.
// The first headers that are written end with the checkpoint, which every branch has.

interface Made {
  bytes: Uint8Array
  hash: string
}

/** The bits of each branch: a header of the second has more work than all of the first. */
const BITS = { 1: 0x207fffff, 2: 0x1d00ffff }

function make(height: number, branch: 1 | 2, previous = '00'.repeat(32)): Made {
  const fields = { version: branch, previous, root: '11'.repeat(32), time: height, nonce: height }
  const bytes = encodeHeader({ ...fields, bits: BITS[branch] })
  return { bytes, hash: toHex(reversed(nativeHash256(bytes))) }
}

/** The first branch, from height 0 on. */
const made: Made[] = []

function headerAt(height: number): Made | undefined {
  while (made.length <= height) made.push(make(made.length, 1, made.at(-1)?.hash))
  return made[height]
}

/** Headers of the first branch, or of another one that leaves it below the first of them. */
function headers(from: number, to: number, branch: 1 | 2 = 1): Uint8Array {
  const found: Uint8Array[] = []
  let last = headerAt(from - 1)
  for (let height = from; height <= to; height++) {
    last = branch === 1 ? headerAt(height) : make(height, branch, last?.hash)
    if (last !== undefined) found.push(last.bytes)
  }
  return joinBytes(found)
}

async function write(chain: HeaderStore, from: number, to: number, branch: 1 | 2 = 1): Promise<void> {
  const range = await chain.range()
  const tip = range && (await chain.read({ from: range.to, count: 1 }))
  expect(await chain.replaceFrom({ height: from, headers: headers(from, to, branch), tip })).toBe(true)
}

describe('a store of facts', () => {
  test('headers are added below the lowest one, and nowhere else', async () => {
    const { headers: chain } = (await openStore()).store
    expect(await chain.addBelow({ to: 99, headers: headers(0, 99) })).toBe(false)
    await write(chain, 453, 500)
    expect(await chain.addBelow({ to: 450, headers: headers(400, 450) })).toBe(false)
    expect(await chain.addBelow({ to: 460, headers: headers(400, 460) })).toBe(false)
    expect(await chain.addBelow({ to: 452, headers: headers(420, 452) })).toBe(true)
    expect(await chain.addBelow({ to: 419, headers: headers(150, 419) })).toBe(true)
    expect(await chain.addBelow({ to: 149, headers: headers(0, 149) })).toBe(true)
    expect(await chain.range()).toEqual({ from: 0, to: 500 })
    expect(Buffer.from(await chain.read({ from: 0, count: 1000 })).equals(headers(0, 500))).toBe(true)
  })

  test('of two writers that know the same tip, one writes', async () => {
    const opened = await openStore()
    const { headers: chain } = opened.store
    await write(chain, 100, 200)
    const tip = await chain.read({ from: 200, count: 1 })
    const changes = ([1, 2] as const).map((branch) =>
      chain.replaceFrom({ height: 201, headers: headers(201, 201, branch), tip }),
    )
    expect((await Promise.all(changes)).sort()).toEqual([false, true])
    expect(await chain.replaceFrom({ height: 0, headers: headers(0, 1), tip: undefined })).toBe(false)
    expect(await chain.range()).toEqual({ from: 100, to: 201 })
  })
})
