import fc from 'fast-check'
import { testRanges } from '../../../support/gateway/range-vectors.js'
import { cut, streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { bytes } from '../../../support/protocol/arbitraries.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const server = await servers.start()
const { streamOf } = streamsOn(server, new FakeChain())

/** So many chunks of one length, and a last one. */
const even = (size: number, length: number): number[] => {
  const step = Math.max(size, Math.ceil(length / 12))
  return Array.from({ length: Math.floor(length / step) }, () => step)
}

/** How long the chunks of a body are, by where they end against the ranges of the vectors. */
const CHUNKINGS: [name: string, lengths: (length: number) => number[]][] = [
  ['end inside ranges', (length) => even(7, length)],
  ['end beside ranges', (length) => [1, 5, Math.max(length - 16, 0), 0, 9]],
]

describe.each(CHUNKINGS)('a stream whose chunks %s answers as the vectors say', (_, lengths) => {
  testRanges({
    server,
    serve: async (body) => {
      const [first] = await streamOf(cut(body, lengths(body.length)))
      const path = streamPath(first)
      const { headers } = await server.ask(path, { method: 'HEAD' })
      return { path, hash: String(headers.etag).slice(1, -1) }
    },
    cacheControl: 'no-cache',
  })
})

test('any range of any stream, from any of its chunks on, is that slice of its bytes', async () => {
  const range = fc.oneof(
    fc.record({ from: fc.nat(150), to: fc.option(fc.nat(400), { nil: undefined }) }),
    fc.record({ suffix: fc.nat(150) }),
  )
  const chunks = fc.array(bytes(40), { minLength: 1, maxLength: 7 })
  const asked = fc.array(fc.record({ start: fc.nat(6), range }), { minLength: 1, maxLength: 6 })
  const property = fc.asyncProperty(chunks, asked, async (bodies, questions) => {
    const steps = await streamOf(bodies)
    for (const { start, range } of questions) {
      const at = start % bodies.length
      const full = Buffer.concat(bodies.slice(at))
      const { length } = full
      const [from, to] =
        'suffix' in range
          ? [Math.max(length - range.suffix, 0), range.suffix === 0 ? 0 : length]
          : [range.from, Math.min((range.to ?? length) + 1, length)]
      const text = 'suffix' in range ? `-${range.suffix}` : `${range.from}-${range.to ?? ''}`
      const { status, headers, body } = await server.ask(streamPath(steps[at]), {
        headers: { Range: `bytes=${text}` },
      })
      if ('to' in range && range.to !== undefined && range.to < range.from) {
        expect({ status, body }).toEqual({ status: 200, body: full })
      } else if (length === 0) {
        expect({ status, body }).toEqual({ status: 200, body: full })
      } else if (from >= to) {
        expect([status, headers['content-range']]).toEqual([416, `bytes */${length}`])
      } else {
        expect({ status, body }).toEqual({ status: 206, body: full.subarray(from, to) })
        expect(headers['content-range']).toBe(`bytes ${from}-${to - 1}/${length}`)
      }
    }
  })
  await fc.assert(property, { numRuns: 40, endOnFailure: true })
})
