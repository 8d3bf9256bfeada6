import { setTimeout as sleep } from 'node:timers/promises'
import { admissionRules } from '../backend/src/graph/topic-rules.js'
import { idOf, Reader } from '../backend/src/read/reader.js'
import { storeFiles } from '../backend/src/writer/local-writer.js'
import { openWriter, type WriterPlace } from '../src/server/store/start-writer.js'
import { FakeChain, type FakeTransaction } from '../test/support/protocol/fake-chain.js'
import { batchesIn, readNetwork } from './facts-network.js'
import { LIVE_CODE_SIZE, type Spent, spent } from './support.js'

export interface Setup extends WriterPlace {
  /** Whether it writes the transactions that the sets are built on. */
  isFirst?: boolean
  /** How many nodes its sets mint below, for each letter, and how many sets there are; none if the gateway gets a network. */
  perLetter: number
  sets: number
  /** The folder of the network for its log. */
  network?: string
}

export type Kind = 'mint' | 'inscription'

/** An order to a gateway of the bench. */
export type Order =
  /** Writes transactions of a set. */
  | { kind: Kind; set: number; write: number[]; clients: number }
  /** Answers when a reader finds a transaction, on the clock that all processes of a machine share, in milliseconds. */
  | { kind: Kind; set: number; see: number }
  /** Writes the network in a folder, many transactions at a time. */
  | { fill: string }

export interface Written extends Spent {
  /** Milliseconds. */
  latencies: number[]
  /** When the last write was answered, on the same clock. */
  at: number
}

const LETTERS = Array.from('abcdefghijklmnopqrstuvwxyz')
/** How often a gateway looks for a transaction that it should see, in milliseconds. */
const LOOK = 1

/** A gateway over a log, without HTTP. All gateways make the same transactions. */
const setup = JSON.parse(process.argv[2] ?? '{}') as Setup
const { network, isFirst = false, perLetter, ...place } = setup
const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE, difficulty: 1 })
const parents = LETTERS.flatMap((first) => LETTERS.slice(0, perLetter).map((second) => first + second))
const grown = [chain.genesis, ...[...LETTERS, ...parents].map((name) => chain.mint(name))]
const sets = LETTERS.slice(0, setup.sets).map(setOf)
const deployment = network === undefined ? chain.deployment : readNetwork(network).deployment

const began = process.cpuUsage()
const beganAt = now()
const writer = await openWriter(place)
writer.deriveBy({
  rules: admissionRules({ deployment }),
  pending: { maxTransactions: 1000, maxBytes: 1e8 },
})
await writer.opened
const { user, system } = process.cpuUsage(began)
const started: Spent = { wall: now() - beganAt, cpu: (user + system) / 1000 }
if (isFirst) for (const { txid, raw } of grown) await writer.record([{ txid, raw }], { subjects: [txid] })
const reader = new Reader(storeFiles(place.folder))

process.on('message', async (order: Order) => process.send?.(await carryOut(order)))
process.once('disconnect', async () => {
  reader.close()
  await writer.close()
  process.exit()
})
process.send?.(started)

async function carryOut(order: Order): Promise<unknown> {
  if ('fill' in order) return await fill(order.fill)
  const { kind, set } = order
  const wanted = (index: number): FakeTransaction => sets[set]?.[kind][index] as FakeTransaction
  if ('see' in order) {
    const { txid } = wanted(order.see)
    while (!isThere(txid)) await sleep(LOOK)
    return now()
  }
  const left = [...order.write]
  const latencies: number[] = []
  const client = async (): Promise<void> => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) {
      const { txid, raw } = wanted(index)
      const since = now()
      const { lost } = await writer.record([{ txid, raw }], { subjects: [txid] })
      if (lost.length > 0) throw new Error('a transaction of the bench lost a conflict')
      latencies.push(now() - since)
    }
  }
  const took = await spent(() => Promise.all(Array.from({ length: order.clients }, client)))
  return { ...took, latencies, at: now() } satisfies Written
}

async function fill(folder: string): Promise<Spent & { count: number }> {
  let count = 0
  const took = await spent(async () => {
    for (const batch of batchesIn(folder)) {
      await writer.record(batch)
      count += batch.length
    }
  })
  return { ...took, count }
}

function isThere(txid: string): boolean {
  return reader.answer((sql) => idOf(sql, txid)) !== undefined
}

/** Mints below different nodes, so that none is built on another, and as many inscriptions of 4 KiB. */
function setOf(letter: string): Record<Kind, FakeTransaction[]> {
  return {
    mint: parents.map((parent) => chain.mint(parent + letter)),
    inscription: parents.map((parent) => {
      const body = Buffer.alloc(4096, `${parent}${letter} `)
      return chain.inscribe({ contentType: 'text/plain', body })
    }),
  }
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
