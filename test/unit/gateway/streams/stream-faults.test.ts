import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import type { StreamChunk } from '../../../../backend/src/graph/stream.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import type { Content } from '../../../../backend/src/read/content.js'
import type { Streams } from '../../../../backend/src/read/streams.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'
import { loseChunks } from '../../../support/storage/changed-files.js'

const servers = useServers()

const server = await servers.start()
const { graph } = server.node
const { streamOf } = streamsOn(server, new FakeChain())

const BROKEN = /aborted|hang up|ECONNRESET/
const CHUNK = 512 * 1024
const CHUNKS = 64
const LENGTH = CHUNK * CHUNKS

// One body in every chunk: it is stored once, and the stream is as long as if they were many.
const [large] = await streamOf(Array.from({ length: CHUNKS }, () => new Uint8Array(CHUNK).fill(7)))

const whileChunksAre = <Result>(by: Streams['chunks'], during: () => Promise<Result>): Promise<Result> =>
  whileReplaced(graph.served.streams, 'chunks', { by: by as typeof graph.served.streams.chunks, during })

/** Counts what is read of chunks and of their bodies while something is done. */
async function watched(during: (counts: Counts) => Promise<void>): Promise<Counts> {
  const counts: Counts = { chunks: 0, walks: 0, bodies: 0, bytes: 0 }
  const read = { bodies: graph.served.content.chunks, chunks: graph.served.streams.chunks }
  const bodyChunks: Content['chunks'] = function* (hash, range) {
    counts.bodies++
    try {
      for (const chunk of read.bodies.call(graph.served.content, hash, range)) {
        counts.bytes += chunk.length
        yield chunk
      }
    } finally {
      counts.bodies--
    }
  }
  const chunks: Streams['chunks'] = async function* (query, from) {
    counts.walks++
    try {
      for await (const chunk of read.chunks.call(graph.served.streams, query, from)) {
        counts.chunks++
        yield chunk
      }
    } finally {
      counts.walks--
    }
  }
  await whileReplaced(graph.served.content, 'chunks', {
    by: bodyChunks as typeof read.bodies,
    during: () => whileChunksAre(chunks, () => during(counts)),
  })
  return counts
}

/** What was read, and how many readings of it are under way. */
interface Counts {
  chunks: number
  walks: number
  bodies: number
  bytes: number
}

async function answering(path: string): Promise<IncomingMessage> {
  const { hostname, port } = new URL(server.url)
  const sent = request({ hostname, port, path, agent: false })
  // It reports the connection that the test itself ends.
  sent.on('error', () => undefined)
  const [response] = await once(sent.end(), 'response')
  response.on('error', () => undefined)
  return response
}

describe('a reader', () => {
  test('that is slow is waited for, and then gets all of it', async () => {
    await watched(async (counts) => {
      const response = await answering(streamPath(large))
      await once(response, 'readable')
      let before = -1
      while (before !== counts.bytes) {
        before = counts.bytes
        await loopTurns()
      }
      // What the connection itself takes is no business of ours; behind that, one chunk of one body is under way.
      expect(counts.bytes).toBeLessThan(LENGTH / 2)
      expect({ walks: counts.walks, bodies: counts.bodies }).toEqual({ walks: 1, bodies: 1 })
      let received = 0
      for await (const chunk of response) received += chunk.length
      expect(received).toBe(LENGTH)
      await until(() => counts.walks === 0)
      expect(counts).toEqual({ walks: 0, bodies: 0, bytes: LENGTH, chunks: CHUNKS })
    })
  })

  test('of a few bytes reads no body but theirs', async () => {
    const headers = { Range: `bytes=${CHUNK * 40 - 3}-${CHUNK * 40 + 2}` }
    const counts = await watched(async (counts) => {
      const { body } = await server.ask(streamPath(large), { headers })
      expect(body).toEqual(Buffer.alloc(6, 7))
      await until(() => counts.walks === 0)
    })
    expect(counts).toEqual({ walks: 0, bodies: 0, bytes: 6, chunks: 64 })
  })
})

