import { TOPICS } from '../backend/src/protocol/profile.js'
import { type RunningServer, startServer } from '../src/server/server.js'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, median, SILENT, timed, withFolder } from './support.js'

const ROUNDS = 30
const SPENDS = [50, 200] as const
/** Names that are mined from each node on the way; the last of them goes on. */
const NAMES_A_NODE = [...'012345678n']

/**
 * What it takes to build the proof of a name and to send it over HTTP, for each spend of a node in it: of 200 spends
 * against 50, by turns, from one store. Mints have the live covenant's size.
 */
export async function* proof(): AsyncGenerator<string> {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const times = new Map<number, number[]>(SPENDS.map((spends) => [spends, []]))
  await withFolder(async (folder) => {
    const server = await startServer({ config: configFor(chain, folder), logger: SILENT })
    await fill(server, chain)
    for (let round = 0; round < ROUNDS; round++) {
      for (const spends of SPENDS) times.get(spends)?.push(await timed(() => proofOf(server, spends)))
    }
    await server.stop()
  })
  const [few, many] = SPENDS.map((spends) => median(times.get(spends) ?? []) / spends)
  yield `mints of ${LIVE_CODE_SIZE} bytes of code, as on the live tree (version 1)`
  yield `a spend in a proof of ${SPENDS[0]}: ${few?.toFixed(3)} ms, in one of ${SPENDS[1]}: ${many?.toFixed(3)} ms (medians of ${ROUNDS})`
  yield `ratio ${((many ?? Number.NaN) / (few ?? Number.NaN)).toFixed(2)} (wanted: linear, so about 1.0)`
}

/** Mines what the proofs take: at each node all of its names, so that the way goes through it as often. */
async function fill({ node }: RunningServer, chain: FakeChain): Promise<void> {
  const names = Array.from({ length: Math.max(...SPENDS) }, (_, i) => {
    const parent = 'n'.repeat(Math.floor(i / NAMES_A_NODE.length))
    return `${parent}${NAMES_A_NODE[i % NAMES_A_NODE.length]}`
  })
  for (const mint of [chain.genesis, ...names.map((name) => chain.mint(name))]) {
    const beef = beefOf(mint)
    await node.overlay.engine.submit({ beef, topics: Object.values(TOPICS) })
  }
}

async function proofOf({ url }: RunningServer, spends: number): Promise<Uint8Array> {
  const name = 'n'.repeat(spends / NAMES_A_NODE.length)
  const response = await fetch(`${url}/svc/names/proof/${name}`)
  if (!response.ok) throw new Error(`the proof of ${name} is ${response.status}`)
  return new Uint8Array(await response.arrayBuffer())
}
