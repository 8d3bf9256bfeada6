import { setImmediate } from 'node:timers/promises'
import { vi } from 'vitest'
import { readBeef } from '../../../../backend/src/graph/read-beef.js'
import type { RawTransaction } from '../../../../backend/src/graph/stored-transaction.js'
import { readOutline, storedOutput } from '../../../../backend/src/graph/stored-transaction.js'
import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { FactStore } from '../../../../backend/src/read/fact-store.js'
import { Names } from '../../../../backend/src/read/names.js'
import { Reader } from '../../../../backend/src/read/reader.js'
import type { Writer } from '../../../../backend/src/writer/writer.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { directory, publisher } from '../../../support/gateway/site.js'
import { livesOn } from '../../../support/graph/lives.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'
import { FactFiles } from '../../../support/storage/fact-files.js'

// What reads may cost, whatever strangers have submitted: counted in chunks, turns of the event loop and requests.

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start(treeOf(chain.deployment))
const KiB = 1024

/** Counts the turns of the event loop that others have while something is under way. */
async function turnsDuring<Result>(work: Promise<Result>): Promise<{ result: Result; turns: number }> {
  let isOver = false
  let turns = 0
  const over = (): void => {
    isOver = true
  }
  work.then(over, over)
  while (!isOver) {
    await setImmediate()
    turns++
  }
  return { result: await work, turns }
}

/** An ordinal that was passed on and on, written past the topics. */
async function lifeOf(host: TestServer, steps: number): Promise<FakeTransaction> {
  const script = inscriptionScript({ contentType: 'text/plain', body: utf8(`${steps} steps`) })
  const coin = chain.spend({ outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
  const { life } = livesOn(host, chain)
  const [origin] = await life(script, [])
  let last = origin ?? coin
  const records: { txid: string; raw: Uint8Array }[] = []
  for (let step = 0; step < steps; step++) {
    const next = chain.move(last, 0, p2pkh(1))
    records.push({ txid: next.txid, raw: next.raw })
    last = next
  }
  await host.node.graph.record(records)
  return last
}

describe('a large transaction', () => {
  const padding = (length: number) => concatBytes(Uint8Array.of(0x6a), new Uint8Array(length))
  const large = chain.spend({
    outputs: [
      p2pkh(1),
      ...[3000, 200, 3000].map((length) => ({ satoshis: 0, lockingScript: padding(length * KiB) })),
      p2pkh(2),
    ],
  })

  /** The transaction in a store, and how many of its chunks are read. */
  async function stored() {
    const files = new FactFiles(chain.deployment)
    files.add(large)
    const reader = new Reader(files)
    for (const each of [files, reader]) onTestFinished(() => each.close())
    const store = new FactStore({ reader, writer: {} as Writer })
    const counts = { chunks: 0 }
    const counting = {
      get: () => Promise.reject(new Error('it is not to be read whole')),
      raw(txid: string): RawTransaction | undefined {
        const raw = store.transactions.raw(txid)
        return (
          raw && {
            ...raw,
            *chunks(from?: number) {
              for (const chunk of raw.chunks(from)) {
                counts.chunks++
                yield chunk
              }
            },
          }
        )
      },
    }
    return { counting, counts, store }
  }

  test('is looked at without the chunks that hold nothing but scripts', async () => {
    const { counting, counts } = await stored()
    const { inputs, outputs } = large.transaction
    expect(await readOutline(large.txid, counting)).toEqual({
      txid: large.txid,
      length: large.raw.length,
      inputs: inputs.map(({ txid, vout }) => ({ txid, vout })),
      outputValues: outputs.map(({ satoshis }) => satoshis),
    })
    expect(counts.chunks).toBeLessThan(5)
    expect(await readOutline('00'.repeat(32), counting)).toBeUndefined()
  })

  test('shows one of its scripts, unless that is long or takes too much to find', async () => {
    const { counting, counts } = await stored()
    const scriptAt = (vout: number, limits: { longest: number; chunks: number }) =>
      storedOutput({ txid: large.txid, vout }, counting, limits)?.lockingScript
    const limits = { longest: 64 * KiB, chunks: 16 }
    for (const vout of [0, 4])
      expect(Uint8Array.from((await scriptAt(vout, limits)) ?? [])).toEqual(
        large.transaction.outputs[vout]?.lockingScript,
      )
    expect(await scriptAt(2, limits)).toBeUndefined()
    expect(await scriptAt(2, { ...limits, longest: 1000 * KiB })).toHaveLength(200 * KiB + 1)
    expect(await scriptAt(4, { ...limits, chunks: 2 })).toBeUndefined()
    expect(await scriptAt(5, limits)).toBeUndefined()
    expect(counts.chunks).toBeLessThan(20)
  })

  test('is not read for a peer’s question about something that is not offered', async () => {
    const { graph } = server.node
    const [known] = await livesOn(server, chain).life('known', [])
    const { txid } = known ?? large
    let read = 0
    const answer = await whileReplaced(graph.transactions, 'get', {
      by: () => {
        read++
        return Promise.resolve(undefined)
      },
      during: () =>
        server.ask('/requestForeignGASPNode', posted({ graphID: `${txid}.7`, txid, outputIndex: 7 })),
    })
    expect({ status: answer.status, read }).toEqual({ status: 404, read: 0 })
  })
})

describe('a long life', () => {
  test('is shown while others have their turns, and no more than two are put together at once', async () => {
    const tip = await lifeOf(server, 1500)
    const { graph } = server.node
    const held = graph.transactions.raw.bind(graph.transactions)
    const ASKING = 6
    let begun = 0
    let reading = 0
    let most = 0
    const path = `/svc/gateway/provenance/${tip.outpoint(0)}`
    const { result, turns } = await turnsDuring(
      whileReplaced(graph.transactions, 'raw', {
        async by(txid) {
          reading++
          // Each is short for its first 200 reads, and waits for nobody; by then two have gone far beyond.
          if (++begun > ASKING * 200 + 2 * 1000) most = Math.max(most, reading)
          await setImmediate()
          reading--
          return await held(txid)
        },
        // Without bodies: those are read as fast as each client takes them.
        during: () => Promise.all(Array.from({ length: ASKING }, () => server.ask(path, { method: 'HEAD' }))),
      }),
    )
    expect(result.map(({ status }) => status)).toEqual(Array(ASKING).fill(200))
    expect(new Set(result.map(({ headers }) => headers.etag)).size).toBe(1)
    expect(begun).toBeGreaterThan(ASKING * 1500)
    expect(most).toBe(2)
    expect(turns).toBeGreaterThan(1500)
  })

  test('counts for as many reads as it has hundreds of transactions', async () => {
    const host = await servers.start({
      ...treeOf(chain.deployment),
      TRUST_PROXY: '1',
      READS_PER_MINUTE: '100',
    })
    const tip = await lifeOf(host, 520)
    const question = { headers: { 'X-Forwarded-For': '192.0.2.1' } }
    const left = async (path: string): Promise<number> => {
      const { headers } = await host.ask(path, question)
      return Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1])
    }
    const before = await left('/svc/names')
    await left(`/svc/gateway/provenance/${tip.outpoint(0)}`)
    // One for each request, and five for five hundred transactions.
    expect(await left('/svc/names')).toBe(before - 2 - 5)
  })
})