describe('a chunk that cannot be read', () => {
  const bodies = [1, 2, 3].map((fill) => new Uint8Array(300_000).fill(fill))
  const steps = streamOf(bodies)
  const asked = async (range: string, from = 0) =>
    await server.ask(streamPath((await steps)[from]), { headers: { Range: range }, agent: false })

  beforeAll(async () => {
    await steps
    expect(loseChunks(server.dataDir, bodies[1] ?? new Uint8Array())).toBe(2)
  })

  test.each(['bytes=0-', 'bytes=0-300000', 'bytes=299999-600000', 'bytes=-900000'])(
    'breaks the connection where %s comes to it, once the head is out',
    async (range) => {
      await expect(asked(range)).rejects.toThrow(BROKEN)
    },
  )

  test.each(['bytes=300000-300000', 'bytes=300001-'])('is our fault where %s starts in it', async (range) => {
    expectError(await asked(range), { status: 503, code: 'DAMAGED' })
  })

  test('is our fault where the stream is asked for from it on', async () => {
    expectError(await asked('', 1), { status: 503, code: 'DAMAGED' })
  })

  test('keeps nobody from the others', async () => {
    expect((await asked('bytes=0-299999')).body.equals(bodies[0] ?? new Uint8Array())).toBe(true)
    expect((await asked('bytes=600000-')).body.equals(bodies[2] ?? new Uint8Array())).toBe(true)
    expect((await asked('', 2)).body.equals(bodies[2] ?? new Uint8Array())).toBe(true)
  })
})

describe('a stream that changes between its head and its body', () => {
  const texts = ['first', 'other', 'third']
  const [first, other, third] = texts.map(
    (body, vout): StreamChunk => ({
      outpoint: { txid: 'ab'.repeat(32), vout },
      sha256: sha256(utf8(body)).toString('hex'),
      length: body.length,
    }),
  )
  /** The stream of the first and the third text, while its chunks are read as others. */
  async function readAs(
    chunks: (StreamChunk | undefined)[],
    { range = '', times = Number.POSITIVE_INFINITY }: { range?: string; times?: number } = {},
  ) {
    const [origin] = await streamOf(['first', 'third'])
    await streamOf(['other'])
    const streamChunks = graph.served.streams.chunks.bind(graph.served.streams)
    let read = 0
    const by: Streams['chunks'] = async function* (query, from) {
      if (read++ < times) yield* chunks.filter((chunk) => chunk !== undefined)
      else yield* streamChunks(query, from)
    }
    return await whileChunksAre(by, () => server.ask(streamPath(origin), { headers: { Range: range } }))
  }

  test.each([
    ['another chunk', [first, other]],
    ['a chunk less', [first]],
    ['its chunks in another order', [third, first]],
  ])('to one with %s starts again, as a run of chunks is checked before it is sent', async (_, chunks) => {
    const { status, headers, body } = await readAs(chunks, { times: 4 })
    expect({ status, body: body.toString('utf8') }).toEqual({ status: 200, body: 'firstthird' })
    expect(headers['content-range']).toBeUndefined()
  })

  test('again and again may be asked for another time', async () => {
    expectError(await readAs([first, other]), { status: 503, code: 'NOT_READY' })
  })

  test('in a later run of chunks breaks the connection, once the head is out', async () => {
    const [origin] = await streamOf(Array.from({ length: 66 }, () => 'first'))
    const by: Streams['chunks'] = async function* () {
      yield* [...Array.from({ length: 65 }, () => first), other].filter((each) => each !== undefined)
    }
    await expect(whileChunksAre(by, () => server.ask(streamPath(origin), { agent: false }))).rejects.toThrow(
      BROKEN,
    )
  })

  test.each([
    ['another chunk', [first, other]],
    ['a chunk less', [first]],
    ['no chunk', []],
  ])('to one with %s starts again for a range too', async (_, chunks) => {
    const { status, headers, body } = await readAs(chunks, { range: 'bytes=5-9', times: 1 })
    expect({ status, body: body.toString('utf8') }).toEqual({ status: 206, body: 'third' })
    expect(headers['content-range']).toBe('bytes 5-9/10')
  })

  test('to one that goes on is sent as it was', async () => {
    const { body } = await readAs([first, third, other])
    expect(body.toString('utf8')).toBe('firstthird')
  })
})
