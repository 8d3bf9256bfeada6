import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import { beefOf, FakeChain, inscriptionScript, p2pkh } from '../test/support/protocol/fake-chain.js'
import { memoryOf, withProcess } from './load.js'
import type { StreamsReady } from './streams-server.js'
import { configFor, median, SILENT, timed } from './support.js'

const CHUNKS = 1024
const CHUNK = 1024 * 1024
const ROUNDS = 3
const RANGE = 64 * 1024
const RANGES = 200
const SLOW_READERS = 32
const MiB = 2 ** 20

/**
 * A stream of 1 GiB in 1,024 chunks: the memory that it takes to serve it whole, and how fast that is against piping the
 * same bytes from a file through Express; 64 KiB at its end against 64 KiB at its start; and the memory that 32 readers
 * take who do not read.
 */
export async function* streams(): AsyncGenerator<string> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  try {
    const file = join(folder, 'file')
    const outpoint = await publish(folder, file)
    yield* withProcess('./streams-server.js', [folder, file], async function* (ready: StreamsReady, server) {
      yield* measure({ ...ready, path: `/svc/gateway/stream/${outpoint}`, server })
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function* measure(options: StreamsReady & { path: string; server: ChildProcess }) {
  const { url, bare, path, server } = options
  await read(url + path, { Range: 'bytes=0-0' })
  const idle = await memoryOf(server)
  const rates = { stream: [] as number[], file: [] as number[] }
  let most = idle
  for (let round = 0; round < ROUNDS; round++) {
    const watching = setInterval(() => void memoryOf(server).then((now) => (most = Math.max(most, now))), 100)
    rates.stream.push(await rateOf(url + path))
    clearInterval(watching)
    rates.file.push(await rateOf(`${bare}/file`))
  }
  const [ours, theirs] = [median(rates.stream), median(rates.file)]
  yield `1 GiB whole: ${ours.toFixed(0)} MiB a second, from a file ${theirs.toFixed(0)} (medians of ${ROUNDS})`
  yield `throughput ratio ${(ours / theirs).toFixed(2)} (wanted: at least 0.6); memory grew by ${((most - idle) / MiB).toFixed(0)} MiB (wanted: below 64)`

  const times = { start: [] as number[], end: [] as number[] }
  for (let asked = 0; asked < RANGES; asked++) {
    times.start.push(await timed(() => read(url + path, { Range: `bytes=0-${RANGE - 1}` })))
    times.end.push(await timed(() => read(url + path, { Range: `bytes=-${RANGE}` })))
  }
  const [start, end] = [median(times.start), median(times.end)]
  yield `64 KiB at the end ${end.toFixed(2)} ms, at the start ${start.toFixed(2)} ms: ${(end / start).toFixed(2)} times (wanted: at most 1.5)`

  const before = await memoryOf(server)
  const readers = await Promise.all(
    Array.from({ length: SLOW_READERS }, async () => (await answerOf(url + path)).pause()),
  )
  await sleep(3000)
  const during = await memoryOf(server)
  for (const reader of readers) reader.destroy()
  yield `${SLOW_READERS} readers who do not read take ${((during - before) / MiB).toFixed(0)} MiB (wanted: below 128)`
}

/** Admits the stream, and writes its bytes to a file as well. */
async function publish(folder: string, path: string): Promise<string> {
  const chain = new FakeChain()
  const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
  const file = await open(path, 'w')
  let last = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  let first: string | undefined
  for (let index = 0; index < CHUNKS; index++) {
    const body = new Uint8Array(CHUNK).map((_, at) => (at * 31 + index) % 256)
    await file.write(body)
    const contentType = index === 0 ? 'video/mp4; stream=gw' : 'gw/stream'
    const outputs = [{ satoshis: 1, lockingScript: inscriptionScript({ contentType, body }) }]
    const next = chain.spend({ inputs: [{ transaction: last, vout: 0 }], outputs })
    const beef = beefOf(next, { with: [last] })
    await node.overlay.engine.submit({ beef, topics: [TOPICS.ordinals] })
    first ??= next.outpoint(0)
    last = next
  }
  await file.close()
  await node.close()
  return first ?? ''
}

async function answerOf(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const [answer] = (await once(get(url, { headers, agent: false }), 'response')) as [IncomingMessage]
  if (answer.statusCode !== 200 && answer.statusCode !== 206) throw new Error(`answered ${answer.statusCode}`)
  return answer
}

/** How many bytes come. */
async function read(url: string, headers: Record<string, string> = {}): Promise<number> {
  let length = 0
  for await (const chunk of await answerOf(url, headers)) length += (chunk as Buffer).length
  return length
}

/** MiB a second. */
async function rateOf(url: string): Promise<number> {
  let length = 0
  const time = await timed(async () => {
    length = await read(url)
  })
  if (length !== CHUNKS * CHUNK) throw new Error(`${length} bytes came`)
  return length / MiB / (time / 1000)
}
