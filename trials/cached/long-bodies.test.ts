import { sha256 } from '../../backend/src/graph/native-hash.js'
import { CHUNK_BYTES } from '../../backend/src/graph/records.js'
import { SHORT_BODY } from '../../backend/src/read/content.js'
import { createApp } from '../../src/server/app.js'
import { beefOf, FakeChain, inscriptionScript, p2pkh } from '../../test/support/protocol/fake-chain.js'
import { listening } from '../../test/support/server/connections.js'
import {
  type Answer,
  ask,
  lastingHeaders,
  OPERATOR,
  type Question,
  SILENT,
  useServers,
} from '../../test/support/server/test-server.js'

const { start } = useServers()

/** The parts of an answer that are the same each time. */
function lasting(answer: Answer): { status: number; headers: object; body: string } {
  const { status, body } = answer
  return { status, headers: lastingHeaders(answer), body: sha256(body).toString('hex') }
}

/** Around each length up to which bodies, or parts of them, are kept in memory or in one piece. */
const LENGTHS = [SHORT_BODY, CHUNK_BYTES, 2 * CHUNK_BYTES, 4 * CHUNK_BYTES].flatMap((limit) => [
  limit - 1,
  limit,
  limit + 1,
])

test('bodies around each limit are answered as by the routes, until they are blocked', async () => {
  const { url, node, ...server } = await start({
    READS_PER_MINUTE: '0',
    ...OPERATOR,
  })
  const chain = new FakeChain()
  const bodies = LENGTHS.map((length) => Buffer.from(new Uint8Array(length).map((_, at) => at * 7 + length)))
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 100_000, lockingScript: p2pkh(0) }] })
  const outputs = bodies.map((body) => ({
    satoshis: 1,
    lockingScript: inscriptionScript({ contentType: 'text/html', body }),
  }))
  const published = chain.spend({ inputs: [{ transaction: funding, vout: 0 }], outputs })
  const beef = beefOf(published, { with: [funding] })
  await server.take(beef, ['tm_ordinals'])
  const { config, overlay, graph, store, caches } = node
  const ping = () => graph.ping()
  const routes = await listening(createApp({ config, overlay, graph: store, ping, logger: SILENT }))
  const expectSame = async (path: string, question: Question): Promise<number> => {
    const expected = lasting(await ask(routes.url, path, question))
    // Some answers are in memory only after a second request.
    for (let time = 0; time < 3; time++)
      expect({ path, question, ...lasting(await ask(url, path, question)) }).toEqual({
        ...{ path, question },
        ...expected,
      })
    return expected.status
  }
  const { bodies: found } = caches
  const hits = found.hits
  for (const [vout, body] of bodies.entries()) {
    const path = `/content/${published.outpoint(vout)}`
    const { etag = '' } = (await ask(url, path, { method: 'HEAD' })).headers
    const last = body.length - 1
    const ranges = ['0-0', `${last}-`, `-${SHORT_BODY}`, `${CHUNK_BYTES - 1}-${CHUNK_BYTES}`, `${last + 1}-`]
    const statuses = [
      await expectSame(path, {}),
      await expectSame(`${path}:-1`, { method: 'HEAD' }),
      await expectSame(path, { headers: { 'If-None-Match': etag } }),
      await expectSame(path, { headers: { 'If-Match': '"another"' } }),
      await expectSame(path, { headers: { Range: 'bytes=0-9', 'If-Range': '"another"' } }),
    ]
    expect(statuses).toEqual([200, 200, 304, 412, 200])
    for (const range of ranges) await expectSame(path, { headers: { Range: `bytes=${range}` } })
  }
  expect(found.hits - hits).toBeGreaterThan(5 * LENGTHS.length)
  for (const [vout, body] of bodies.entries()) {
    await server.block({ sha256: sha256(body).toString('hex') })
    expect(await expectSame(`/content/${published.outpoint(vout)}`, {})).toBe(451)
    expect(
      await expectSame(`/content/${published.outpoint(vout)}:0`, { headers: { Range: 'bytes=0-9' } }),
    ).toBe(451)
  }
  await routes.close()
})
