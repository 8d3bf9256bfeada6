import { concatBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { NAME_CHARACTERS } from '../backend/src/protocol/mine-node.js'
import { startServer } from '../src/server/server.js'
import { recordOf } from '../test/support/protocol/block.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { serveForgetful } from './forgetful.js'
import { answerCpuTime, processFolder } from './process-folder.js'
import { configFor, SILENT } from './support.js'

/** Sent to the loading process: our server, and what to request from it. */
export interface PagesReady {
  url: string
  /** The same server over the same store, without caches. */
  forgetful: string
  /** All names. */
  names: string[]
  /** Nodes with the most children. */
  nodes: string[]
  /** An ordinal that has moved a thousand times. */
  old: string
  /** A transaction with many outputs. */
  txid: string
}

const NAMES = Number(process.env.NAMES ?? 14_000)
const INSCRIPTIONS = Number(process.env.INSCRIPTIONS ?? 20_000)
const STEPS = 1000
/** How many transactions are written at once, and how many inscriptions each has. */
const A_WRITE = 50
const A_TRANSACTION = 20

/** The process that the bench of pages loads: our server over a tree of the live size, and inscriptions. */
const folder = processFolder()

const chain = new FakeChain()
const config = configFor(chain, folder)
const server = await startServer({ config, logger: SILENT })
const { graph } = server.node

let waiting: FakeTransaction[] = []
async function admit(transaction: FakeTransaction): Promise<void> {
  waiting.push(transaction)
  if (waiting.length === A_WRITE) await write()
}

async function write(): Promise<void> {
  await graph.record(waiting.map((each) => recordOf(each, each.height)))
  waiting = []
}

const names: string[] = []

/** Names of one character, then of two, and so on: nodes have as many children as they can. */
async function mintAll(): Promise<void> {
  await admit(chain.genesis)
  let left = NAMES
  for (let shorter = ['']; left > 0; ) {
    const longer: string[] = []
    for (const prefix of shorter)
      for (const character of NAME_CHARACTERS) {
        if (left-- <= 0) return
        names.push(prefix + character)
        await admit(chain.mint(prefix + character))
        longer.push(prefix + character)
      }
    shorter = longer
  }
}

async function inscribeAll(): Promise<FakeTransaction> {
  const parent = chain.madeUpCoin()
  for (let made = 0; ; ) {
    const outputs = Array.from({ length: A_TRANSACTION }, () => {
      const number = made++
      const lockingScript = concatBytes(
        inscriptionScript({
          contentType: number % 2 ? 'text/plain' : 'image/png',
          body: utf8(`inscription ${number}`),
          ...(number % 100 === 0 && { parent }),
          lock: p2pkh(number % 50),
        }),
        mapTail({ collection: String(number % 10) }),
      )
      return { satoshis: 1, lockingScript }
    })
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: A_TRANSACTION, lockingScript: p2pkh(0) }] })
    const transaction = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
    await admit(coin)
    await admit(transaction)
    if (made >= INSCRIPTIONS) return transaction
  }
}

async function passOn(): Promise<FakeTransaction> {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('old') })
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  const origin = chain.move(coin, 0, lockingScript)
  let tip = origin
  await admit(coin)
  await admit(tip)
  for (let step = 1; step <= STEPS; step++) {
    const outputs = [{ satoshis: 1, lockingScript: p2pkh(1000) }]
    tip = chain.spend({ inputs: [{ transaction: tip, vout: 0 }], outputs })
    await admit(tip)
  }
  return origin
}

await mintAll()
const old = await passOn()
const last = await inscribeAll()
await write()

answerCpuTime()
process.send?.({
  url: server.url,
  forgetful: await serveForgetful(server, config),
  names,
  nodes: [...NAME_CHARACTERS].slice(0, 10),
  old: old.outpoint(0),
  txid: last.txid,
} satisfies PagesReady)
