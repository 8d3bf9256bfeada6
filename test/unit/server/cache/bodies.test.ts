import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { CHUNK_BYTES } from '../../../../backend/src/graph/records.js'
import { FactStore } from '../../../../backend/src/read/fact-store.js'
import { Reader } from '../../../../backend/src/read/reader.js'
import type { Writer } from '../../../../backend/src/writer/writer.js'
import { Bodies } from '../../../../src/server/cache/bodies.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { FactFiles } from '../../../support/storage/fact-files.js'

let reads = 0
beforeEach(() => {
  reads = 0
})

/** Reads a chunk of a body that consists of a number of bytes, which is its hash here. */
function read(bodies: Bodies, length: number, position = 0): void {
  bodies.chunk(String(length), position, () => {
    reads++
    const left = length - position * CHUNK_BYTES
    return left < 0 ? undefined : new Uint8Array(Math.min(left, CHUNK_BYTES))
  })
}

test.each([
  ['a short body is kept once it was read', 65_536, 0, [1, 1, 1]],
  ['a chunk of a longer one once it was read again', 65_537, 0, [1, 2, 2]],
  ['so is a chunk that is the whole body', CHUNK_BYTES, 0, [1, 2, 2]],
  ['so is the last chunk of a mebibyte', 4 * CHUNK_BYTES, 3, [1, 2, 2]],
  ['and a short one at its end', CHUNK_BYTES + 1, 1, [1, 2, 2]],
  ['what comes after a mebibyte is not kept', 4 * CHUNK_BYTES + 1, 4, [1, 2, 3]],
  ['nor is what is not there', 5, 1, [1, 2, 3]],
])('%s', (_, length, position, expected) => {
  const bodies = new Bodies(1024 * CHUNK_BYTES)
  const counts = expected.map(() => {
    read(bodies, length, position)
    return reads
  })
  expect(counts).toEqual(expected)
})

test('what was used last stays, as far as there is room', () => {
  const bodies = new Bodies(2 * CHUNK_BYTES)
  const twice = (length: number): void => {
    for (let time = 0; time < 2; time++) read(bodies, length)
  }
  const isInMemory = (length: number): boolean => {
    const before = reads
    read(bodies, length)
    return reads === before
  }
  for (const length of [1, 2, 3]) twice(length * CHUNK_BYTES)
  expect([3, 2, 1].map((length) => isInMemory(length * CHUNK_BYTES))).toEqual([true, true, false])
})

test.each([0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 4 * CHUNK_BYTES - 1, 4 * CHUNK_BYTES, 5 * CHUNK_BYTES + 7])(
  'any range of a body of %d bytes has its bytes, from memory as well',
  (length) => {
    const chain = new FakeChain()
    const files = new FactFiles(chain.deployment)
    const body = new Uint8Array(length).map((_, at) => at + (at >> 8) + (at >> 16))
    files.add(chain.inscribe({ contentType: 'a/b', body }))
    const reader = new Reader(files)
    const { content } = new FactStore({
      reader,
      writer: {} as Writer,
      bodies: new Bodies(1024 * CHUNK_BYTES),
    })
    const borders = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 5, 4 * CHUNK_BYTES, length]
    const hash = sha256(body).toString('hex')
    for (const from of borders)
      for (const size of [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1, Number.POSITIVE_INFINITY]) {
        const found = Buffer.concat([...content.chunks(hash, { from, length: size })])
        expect(found.equals(body.subarray(from, from + size))).toBe(true)
      }
    reader.close()
    files.close()
  },
)
