import { TOPICS, termsOf } from '../backend/src/protocol/profile.js'
import { PROFILES } from '../src/client/index.js'
import { HttpNameSource } from '../src/client/name-source.js'
import { type ResolvedName, resolveName } from '../src/client/resolve.js'
import { covenantCode } from '../src/mining/covenant.js'
import { startServer } from '../src/server/server.js'
import { FakeHeaders } from '../test/support/client/name-proofs.js'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, median, SILENT, timed, withFolder } from './support.js'

const ROUNDS = 15
const NAME = 'nnnnn'
/** Names that are mined from each node on the way, the last of which goes on. */
const NAMES_A_NODE = [...'012345678n']

/**
 * What it takes to resolve and verify a name of five characters over HTTP, with 50 mints between it and the genesis, of the
 * size of the live covenant and of our version 2: bytes and requests, and the time, by turns with a `fetch` of the same proof.
 */
export async function* resolving(): AsyncGenerator<string> {
  const ours = covenantCode(termsOf(PROFILES.local, { covenantVersion: 2 })).length
  for (const [what, codeSize] of [
    ['live', LIVE_CODE_SIZE],
    ['version 2', ours],
  ] as const)
    yield* await withFolder((folder) => measure(folder, { what, codeSize }))
}

async function measure(
  folder: string,
  { what, codeSize }: { what: string; codeSize: number },
): Promise<string[]> {
  const chain = new FakeChain({ codeSize })
  const names = Array.from(NAME, (_, depth) => NAMES_A_NODE.map((each) => NAME.slice(0, depth) + each))
  const transactions = [chain.genesis, ...names.flat().map((name) => chain.mint(name))]
  const server = await startServer({ config: configFor(chain, folder), logger: SILENT })
  try {
    for (const transaction of transactions) {
      const beef = beefOf(transaction)
      await server.node.overlay.engine.submit({ beef, topics: Object.values(TOPICS) })
    }
    const [bytes, times, plain]: [number[], number[], number[]] = [[], [], []]
    const headers = new FakeHeaders(transactions)
    let requests = 0
    for (let round = 0; round < ROUNDS; round++) {
      const counter = countingFetch()
      const source = new HttpNameSource({ url: server.url, fetch: counter.fetch })
      const check = { name: NAME, deployment: chain.deployment, chainTracker: headers, sources: [source] }
      const resolve = async (): Promise<ResolvedName> => await resolveName(check)
      times.push(await timed(resolve))
      plain.push(
        await timed(async () => await (await fetch(`${server.url}/svc/names/proof/${NAME}`)).arrayBuffer()),
      )
      bytes.push(counter.bytes)
      requests = counter.requests
    }
    const [time, fetched] = [median(times), median(plain)]
    return [
      `${what} size, ${transactions.length - 1} mints: ${(median(bytes) / 1000).toFixed(0)} KB in ${requests} requests`,
      `resolved and verified in ${time.toFixed(1)} ms, of which a fetch of the proof is ${fetched.toFixed(1)} ms (medians of ${ROUNDS})`,
    ]
  } finally {
    await server.stop()
  }
}

/** `fetch` that counts requests, and the bytes of their bodies. */
function countingFetch(): { fetch: typeof fetch; bytes: number; requests: number } {
  const counter = {
    bytes: 0,
    requests: 0,
    fetch: async (...request: Parameters<typeof fetch>): Promise<Response> => {
      const response = await fetch(...request)
      const body = await response.arrayBuffer()
      counter.requests++
      counter.bytes += body.byteLength
      return new Response(body, response)
    },
  }
  return counter
}
