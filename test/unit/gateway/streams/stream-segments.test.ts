import { whileReplaced } from '../../../support/gateway/faults.js'
import { streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

// A stream of more chunks than one segment has: ranges are found without a walk from the first chunk.

const servers = useServers()
const server = await servers.start()
const { graph } = server.node
const { streamOf } = streamsOn(server, new FakeChain())
const CHUNKS = 150
const bodies = Array.from({ length: CHUNKS }, (_, at) => `<${at}>`)
const full = bodies.join('')
const [origin] = await streamOf(bodies)
/** Where a chunk starts. */
const startOf = (chunk: number): number => bodies.slice(0, chunk).join('').length

test.each([
  ['complete', 0, full.length],
  ['up to the end of the first segment', 0, startOf(64)],
  ['the first byte of the second segment', startOf(64), startOf(64) + 1],
  ['the last byte of the first segment', startOf(64) - 1, startOf(64)],
  ['across the border of both', startOf(64) - 2, startOf(64) + 2],
  ['across a complete segment', startOf(63), startOf(129)],
  ['inside a chunk of the last segment', startOf(140) + 1, startOf(140) + 3],
  ['the last byte', full.length - 1, full.length],
])('%s', async (_, from, to) => {
  const headers = { Range: `bytes=${from}-${to - 1}` }
  const { status, body } = await server.ask(streamPath(origin), { headers })
  expect({ status, body: body.toString('utf8') }).toEqual({ status: 206, body: full.slice(from, to) })
})

test('every range of a few bytes is the same as of the plain text', async () => {
  for (let from = startOf(60); from < startOf(70); from += 3) {
    const headers = { Range: `bytes=${from}-${from + 6}` }
    const { body } = await server.ask(streamPath(origin), { headers })
    expect(body.toString('utf8')).toBe(full.slice(from, from + 7))
  }
})

test('a range at the end reads the chunks of the last segment alone', async () => {
  await server.ask(streamPath(origin))
  const read = graph.served.streams.chunks.bind(graph.served.streams)
  let chunks = 0
  const by: typeof graph.served.streams.chunks = async function* (query, from) {
    for await (const chunk of read(query, from)) {
      chunks++
      yield chunk
    }
  }
  const during = () => server.ask(streamPath(origin), { headers: { Range: 'bytes=-4' } })
  const { body } = await whileReplaced(graph.served.streams, 'chunks', { by, during })
  expect(body.toString('utf8')).toBe(full.slice(-4))
  expect(chunks).toBe(CHUNKS - 128)
})

test('from the middle of the stream on, segments are counted from there', async () => {
  const steps = await streamOf(bodies.slice(0, 70))
  const path = streamPath(steps[5])
  expect((await server.ask(path)).body.toString('utf8')).toBe(bodies.slice(5, 70).join(''))
  const last = await server.ask(path, { headers: { Range: 'bytes=-4' } })
  expect(last.body.toString('utf8')).toBe('<69>')
})
