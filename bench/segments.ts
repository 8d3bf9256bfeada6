import { join } from 'node:path'
import { FileSegmentStore } from '../src/client/file-segment-store.js'
import { HttpNameSource } from '../src/client/name-source.js'
import { resolveName } from '../src/client/resolve.js'
import { MemorySegmentStore } from '../src/client/segment-store.js'
import { Segments } from '../src/client/segments.js'
import { startServer } from '../src/server/server.js'
import { FakeHeaders } from '../test/support/client/name-proofs.js'
import { beefOf, FakeChain, type FakeTransaction } from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, median, SILENT, timed, withFolder } from './support.js'

/** The length of our own covenant of version 2, with the terms of a local network, in bytes (docs/covenant.md). */
const OWN_CODE_SIZE = 456
const NAME = 'pqrst'
/** How many names were mined from each node on the way before the next character of the name: fewer further down. */
const BEFORE = [18, 18, 10, 5, 2]
const OTHERS = [...'abcdefghijklmno0123456789']
/** The length of the names in a checkpoint. */
const CHECKPOINT = 2
const TURNS = 15
const MANY = 1000

/**
 * Bytes, requests and time to resolve and verify a name of five characters: with nothing known; from a checkpoint, a store that
 * knows the tree down to names of two characters; and once more. Time is without the network: answers are replayed.
 */
export async function* segments(): AsyncGenerator<string> {
  for (const [tree, codeSize, most] of [
    ['live', LIVE_CODE_SIZE, 400_000],
    ['version 2', OWN_CODE_SIZE, 60_000],
  ] as const) {
    const names = [...wayTo(NAME)]
    yield* await withTree({ codeSize, names }, async (resolver) => await lines(resolver, { tree, most }))
  }
  yield await withTree({ codeSize: OWN_CODE_SIZE, names: manyNames() }, many)
}

async function lines(resolver: Resolver, { tree, most }: { tree: string; most: number }): Promise<string[]> {
  const checkpoint = async (segments: Segments): Promise<void> =>
    void (await resolver.resolve(NAME.slice(0, CHECKPOINT), segments))
  const nothing = async (): Promise<void> => undefined
  const everything = async (segments: Segments): Promise<void> =>
    void (await resolver.resolve(NAME, segments))
  const rows = [
    ['first', nothing, ''],
    ['from a checkpoint', checkpoint, ` (wanted: below ${most / 1000} KB)`],
    ['repeated', everything, ' (wanted: below 1 ms, and the record alone)'],
  ] as const
  const found: string[] = []
  for (const [what, prepare, wanted] of rows) {
    const { bytes, requests, milliseconds } = await resolver.measure(prepare)
    found.push(
      `${tree} covenant, ${what}: ${(bytes / 1000).toFixed(1)} KB in ${requests} requests, ${milliseconds.toFixed(2)} ms${wanted}`,
    )
  }
  const inFiles = await withFolder(async (folder) => {
    await everything(new Segments({ store: new FileSegmentStore({ folder: join(folder, 'segments') }) }))
    const times: number[] = []
    for (let turn = 0; turn < TURNS; turn++)
      times.push(
        await timed(() =>
          everything(new Segments({ store: new FileSegmentStore({ folder: join(folder, 'segments') }) })),
        ),
      )
    return median(times)
  })
  return [...found, `${tree} covenant, repeated, with the files read again: ${inFiles.toFixed(2)} ms`]
}

async function many(resolver: Resolver): Promise<string> {
  const segments = new Segments({ store: new MemorySegmentStore() })
  resolver.forget()
  const took = await timed(async () => {
    for (const name of manyNames()) await resolver.resolve(name, segments)
  })
  const { bytes, requests } = resolver
  const alone = `${(bytes / MANY / 1000).toFixed(2)} KB and ${(requests / MANY).toFixed(2)} requests each`
  return `${MANY} names under one prefix: ${alone}, ${(took / MANY).toFixed(2)} ms each with the network`
}

/** Names to mine, the last one with others before it at each node. */
function* wayTo(name: string): Generator<string> {
  for (const [at, count] of BEFORE.entries()) {
    const prefix = name.slice(0, at)
    for (const other of OTHERS.slice(0, count)) yield prefix + other
    yield prefix + name.charAt(at)
  }
}

function manyNames(): string[] {
  const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789-']
  const names = ['p', ...letters.map((each) => `p${each}`)]
  for (const one of letters) names.push(...letters.map((other) => `p${one}${other}`))
  return names.slice(0, MANY)
}

/** Resolves names of one server, and counts its answers. */
class Resolver {
  bytes = 0
  requests = 0
  private isReplaying = false
  private readonly answers = new Map<string, { type: string; body: ArrayBuffer }>()

  constructor(
    private readonly url: string,
    private readonly chain: FakeChain,
    private readonly headers: FakeHeaders,
  ) {}

  forget(): void {
    this.bytes = 0
    this.requests = 0
  }

  async resolve(name: string, segments: Segments): Promise<void> {
    const { chain, headers: chainTracker } = this
    const sources = [new HttpNameSource({ url: this.url, fetch: this.fetch })]
    const question = { name, deployment: chain.deployment, chainTracker, sources, segments }
    const { proven } = await resolveName(question)
    if (!proven) throw new Error(`${name} is not proven`)
  }

  /** Measures the resolution of the name after a preparation. */
  async measure(prepare: (segments: Segments) => Promise<void>) {
    const times: number[] = []
    for (let turn = 0; turn <= TURNS; turn++) {
      const segments = new Segments({ store: new MemorySegmentStore() })
      await prepare(segments)
      this.forget()
      // The first turn uses the network, and is not timed.
      this.isReplaying = turn > 0
      const took = await timed(() => this.resolve(NAME, segments))
      if (turn > 0) times.push(took)
      this.isReplaying = false
    }
    return { bytes: this.bytes, requests: this.requests, milliseconds: median(times) }
  }

  private readonly fetch: typeof fetch = async (input, init) => {
    const url = String(input)
    const replayed = this.isReplaying ? this.answers.get(url) : undefined
    const answered = replayed === undefined ? await fetch(url, init) : undefined
    const answer = replayed ?? {
      type: answered?.headers.get('content-type') ?? '',
      body: (await answered?.arrayBuffer()) ?? new ArrayBuffer(0),
    }
    this.answers.set(url, answer)
    this.bytes += answer.body.byteLength
    this.requests++
    return new Response(answer.body, {
      status: answered?.status ?? 200,
      headers: { 'content-type': answer.type },
    })
  }
}

async function withTree<Result>(
  { codeSize, names }: { codeSize: number; names: string[] },
  run: (resolver: Resolver) => Promise<Result>,
): Promise<Result> {
  const chain = new FakeChain({ codeSize })
  return await withFolder(async (folder) => {
    const config = configFor(chain, folder, { READS_PER_MINUTE: '0' })
    const server = await startServer({ config, logger: SILENT })
    const mints: FakeTransaction[] = [chain.genesis, ...names.map((name) => chain.mint(name))]
    for (const mint of mints)
      await server.node.overlay.engine.submit({ beef: beefOf(mint), topics: ['tm_names', 'tm_ordinals'] })
    const result = await run(new Resolver(server.url, chain, new FakeHeaders(mints)))
    await server.stop()
    return result
  })
}
