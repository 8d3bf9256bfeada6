import { randomBytes } from 'node:crypto'
import { concatBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { startServer } from '../src/server/server.js'
import {
  beefOf,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { serveForgetful } from './forgetful.js'
import { answerCpuTime, processFolder } from './process-folder.js'
import { chainOfNames, configFor, SILENT } from './support.js'

/** Sent to the loading process: the URL of our server, and paths on it. */
export interface GatewayReady {
  url: string
  /** Our server without its caches. */
  forgetful: string
  /** Files of 4 KiB, each in its own transaction. */
  files: string[]
  /** The outpoints of ordinals with different numbers of steps. */
  young: string
  middle: string
  flat: string
  names: string[]
  /** By their sizes in KiB. */
  bodies: Record<(typeof SIZES)[number], string>
}

const SIZES = [100, 1024, 10_240] as const

/** The process that the benches of the gateway load: our server over ordinals, files and directories. */
const folder = processFolder()

const chain = new FakeChain()
const config = configFor(chain, folder)
const server = await startServer({ config, logger: SILENT })

async function submit(transaction: FakeTransaction, parent: FakeTransaction): Promise<FakeTransaction> {
  const beef = beefOf(transaction, { with: [parent] })
  await server.node.overlay.engine.submit({ beef, topics: [TOPICS.ordinals] })
  return transaction
}

async function inscribed(outputs: FakeOutput[]): Promise<FakeTransaction> {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 100_000, lockingScript: p2pkh(0) }] })
  return await submit(chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs }), coin)
}

function fileOf(index: number, contentType = 'text/plain'): FakeOutput {
  const body = utf8(`${index} `.repeat(4096).slice(0, 4096))
  return { satoshis: 1, lockingScript: inscriptionScript({ contentType, body }) }
}

/** An ordinal with 4 KiB of content, and new MAP at every third step. */
async function lived(steps: number): Promise<string> {
  let tip = await inscribed([fileOf(-steps)])
  const origin = tip.outpoint(0)
  for (let step = 1; step <= steps; step++) {
    const said = concatBytes(p2pkh(2), mapTail({ level: String(step), [`badge ${step % 10}`]: String(step) }))
    const lockingScript = step % 3 === 0 ? said : p2pkh(2)
    const next = chain.move(tip, 0, lockingScript)
    tip = await submit(next, tip)
  }
  return origin
}

function directory(entries: Record<string, string>): FakeOutput {
  const body = utf8(JSON.stringify(entries))
  return { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'ord-fs/json', body }) }
}

const files: string[] = []
for (let index = 0; index < 100; index++) files.push((await inscribed([fileOf(index)])).outpoint(0))
const flat = await inscribed([directory({ 'a.txt': '_1' }), fileOf(-1)])

const names = chainOfNames(50)
const mints = [chain.genesis, ...names.map((name) => chain.mint(name))]
for (const mint of mints)
  await server.node.overlay.engine.submit({ beef: beefOf(mint), topics: [TOPICS.names, TOPICS.ordinals] })

async function sized(kib: number): Promise<string> {
  const lockingScript = inscriptionScript({ contentType: 'image/png', body: randomBytes(kib * 1024) })
  return (await inscribed([{ satoshis: 1, lockingScript }])).outpoint(0)
}

const ready: GatewayReady = {
  url: server.url,
  files,
  forgetful: await serveForgetful(server, config),
  young: await lived(10),
  middle: await lived(1000),
  flat: `${flat.outpoint(0)}/a.txt`,
  names,
  bodies: { 100: await sized(100), 1024: await sized(1024), 10240: await sized(10_240) },
}
answerCpuTime()
process.send?.(ready)
