import { parseOutpoint } from '../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../backend/src/protocol/profile.js'
import { createVerifiedFetch } from '../src/client/verified-fetch.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { withProcess } from './load.js'
import { median, timed } from './support.js'
import type { VerifiedReady } from './verified-fetch-server.js'

const FILES = 300
/** In which code is compiled. */
const WARM = 100

/** 4 KiB by `verifiedFetch` with `fetch` of the same file from the same server, by turns and each file once. */
export async function* verifiedFetches(): AsyncGenerator<string> {
  yield* withProcess('./verified-fetch-server.js', [String(FILES)], compare)
}

async function* compare({ url, genesis, name, files }: VerifiedReady): AsyncGenerator<string> {
  const { difficulty, marker } = new FakeChain().deployment
  const nameMarker = Buffer.from(marker).toString('ascii')
  const deployment = deploymentOf(PROFILES.local, { genesis: parseOutpoint(genesis), difficulty, nameMarker })
  // A look into a table of headers takes no time.
  const chainTracker = { isValidRootForHeight: async () => true }
  const options = { gateways: [url], profile: 'local', chainTracker, cacheBytes: 4 * 1024 * 1024 } as const
  const fetcher = (tipMaxAge?: number) =>
    createVerifiedFetch({
      ...options,
      ...(deployment && { deployment }),
      ...(tipMaxAge !== undefined && { tipMaxAge }),
    })
  const byOutpoint = fetcher()
  const byName = fetcher(3_600_000)
  const byTip = fetcher(0)
  const times: Record<'plain' | 'outpoint' | 'name' | 'tip', number[]> = {
    plain: [],
    outpoint: [],
    name: [],
    tip: [],
  }
  const read = async (answer: Promise<Response>): Promise<void> => {
    const { length } = new Uint8Array(await (await answer).arrayBuffer())
    if (length !== 4096) throw new Error(`a file of ${length} bytes`)
  }
  for (const [index, outpoint] of files.entries()) {
    times.plain.push(await timed(() => read(fetch(`${url}/content/${outpoint}`))))
    times.outpoint.push(await timed(() => read(byOutpoint(outpoint))))
    times.name.push(await timed(() => read(byName(`${name}/${index}`))))
    times.tip.push(await timed(() => read(byTip(`${name}/${index}`))))
  }
  const shown = (way: keyof typeof times): string => `${median(times[way].slice(WARM)).toFixed(2)} ms`
  const ratio = (way: keyof typeof times): string =>
    `${shown(way)}, ${(median(times[way].slice(WARM)) / median(times.plain.slice(WARM))).toFixed(2)} times as long`
  yield `fetch of 4 KiB: ${shown('plain')}`
  yield `verifiedFetch by outpoint: ${ratio('outpoint')}`
  yield `by a path of a name whose tip is known: ${ratio('name')}`
  yield `by a path of a name, its tip and proofs asked for each time: ${ratio('tip')}`
}