describe('a page of a lookup', () => {
  const marker = 'text/x-page'

  test('ends before the output that would exceed the bound, says so, and can be gone on from', async () => {
    const host = await servers.start(treeOf(chain.deployment), { limits: { maxPageBytes: 4096 } })
    const { life } = livesOn(host, chain)
    const outpoints = new Set<string>()
    for (let body = 0; body < 7; body++) {
      const script = inscriptionScript({ contentType: marker, body: new Uint8Array(1500).fill(body) })
      const [each] = await life(script, [])
      outpoints.add(each?.outpoint(0) ?? '')
    }
    const found: string[] = []
    const sizes: number[] = []
    for (let after: string | undefined; ; after = found.at(-1)) {
      const query = { contentType: marker, ...(after !== undefined && { after }) }
      const { json } = await host.ask('/lookup', posted({ service: 'ls_ordinals', query }))
      const { outputs, truncated } = json as {
        outputs: { beef: number[]; outputIndex: number }[]
        truncated?: true
      }
      if (outputs.length === 0) break
      sizes.push(outputs.length)
      expect(truncated).toBe(found.length + outputs.length < outpoints.size ? true : undefined)
      for (const { beef, outputIndex } of outputs)
        found.push(`${readBeef(Uint8Array.from(beef)).subject.txid}_${outputIndex}`)
    }
    expect([new Set(found), found.length, Math.max(...sizes)]).toEqual([outpoints, 7, 2])
    const query = { service: 'ls_ordinals', query: { contentType: marker } }
    const aggregated = await host.ask('/lookup', posted(query, { 'X-Aggregation': 'yes' }))
    expect(aggregated.body[0]).toBe(sizes[0])
    // Beside transactions and paths, it has a list of the outputs.
    expect(aggregated.body.length).toBeLessThan(4096 + 200)
  })

  test('has one output at least, however long that is', async () => {
    const host = await servers.start(treeOf(chain.deployment), { limits: { maxPageBytes: 1024 } })
    const { life } = livesOn(host, chain)
    const long = inscriptionScript({ contentType: 'text/x-long', body: new Uint8Array(3000) })
    for (const script of [long, long]) await life(script, [])
    const query = { contentType: 'text/x-long' }
    const { json } = await host.ask('/lookup', posted({ service: 'ls_ordinals', query }))
    expect(json).toMatchObject({ outputs: [{ outputIndex: 0 }], truncated: true })
  })

  test('of origins goes on in the order asked, and takes no more outputs than clients do', async () => {
    const tree = new FakeChain()
    const host = await servers.start(treeOf(tree.deployment))
    const names = ['a', 'b', 'c', 'd']
    const mints = names.map((name) => tree.mint(name))
    for (const each of [tree.genesis, ...mints]) await host.take(beefOf(each))
    const asked = mints.map((mint) => mint.outpoint(2)).reverse()
    const unknown = `${'ab'.repeat(32)}_2`
    const page = async (query: object): Promise<{ status: number; outpoints: string[] }> => {
      const { status, json } = await host.ask('/lookup', posted({ service: 'ls_names', query }))
      const { outputs = [] } = json as { outputs?: { beef: number[]; outputIndex: number }[] }
      const outpoints = outputs.map(
        ({ beef, outputIndex }) => `${readBeef(Uint8Array.from(beef)).subject.txid}_${outputIndex}`,
      )
      return { status, outpoints }
    }
    expect((await page({ origins: [asked[0], unknown, ...asked.slice(1), asked[0]] })).outpoints).toEqual(
      asked,
    )
    expect(
      (await page({ origins: [asked[0], unknown, ...asked.slice(1)], after: asked[1] })).outpoints,
    ).toEqual(asked.slice(2))
    expect((await page({ origins: asked, after: asked.at(-1) })).outpoints).toEqual([])
    expect((await page({ origins: asked, after: unknown })).status).toBe(400)
    // As if each output of a mint were a name.
    vi.spyOn(Names.prototype, 'genuineOrigins').mockImplementation((outpoints) =>
      outpoints.map((outpoint) => ({ name: 'a', outpoint })),
    )
    const many = Array.from({ length: 300 }, (_, vout) => `${mints[0]?.txid}_${vout}`)
    expect((await page({ origins: many })).outpoints).toEqual(many.slice(0, 256))
    vi.restoreAllMocks()
  })
})

