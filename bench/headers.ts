import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { nativeHash256 } from '../backend/src/graph/native-hash.js'
import { TimeSlice } from '../backend/src/graph/yield-to-event-loop.js'
import { HEADER_BYTES, headerAt, headerCount } from '../backend/src/protocol/block-header.js'
import { joinBytes } from '../backend/src/protocol/bytes.js'
import { monotonic } from '../backend/src/protocol/monotonic.js'
import { type HeaderSource, HeaderChain as VerifiedChain } from '../src/chain/headers/header-chain.js'
import { readConfig } from '../src/server/config/config.js'
import { openFacts } from '../src/server/store/open-facts.js'
import { admissionOptions } from '../src/server/writer/admission-options.js'
import { HeaderChain } from '../test/support/server/header-chain.js'
import { median, type Spent, spent } from './support.js'

const HEADERS = 100_000
/** As many as are fetched and written at once. */
const PAGE = 10_000
const FIRST = 800_000
const LOOKUPS = 1000
const TURNS = 5

/**
 * Verifying 100,000 headers by the rules of consensus and storing them on SQLite; and then what checking a proof costs beside
 * its hashes: the verdict about a block, of blocks anywhere in the chain, and of the last day's.
 */
export async function* headers(): AsyncGenerator<string> {
  const chain = new HeaderChain(FIRST)
  chain.grow(HEADERS)
  const roots = new Map<number, string>()
  const blocks: Uint8Array[] = []
  for (const { header } of chain.branch.blocks()) {
    blocks.push(header.bytes)
    roots.set(header.height, header.root)
  }
  const all = joinBytes(blocks.reverse())
  const hashing = await spent(async () => {
    for (let index = 0; index < headerCount(all); index++) nativeHash256(headerAt(all, index))
  })
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  const config = readConfig({ DATA_DIR: folder })
  const {
    graph: store,
    deriveBy,
    close,
  } = await openFacts(config, { onReorg: () => {}, logger: pino({ level: 'silent' }) })
  try {
    await deriveBy(admissionOptions(config), config)
    const { hash = '' } = chain.branch.block(FIRST)?.header ?? {}
    const open = (): VerifiedChain =>
      new VerifiedChain({
        ...{ store: store.headers, checkpoint: { height: FIRST, hash, work: 0n, minimumWork: 0n } },
        ...{ network: 'main', page: PAGE, turn: 60_000, now: Date.now, clock: monotonic },
        ...{ hash: nativeHash256, slice: () => new TimeSlice() },
      })
    const source: HeaderSource = {
      name: 'a source',
      headers: async ({ from, count }) =>
        all.subarray((from - FIRST) * HEADER_BYTES, (from - FIRST + count) * HEADER_BYTES),
    }
    const stored = open()
    const took = await spent(async () => {
      await stored.begin(source)
      await stored.follow(source)
    })
    const share = hashing.cpu / took.cpu
    yield `${HEADERS} headers verified and stored in ${seconds(took)} (wanted: below 10 s); ${(share * 100).toFixed(0)} % of the processor's time is hashing`

    const again = open()
    const opening = await spent(() => again.load())
    yield `opened again in ${seconds(opening)}`
    const times: Record<'read' | 'read again', Spent[]> = { read: [], 'read again': [] }
    for (let turn = 0; turn < TURNS; turn++) {
      const opened = open()
      await opened.load()
      const lookUp = async (): Promise<void> => {
        for (let at = 0; at < LOOKUPS; at++) {
          // Each in another row of the store.
          const height = FIRST + ((at * 7919) % LOOKUPS) * 100
          if ((await opened.verdict({ height, root: roots.get(height) ?? '' })) !== 'yes')
            throw new Error(`the block at ${height} is not confirmed`)
        }
      }
      times.read.push(await spent(lookUp))
      times['read again'].push(await spent(lookUp))
    }
    for (const [what, taken] of Object.entries(times)) {
      const [wall, cpu] = (['wall', 'cpu'] as const).map((clock) =>
        (median(taken.map((each) => each[clock])) / LOOKUPS).toFixed(4),
      )
      yield `a proof, its block ${what}: ${wall} ms beside its hashes, processor ${cpu} ms (wanted: below 0.1 ms)`
    }
  } finally {
    await close()
    await rm(folder, { recursive: true })
  }
}

function seconds({ wall, cpu }: Spent): string {
  return `${(wall / 1000).toFixed(2)} s, processor ${(cpu / 1000).toFixed(2)} s`
}
