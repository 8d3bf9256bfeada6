import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import type { OutlineSource } from '../../../../backend/src/graph/stored-transaction.js'
import type { Content } from '../../../../backend/src/read/content.js'
import { keptLog, whileReplaced } from '../../../support/gateway/faults.js'
import { publisher, text } from '../../../support/gateway/site.js'
import { lastOf, streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

const servers = useServers()
const { logger, records } = keptLog()
const server = await servers.start({}, { logger })
const chain = new FakeChain()
const published = publisher({ server, chain })
const { graph } = server.node

const LENGTH = 16 * 1024 * 1024
const large = await published({ contentType: 'application/x-large', body: new Uint8Array(LENGTH) })
const small = await published(text('small'))
/** A page of the store's and more. */
const steps = await streamsOn(server, chain).streamOf(Array.from({ length: 15 }, (_, at) => `${at} `))

/** Reads on as the store does, once it may, and counts what is read. */
function watchedReads() {
  const contentChunks = graph.served.content.chunks.bind(graph.served.content)
  const counts = { begun: 0, ended: 0, bytes: 0 }
  const by: Content['chunks'] = function* (sha256, range) {
    counts.begun++
    try {
      for (const chunk of contentChunks(sha256, range)) {
        counts.bytes += chunk.length
        yield chunk
      }
    } finally {
      counts.ended++
    }
  }
  return { counts, by: by as typeof graph.served.content.chunks }
}

function asked(path: string): ClientRequest {
  const { hostname, port } = new URL(server.url)
  const sent = request({ hostname, port, path, agent: false })
  // It reports the connection that the test itself ends.
  sent.on('error', () => undefined)
  return sent.end()
}

async function expectAnswers(): Promise<void> {
  expect((await server.ask(`/content/${large.outpoint(0)}`)).body).toHaveLength(LENGTH)
  expect((await server.ask(`/content/${small.outpoint(0)}`)).body.toString('utf8')).toBe('small')
  expect(records).toEqual([])
}

describe('readers that leave', () => {
  const READERS = 8

  test('in the middle of a large body stop its reading, and are no error', async () => {
    const { counts, by } = watchedReads()
    const leave = async (): Promise<void> => {
      const [response] = await once(asked(`/content/${large.outpoint(0)}`), 'response')
      response.on('error', () => undefined)
      await once(response, 'data')
      response.destroy()
    }
    const during = async (): Promise<void> => {
      await Promise.all(Array.from({ length: READERS }, leave))
      await until(() => counts.ended === READERS)
    }
    await whileReplaced(graph.served.content, 'chunks', { by, during })
    expect(counts.bytes).toBeLessThan(READERS * LENGTH)
    await expectAnswers()
  })

  /** Readers that leave before the store may read, and that it ends all the same. */
  async function left(path: string, counts: { begun: number; ended: number }, read: () => void) {
    const requests = Array.from({ length: READERS }, () => asked(path))
    await until(() => counts.begun === READERS)
    for (const each of requests) each.destroy()
    // Until the server has seen that they are gone.
    await loopTurns()
    read()
    await until(() => counts.ended === READERS)
  }

  test('before the first byte of a provenance stop what is read for it', async () => {
    let read = (): void => undefined
    const mayRead = new Promise<void>((resolve) => (read = resolve))
    const counts = { begun: 0, ended: 0 }
    const transaction = graph.transactions.raw.bind(graph.transactions)
    let isHeld = true
    const by: OutlineSource['raw'] = (txid) => {
      counts.begun++
      if (!isHeld) return transaction(txid)
      return mayRead.then(() => {
        counts.ended++
        return transaction(txid)
      })
    }
    const path = `/svc/gateway/provenance/${lastOf(steps).outpoint(0)}`
    const during = async (): Promise<void> => {
      await left(path, counts, () => read())
      isHeld = false
      await loopTurns()
      // Each reader's read that was under way, of one for each step.
      expect(counts.begun).toBe(READERS)
      const { status } = await server.ask(path)
      expect({ status, read: counts.begun - READERS >= steps.length }).toEqual({ status: 200, read: true })
    }
    await whileReplaced(graph.transactions, 'raw', { by, during })
    await expectAnswers()
  })

  test('before the first byte of a stream stop the summing up of its chunks', async () => {
    const stream = graph.served.streams.summary.bind(graph.served.streams)
    const counts = { begun: 0, ended: 0 }
    let read = (): void => undefined
    const mayRead = new Promise<void>((resolve) => (read = resolve))
    const ends: unknown[] = []
    const by: typeof stream = async (query) => {
      counts.begun++
      await mayRead
      try {
        return await stream(query)
      } catch (error) {
        ends.push(error)
        throw error
      } finally {
        counts.ended++
      }
    }
    await whileReplaced(graph.served.streams, 'summary', {
      by,
      during: () => left(streamPath(steps[0]), counts, () => read()),
    })
    expect(ends).toEqual(new Array(READERS).fill(expect.objectContaining({ name: 'ReaderLeftError' })))
    const { body } = await server.ask(streamPath(steps[0]))
    expect(body.toString('utf8')).toBe(Array.from({ length: 15 }, (_, at) => `${at} `).join(''))
    await expectAnswers()
  })
})