describe('long directories', () => {
  const MAP = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [at.toString(36), '']))
  const published = publisher({ server, chain })

  test('are read in slices, once for many that ask at the same time, and never by one JSON.parse', async () => {
    const site = await published(directory({ ...MAP, a: '_1' }), directory({ 'x.txt': '_0' }))
    const contentChunks = vi.spyOn(server.node.graph.served.content, 'chunks')
    const parse = vi.spyOn(JSON, 'parse')
    const path = `/content/${site.outpoint(0)}/a/none`
    const { result, turns } = await turnsDuring(
      Promise.all(Array.from({ length: 5 }, () => server.ask(path))),
    )
    expect(result.map(({ status }) => status)).toEqual(Array(5).fill(404))
    expect(turns).toBeGreaterThan(5)
    expect(Math.max(0, ...parse.mock.calls.map(([text]) => text.length))).toBeLessThan(1000)
    // The long one and the short one.
    expect(contentChunks).toHaveBeenCalledTimes(2)
    vi.restoreAllMocks()
  })

  test('of a path have a bound together, before they are read', async () => {
    const host = await servers.start({ MAX_DIRECTORY_BYTES: '2000' })
    const publish = publisher({ server: host, chain })
    const pad = 'x'.repeat(1500)
    const site = await publish(
      ...['_1', '_2', '_3'].map((next) => directory({ a: next, pad })),
      directory({ a: '_0' }),
    )
    const below = async (path: string) => await host.ask(`/content/${site.outpoint(0)}${path}`)
    expect([(await below('/a')).status, (await below('/a/a')).status]).toEqual([200, 200])
    const contentChunks = vi.spyOn(host.node.graph.served.content, 'chunks')
    const { status, json } = await below('/a/a/a')
    expect({ status, json }).toMatchObject({ status: 404, json: { error: expect.stringContaining('4000') } })
    expect(contentChunks).not.toHaveBeenCalled()
    vi.restoreAllMocks()
  })
})
