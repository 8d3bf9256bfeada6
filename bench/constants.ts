import { randomBytes } from 'node:crypto'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import type { BareReady, Likeness } from './bare-server.js'
import type { GatewayReady } from './gateway-server.js'
import { type Round, roundsByTurns, type Target, withProcess } from './load.js'
import { chainOfNames, configFor, LIVE_CODE_SIZE, median, SILENT, sizeOf, withFolder } from './support.js'

/** How many transactions of each kind are measured, after as many for warming up. */
const COUNT = 200
/** Rounds of requests: processor time needs only a few. */
const ROUNDS = 7

/** The figures behind `docs/operating.md`, as rows of its table. */
export async function* constants(): AsyncGenerator<string> {
  yield* await withFolder(admissions)
  yield* requests()
}

/** Disk space and processor time of each proven transaction of a kind, on SQLite. */
async function admissions(folder: string): Promise<string[]> {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
  const topics = Object.values(TOPICS)
  const submit = (beef: Uint8Array) => node.overlay.engine.submit({ beef, topics })
  await submit(beefOf(chain.genesis))
  const lines: string[] = []
  for (const [kind, beefs] of Object.entries(kindsOf(chain))) {
    for (const beef of beefs.slice(0, COUNT)) await submit(beef)
    const [size, cpu] = [sizeOf(folder), process.cpuUsage()]
    for (const beef of beefs.slice(COUNT)) await submit(beef)
    const { user, system } = process.cpuUsage(cpu)
    const bytes = (sizeOf(folder) - size) / COUNT
    const each = (user + system) / 1000 / COUNT
    lines.push(`${kind}: ${bytes.toFixed(0)} bytes on disk, ${each.toFixed(1)} ms of CPU to admit`)
  }
  await node.close()
  return lines
}

/** Submissions, 2 × {@link COUNT} of each kind. */
function kindsOf(chain: FakeChain): Record<string, Uint8Array[]> {
  const numbers = Array.from({ length: 2 * COUNT }, (_, number) => number)
  const purse = chain.spend({
    inputs: [],
    outputs: numbers.map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK })),
  })
  const inscribed = numbers.map((vout) => {
    const lockingScript = inscriptionScript({ contentType: 'image/png', body: randomBytes(4096) })
    const inputs = [{ transaction: purse, vout }]
    return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
  })
  let tip = inscribed[0] as FakeTransaction
  const steps = numbers.map(() => {
    const inputs = [{ transaction: tip, vout: 0 }]
    tip = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript: p2pkh(2) }] })
    return tip
  })
  const minted = new Map([[chain.genesis.txid, chain.genesis]])
  const mints = chainOfNames(2 * COUNT).map((name) => {
    const mint = chain.mint(name)
    const parent = minted.get(mint.transaction.inputs[0]?.txid ?? '')
    minted.set(mint.txid, mint)
    return beefOf(mint, { with: parent ? [parent] : [] })
  })
  return {
    'a name': mints,
    'an inscription of 4 KiB': inscribed.map((each) => beefOf(each, { with: [purse] })),
    'a step of a transfer chain': steps.map((each) => beefOf(each)),
  }
}

/** Processor time per request, by kind, next to that of a bare server which sends the same 4 KiB. */
async function* requests(): AsyncGenerator<string> {
  yield* withProcess('./gateway-server.js', [], async function* (ready: GatewayReady, server) {
    const { url, forgetful, files, flat, bodies, names } = ready
    const of = (origin: string, path: (file: string) => string): Target => ({
      ...{ origin, server },
      paths: files.map(path),
    })
    const likeness: Likeness = { url: `${url}/content/${files[0]}`, headers: undefined }
    yield* withProcess('./bare-server.js', [JSON.stringify(likeness)], ([bare]: BareReady, bareServer) =>
      costsOf({
        '4 KiB by node:http alone': { origin: bare?.node ?? '', server: bareServer, paths: ['/'] },
        '4 KiB by outpoint': of(url, (file) => `/content/${file}`),
        '4 KiB at the tip': of(url, (file) => `/content/${file}:-1`),
        'a file in a directory': { origin: url, server, paths: [`/content/${flat}`] },
        '100 KiB by outpoint': {
          origin: url,
          server,
          paths: [`/content/${bodies[100]}`],
          length: 100 * 1024,
        },
        metadata: of(url, (file) => `/svc/gateway/metadata/${file}:-1`),
        origin: { origin: url, server, paths: names.map((name) => `/svc/names/origin/${name}`) },
        mine: { origin: url, server, paths: names.map((name) => `/svc/names/mine/${name}zz`) },
        '4 KiB by outpoint, from the store': of(forgetful, (file) => `/content/${file}`),
        '4 KiB at the tip, from the store': of(forgetful, (file) => `/content/${file}:-1`),
        '1 MiB by outpoint, from the store': {
          ...{ origin: forgetful, server, length: 1024 * 1024 },
          paths: [`/content/${bodies[1024]}`],
        },
      }),
    )
  })
}

async function* costsOf(targets: Record<string, Target>): AsyncGenerator<string> {
  const results = await roundsByTurns(targets, ROUNDS)
  for (const [name, rounds] of Object.entries<Round[]>(results)) {
    const cpu = median(rounds.map((round) => round.cpu))
    yield `${name}: ${cpu.toFixed(0)} µs of CPU a request, ${(1e6 / cpu).toFixed(0)} requests a second per core`
  }
}
