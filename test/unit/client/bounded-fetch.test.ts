import { getEventListeners, once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { text as body } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import { boundedHttpClient, type FetchOptions, fetchBounded } from '../../../src/client/bounded-fetch.js'
import { collectGarbage } from '../../support/collect-garbage.js'
import { serving } from '../../support/server/connections.js'

// One HTTP answer, read within bounds, from servers that do whatever they like.

const MAX_BYTES = 100_000
/** Longer than any answer here takes: a test that waits for it fails by its own limit. */
const NEVER = 600_000

const serverThat = async (listener: RequestListener): Promise<string> => (await serving(listener)).url

/** Writes for as long as anybody reads, and resolves with how much was written. */
async function writeEndlessly(response: ServerResponse): Promise<number> {
  let written = 0
  const chunk = Buffer.alloc(16 * 1024, ' ')
  const write = (): void => {
    do written += chunk.length
    while (response.write(chunk))
  }
  response.on('drain', write)
  write()
  return await new Promise((resolve) => response.on('close', () => resolve(written)))
}

const client = (bounds: { timeout?: number; maxBytes?: number } = {}) =>
  boundedHttpClient({ timeout: NEVER, maxBytes: MAX_BYTES, ...bounds })

describe('an HTTP client with bounds', () => {
  test('sends and reads JSON as the SDK does', async () => {
    let asked: unknown
    const url = await serverThat(async (request, response) => {
      asked = { method: request.method, key: request.headers['x-key'], body: await body(request) }
      response.writeHead(201, { 'Content-Type': 'application/json; charset=utf-8' }).end('{"height":7}')
    })
    const { signal } = new AbortController()
    const question = { method: 'POST', headers: { 'X-Key': 'k' }, data: [1, 'two'], signal }
    const answer = await client().request(url, question)
    expect(answer).toEqual({ ok: true, status: 201, statusText: 'Created', data: { height: 7 } })
    expect(asked).toEqual({ method: 'POST', key: 'k', body: '[1,"two"]' })
    // A signal may outlive thousands of requests.
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('refuses JSON that is none', async () => {
    const url = await serverThat((_, response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{'),
    )
    await expect(client().request(url, {})).rejects.toMatchObject({ name: 'SourceError', code: 'BAD_ANSWER' })
  })

  test('hangs up on an answer without end', async () => {
    let written: Promise<number> | undefined
    const url = await serverThat((_, response) => {
      written = writeEndlessly(response.writeHead(200, { 'Content-Type': 'application/json' }))
    })
    await expect(client().request(url, {})).rejects.toMatchObject({ code: 'TOO_LARGE' })
    // What was under way in the sockets' buffers is on top of what was read.
    expect(await written).toBeLessThan(MAX_BYTES + 32 * 1024 * 1024)
  })

  test('counts what an answer has after decompression', async () => {
    const sizes: number[] = []
    const url = await serverThat((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' })
      const gzip = createGzip()
      gzip.on('data', (chunk: Buffer) => void sizes.push(chunk.length))
      gzip.pipe(response)
      gzip.end(Buffer.alloc(MAX_BYTES + 1, ' '))
    })
    await expect(client().request(url, {})).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(MAX_BYTES / 100)
  })

  test('follows no redirect', async () => {
    const asked: unknown[] = []
    const inside = await serverThat((request, response) => {
      asked.push(request.url)
      response.end('secret')
    })
    const url = await serverThat((_, response) => response.writeHead(307, { Location: inside }).end())
    const asking = client().request(url, { method: 'POST', data: {} })
    await expect(asking).rejects.toMatchObject({ code: 'UNREACHABLE' })
    expect(asked).toEqual([])
  })

  test('gives a request up when its time is over, and hangs up', async () => {
    let closed: Promise<unknown> | undefined
    const url = await serverThat((_, response) => {
      closed = new Promise((resolve) => response.on('close', resolve))
      response.writeHead(200, { 'Content-Type': 'application/json' }).write('[')
    })
    await expect(client({ timeout: 50 }).request(url, {})).rejects.toMatchObject({ code: 'TIMEOUT' })
    await closed
  })

  test('gives a request up when its caller does', async () => {
    const stop = new AbortController()
    const url = await serverThat(() => stop.abort())
    const asking = client().request(url, { signal: stop.signal })
    await expect(asking).rejects.toMatchObject({ code: 'UNREACHABLE' })
  })
})

test('a fetch that ignores its signal is left when the time is over', async () => {
  const fetch: FetchOptions['fetch'] = async () => await new Promise<Response>(() => {})
  const asking = fetchBounded('http://127.0.0.1:1', {}, { timeout: 20, fetch })
  await expect(asking).rejects.toMatchObject({ code: 'TIMEOUT' })
})

test('hangs up on an answer that drips when its time is over, whatever was collected meanwhile', async () => {
  // The signal that Node's `fetch` follows is lost with the request.
  let hungUp: Promise<unknown> | undefined
  const url = await serverThat((_, response) => {
    const dripping = setInterval(() => {
      collectGarbage()
      response.write('x')
    }, 50)
    hungUp = once(response, 'close').then(() => clearInterval(dripping))
    response.flushHeaders()
  })
  await expect(fetchBounded(url, {}, { timeout: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT' })
  // Else it would drip until the test is over its time.
  await hungUp
  expect(hungUp).toBeDefined()
})
