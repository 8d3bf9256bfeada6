import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { chunk, lastOf, streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { FakeChain, inscriptionScript, p2pkh } from '../../../support/protocol/fake-chain.js'
import { lastingHeaders, type TestServer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start()
const { life, streamOf, goOn, submit, transferred } = streamsOn(server, chain)

const TYPE = 'video/x-test; stream=gw'
const NOT_FOUND = { status: 404, code: 'NOT_FOUND' }

/** The body and the type of the stream from a step on, which has to be there. */
async function streamed(...[step, prefix]: Parameters<typeof streamPath>): Promise<[string, string]> {
  const { status, headers, body } = await server.ask(streamPath(step, prefix))
  expect([status, headers['content-length']]).toEqual([200, String(body.length)])
  return [body.toString('utf8'), headers['content-type'] ?? '']
}

const full = await streamOf(['first, ', 'second, ', 'third'], TYPE)

describe('a stream of three chunks', () => {
  test('is their bytes in order, with the type of the first', async () => {
    const { status, headers, body } = await server.ask(streamPath(full[0]))
    expect({ status, body: body.toString('utf8') }).toEqual({ status: 200, body: 'first, second, third' })
    expect(headers).toMatchObject({
      'content-type': TYPE,
      'cache-control': 'no-cache',
      'x-outpoint': full[0]?.outpoint(0),
      'x-origin': full[0]?.outpoint(0),
      'cross-origin-resource-policy': 'cross-origin',
    })
    expect(headers['content-security-policy']).toBeUndefined()
  })

  test.each([
    [1, 'second, third'],
    [2, 'third'],
  ])('from step %d on is the rest, with the type of the first', async (step, rest) => {
    expect(await streamed(full[step])).toEqual([rest, TYPE])
    const { headers } = await server.ask(streamPath(full[step]))
    expect(headers['x-outpoint']).toBe(full[step]?.outpoint(0))
    expect(headers['x-origin']).toBe(full[0]?.outpoint(0))
  })

  test.each([
    [0, 'first, ', TYPE],
    [1, 'second, ', 'gw/stream'],
  ])('is not what content by outpoint is: step %d has its own bytes', async (step, own, type) => {
    const { headers, body } = await server.ask(`/content/${full[step]?.outpoint(0)}`)
    expect([body.toString('utf8'), headers['content-type']]).toEqual([own, type])
  })

  test('has a head as long as it is, whatever range is asked for', async () => {
    const headers = lastingHeaders(await server.ask(streamPath(full[0])))
    for (const range of ['bytes=0-1', 'bytes=900-']) {
      const head = await server.ask(streamPath(full[0]), { method: 'HEAD', headers: { Range: range } })
      expect({ status: head.status, length: head.body.length }).toEqual({ status: 200, length: 0 })
      for (const name of ['content-length', 'content-type', 'etag', 'x-outpoint', 'accept-ranges'])
        expect(head.headers[name]).toBe(headers[name])
      expect(head.headers['content-range']).toBeUndefined()
    }
  })
})

describe('a stream ends', () => {
  test('at a pure transfer, whatever comes behind it', async () => {
    const steps = await life(chunk('a', TYPE), [chunk('b'), p2pkh(2), chunk('c'), chunk('d')])
    expect(await streamed(steps[0])).toEqual(['ab', TYPE])
    expectError(await server.ask(streamPath(steps[2])), NOT_FOUND)
    // What stands before the transfer is another stream: the type of this one is not known.
    expect(await streamed(steps[4])).toEqual(['d', 'application/octet-stream'])
    expect(await streamed(steps[3])).toEqual(['cd', 'application/octet-stream'])
  })

  test('where it starts, if that is no ordinal', async () => {
    for (const type of ['text/plain', 'gw/stream']) {
      const coin = chain.inscribe({ contentType: type, body: utf8('two'), satoshis: 2 })
      await submit(coin)
      await submit(chain.move(coin, 0, chunk('one')), { with: [coin] })
      const served = type === 'gw/stream' ? 'application/octet-stream' : type
      expect(await streamed(coin)).toEqual(['two', served])
      expect((await server.ask(streamPath(coin))).headers['x-origin']).toBe(coin.outpoint(0))
    }
  })
})

describe('the type of a chunk', () => {
  test.each(['gw/stream', 'ordfs/stream'])('may be %j', async (type) => {
    const steps = await life(chunk('a', TYPE), [chunk('b', type), chunk('c')])
    expect([await streamed(steps[0]), await streamed(steps[1])]).toEqual([
      ['abc', TYPE],
      ['bc', TYPE],
    ])
  })

  test.each(['GW/STREAM', 'gw/streams', 'gw/stream; a=b', ' gw/stream', 'text/plain'])(
    'is not %j',
    async (type) => {
      const steps = await life(chunk('a', TYPE), [chunk('b', type)])
      expect(await streamed(steps[0])).toEqual(['a', TYPE])
    },
  )

  test('is none of a chunk that has none', async () => {
    const steps = await life(chunk('a', TYPE), [inscriptionScript({ body: utf8('b') })])
    expect(await streamed(steps[0])).toEqual(['a', TYPE])
  })

  test('is not that of a stream which starts with it', async () => {
    const steps = await streamOf(['a', 'b'], 'gw/stream')
    for (const [step, rest] of ['ab', 'b'].entries())
      expect(await streamed(steps[step])).toEqual([rest, 'application/octet-stream'])
  })
})

test('chunks of no bytes change nothing, wherever they stand', async () => {
  const steps = await streamOf(['', 'a', '', '', 'b', ''], TYPE)
  expect(await streamed(steps[0])).toEqual(['ab', TYPE])
  const part = await server.ask(streamPath(steps[0]), { headers: { Range: 'bytes=1-1' } })
  expect([part.status, part.body.toString('utf8')]).toEqual([206, 'b'])
})

test.each(['text/html', 'image/svg+xml', 'text/html; stream=gw'])(
  'a stream that starts as %s is sandboxed, and so is the rest of it',
  async (type) => {
    const steps = await streamOf(['<p>', 'a'], type)
    for (const step of steps) {
      const { headers } = await server.ask(streamPath(step))
      expect(headers['content-security-policy']).toMatch(/^sandbox allow-scripts/)
      expect(headers['content-type']).toBe(type)
    }
  },
)

test('a stream is no service worker', async () => {
  const headers = { 'Service-Worker': 'script' }
  expectError(await server.ask(streamPath(full[0]), { headers }), { status: 400, code: 'BAD_BODY' })
})

test.each(['', 'x', '%', 'ab'.repeat(32), `${'ab'.repeat(32)}_0:0`, `${'ab'.repeat(32)}_0/a`])(
  'there is no stream of %j',
  async (text) => {
    expectError(await server.ask(`/svc/gateway/stream/${text}`), { status: 400, code: 'BAD_OUTPOINT' })
  },
)

test('there is no stream where the store has no content', async () => {
  const elsewhere = chain.inscribe({ body: utf8('elsewhere') })
  expectError(await server.ask(streamPath(elsewhere)), NOT_FOUND)
  const moved = transferred(lastOf(full), p2pkh(3))
  await submit(moved, { with: full.slice(-1) })
  expectError(await server.ask(streamPath(moved)), NOT_FOUND)
})

describe('the entity tag of a stream', () => {
  const tagOf = async (...asked: Parameters<TestServer['ask']>) =>
    String((await server.ask(...asked)).headers.etag)

  test('is another when the stream has grown, and holds until then', async () => {
    const steps = await streamOf(['a', 'b'], TYPE)
    const path = streamPath(steps[0])
    const tag = await tagOf(path)
    const known = await server.ask(path, { headers: { 'If-None-Match': tag } })
    expect({ status: known.status, length: known.body.length }).toEqual({ status: 304, length: 0 })
    expect(known.headers).toMatchObject({ etag: tag, 'cache-control': 'no-cache' })
    const resumed = { Range: 'bytes=1-', 'If-Range': tag }
    expect((await server.ask(path, { headers: resumed })).body.toString('utf8')).toBe('b')

    await goOn(steps, [chunk('c')])
    expect(await tagOf(path)).not.toBe(tag)
    expect((await server.ask(path, { headers: { 'If-None-Match': tag } })).body.toString('utf8')).toBe('abc')
    const again = await server.ask(path, { headers: resumed })
    expect({ status: again.status, body: again.body.toString('utf8') }).toEqual({ status: 200, body: 'abc' })
  })

  test('stays when the ordinal goes on without a chunk', async () => {
    const steps = await streamOf(['a', 'b'], TYPE)
    const tag = await tagOf(streamPath(steps[0]))
    await goOn(steps, [p2pkh(5), chunk('c')])
    expect(await tagOf(streamPath(steps[0]))).toBe(tag)
  })
})
