import { CHUNK_BYTES, type ContentReader } from '../../../../backend/src/graph/graph-store.js'
import { Bodies } from '../../../../src/server/cache/bodies.js'

/** Bodies that consist of a number of bytes, which is their hash. */
class Counted implements ContentReader {
  reads = 0

  chunk(sha256: string, position: number): Uint8Array | undefined {
    this.reads++
    const from = position * CHUNK_BYTES
    const length = Number(sha256)
    if (from >= length && from + length > 0) return undefined
    return Uint8Array.from({ length: Math.min(length - from, CHUNK_BYTES) }, (_, at) => byteAt(from + at))
  }

  *chunks(sha256: string, range = { from: 0, length: Number.POSITIVE_INFINITY }) {
    this.reads++
    const length = Math.max(Math.min(Number(sha256) - range.from, range.length), 0)
    yield Uint8Array.from({ length }, (_, at) => byteAt(range.from + at))
  }
}

const byteAt = (at: number): number => (at + (at >> 8) + (at >> 16)) & 255

let content: Counted
const bodies = (maxBytes = 1024 * CHUNK_BYTES) => new Bodies(maxBytes).of(content)
beforeEach(() => {
  content = new Counted()
})

test.each([
  ['a short body is kept once it was read', 65_536, 0, [1, 1, 1]],
  ['a chunk of a longer one once it was read again', 65_537, 0, [1, 2, 2]],
  ['so is a chunk that is the whole body', CHUNK_BYTES, 0, [1, 2, 2]],
  ['so is the last chunk of a mebibyte', 4 * CHUNK_BYTES, 3, [1, 2, 2]],
  ['and a short one at its end', CHUNK_BYTES + 1, 1, [1, 2, 2]],
  ['what comes after a mebibyte is not kept', 4 * CHUNK_BYTES + 1, 4, [1, 2, 3]],
  ['nor is what is not there', 5, 1, [1, 2, 3]],
])('%s', (_, length, position, reads) => {
  const store = bodies()
  const counts = reads.map(() => {
    store.chunk(String(length), position)
    return content.reads
  })
  expect(counts).toEqual(reads)
})

test('what was used last stays, as far as there is room', () => {
  const store = bodies(2 * CHUNK_BYTES)
  const twice = (length: number): void => {
    for (let time = 0; time < 2; time++) store.chunk(String(length), 0)
  }
  const isInMemory = (length: number): boolean => {
    const { reads } = content
    store.chunk(String(length), 0)
    return content.reads === reads
  }
  for (const length of [1, 2, 3]) twice(length * CHUNK_BYTES)
  expect([3, 2, 1].map((length) => isInMemory(length * CHUNK_BYTES))).toEqual([true, true, false])
})

test.each([0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 4 * CHUNK_BYTES - 1, 4 * CHUNK_BYTES, 5 * CHUNK_BYTES + 7])(
  'any range of a body of %d bytes has its bytes, from memory as well',
  async (length) => {
    const store = bodies()
    const borders = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 5, 4 * CHUNK_BYTES, length]
    for (const from of borders)
      for (const size of [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1, Number.POSITIVE_INFINITY]) {
        const parts: Uint8Array[] = []
        for (const part of store.chunks(String(length), { from, length: size })) parts.push(part)
        const end = Math.min(from + size, length)
        const expected = Uint8Array.from({ length: Math.max(end - from, 0) }, (_, at) => byteAt(from + at))
        expect(Buffer.concat(parts).equals(expected)).toBe(true)
      }
  },
)
