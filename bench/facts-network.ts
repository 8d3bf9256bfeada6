import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { TransactionRecord } from '../backend/src/graph/records.js'
import { joinBytes } from '../backend/src/protocol/bytes.js'
import type { Deployment } from '../backend/src/protocol/mint.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { HeaderChain } from '../test/support/server/header-chain.js'
import { inFolder, LIVE_CODE_SIZE } from './support.js'

/** What to read in a network, by outpoint (`<txid>_<vout>`) or name. */
export interface NetworkIndex {
  deployment: Deployment
  count: number
  /** The height of the first header. */
  firstHeight: number
  batches: number
  names: string[]
  /** An ordinal that has moved more than ten thousand times in a network of 60,000 transactions. */
  long: string
  /** Ordinals that have moved a few times. */
  moved: string[]
  inscriptions: string[]
  /** 10 MiB in one output. */
  large: string
  /** A stream of {@link STREAM_CHUNKS} chunks of {@link STREAM_CHUNK} bytes. */
  stream: string
}

/** The size of a network. `BENCH_NETWORK` names a folder that keeps the network, and what is made of it, for the next run. */
export const TRANSACTIONS = Number(process.env.BENCH_TRANSACTIONS ?? 90_000)

export const LARGE_BYTES = 10 * 1024 * 1024
export const STREAM_CHUNKS = 200
export const STREAM_CHUNK = 100 * 1024

const A_BLOCK = 50
const A_BATCH = 500
const A_PURSE = 100
const INDEX = 'network.bin'
const HEADERS = 'headers.bin'

const WORDS = 4000
const ORDINALS = 200
const CONTENT_TYPES = ['text/plain', 'image/png', 'text/html', 'application/json', 'image/svg+xml']

/** One kind of transaction, and its share of 88. */
type Kind = readonly [weight: number, next: () => void]

/**
 * A mixed network, always the same: mints of the live size, names that move, inscriptions of 1 to 8 KiB, 200 ordinals that move,
 * one ordinal with a long life, and a stream, mined in blocks of fifty. It is written to a folder, so that stores in several
 * processes get the same facts.
 */
export class MixedNetwork {
  private readonly chain = new FakeChain({ codeSize: LIVE_CODE_SIZE, difficulty: 1 })
  private readonly headers = new HeaderChain()
  private readonly headerBytes = [this.headers.bestTip.bytes]
  private readonly random = seeded(12_345)
  private readonly words = Array.from({ length: WORDS }, () => Math.floor(this.random() * 1e9).toString(36))
  private readonly upcoming: string[]
  private readonly index: NetworkIndex
  private waiting: FakeTransaction[] = []
  private batch: TransactionRecord[] = []
  private written = 0
  private purse: FakeTransaction | undefined
  private paid = A_PURSE
  private inscribed = 0
  private moves = 0
  private longLife: FakeTransaction | undefined
  private steps = 0
  private lastChunk: FakeTransaction | undefined
  private readonly claims: { coin: { transaction: FakeTransaction; vout: number }; left: number }[] = []
  private readonly ordinals: { tip: FakeTransaction; steps: number }[] = []

  constructor(
    private readonly folder: string,
    private readonly size: number,
  ) {
    this.upcoming = this.namesFor(size)
    this.index = {
      ...{
        deployment: this.chain.deployment,
        count: 0,
        firstHeight: this.headers.bestTip.height,
        batches: 0,
      },
      ...{ names: [], moved: [], inscriptions: [], long: '', large: '', stream: '' },
    }
  }

  write(): NetworkIndex {
    const { index } = this
    this.add(this.chain.genesis)
    index.large = this.inscribe({ body: this.noise(LARGE_BYTES), contentType: 'image/png' }).outpoint(0)
    for (let chunk = 0; chunk < STREAM_CHUNKS; chunk++) {
      const { outpoint } = this.nextChunk(this.noise(STREAM_CHUNK))
      if (chunk === 0) index.stream = outpoint(0)
    }
    const kinds: Kind[] = [
      [14, () => this.mint()],
      [9, () => this.moveName()],
      [25, () => this.inscribeSome()],
      [20, () => this.moveOrdinal()],
      [20, () => this.live()],
    ]
    const whole = kinds.reduce((sum, [weight]) => sum + weight, 0)
    const due = kinds.map(() => 0)
    while (this.written + this.batch.length + this.waiting.length < this.size) {
      for (const [kind, [weight]] of kinds.entries()) due[kind] = (due[kind] ?? 0) + weight / whole
      const most = due.indexOf(Math.max(...due))
      due[most] = (due[most] ?? 0) - 1
      kinds[most]?.[1]()
    }
    this.mine()
    this.flush()
    writeFileSync(join(this.folder, HEADERS), joinBytes(this.headerBytes))
    writeFileSync(join(this.folder, INDEX), serialize(index))
    return index
  }

  private mint(): void {
    const name = this.upcoming.shift()
    if (name === undefined) return
    const owner = p2pkh(1000 + (this.index.names.length % 500))
    const mint = this.add(this.chain.mint(name, { ownerLock: owner, funding: [this.coin()] }))
    this.index.names.push(name)
    const left = this.below(4)
    if (left > 0) this.claims.push({ coin: { transaction: mint, vout: 2 }, left })
  }

  private moveName(): void {
    const at = this.below(this.claims.length)
    const claim = this.claims[at]
    if (claim === undefined) return
    const said = mapTail({ app: 'mover', note: String(this.below(1000)) })
    const lockingScript =
      this.random() < 0.3 ? joinBytes([p2pkh(this.below(500)), said]) : p2pkh(this.below(500))
    const transaction = this.spend(claim.coin, lockingScript)
    claim.coin = { transaction, vout: 0 }
    claim.left--
    if (claim.left === 0) this.claims.splice(at, 1)
  }

  private inscribeSome(): void {
    const number = this.inscribed
    const map = {
      app: `app${number % 50}`,
      type: ['post', 'card', 'like'][number % 3] ?? '',
      n: String(number),
    }
    const contentType = CONTENT_TYPES[number % CONTENT_TYPES.length] ?? ''
    const body = this.text(1024 + this.below(7169))
    const { outpoint } = this.inscribe({ body, contentType, map, owner: 10 + (number % 10) })
    this.index.inscriptions.push(outpoint(0))
  }

  private moveOrdinal(): void {
    if (this.ordinals.length < ORDINALS) {
      const tip = this.inscribe({
        body: this.text(1500),
        contentType: 'text/plain',
        map: { app: 'game', level: '0' },
        owner: 5,
      })
      this.index.moved.push(tip.outpoint(0))
      this.ordinals.push({ tip, steps: 0 })
      return
    }
    const ordinal = this.ordinals[this.moves++ % ORDINALS]
    if (ordinal === undefined) return
    const level = ++ordinal.steps
    const owner = p2pkh(level % 7)
    const lockingScript = level % 3 === 0 ? joinBytes([owner, mapTail({ level: String(level) })]) : owner
    ordinal.tip = this.spend({ transaction: ordinal.tip, vout: 0 }, lockingScript)
  }

  /** Each step of the long life is a transfer, each tenth has MAP, and each 500th has new content. */
  private live(): void {
    if (this.longLife === undefined) {
      this.longLife = this.inscribe({
        body: this.text(2000),
        contentType: 'text/plain',
        map: { app: 'long' },
        owner: 3,
      })
      this.index.long = this.longLife.outpoint(0)
      return
    }
    const step = ++this.steps
    const said = mapTail({ level: String(step), [`k${step % 100}`]: String(step) })
    const moved = step % 10 === 0 ? joinBytes([p2pkh(3), said]) : p2pkh(3)
    const body = Buffer.from(`version ${step} `.repeat(60))
    const changed = inscriptionScript({ contentType: 'text/plain', body, lock: p2pkh(3) })
    this.longLife = this.spend({ transaction: this.longLife, vout: 0 }, step % 500 === 0 ? changed : moved)
  }

  private nextChunk(body: Uint8Array): FakeTransaction {
    const contentType = this.lastChunk === undefined ? 'video/mp4; stream=gw' : 'gw/stream'
    const lockingScript = inscriptionScript({ contentType, body, lock: p2pkh(3) })
    const coin = this.lastChunk === undefined ? this.coin() : { transaction: this.lastChunk, vout: 0 }
    this.lastChunk = this.spend(coin, lockingScript)
    return this.lastChunk
  }

  private inscribe(options: {
    body: Uint8Array
    contentType: string
    map?: Record<string, string>
    owner?: number
  }): FakeTransaction {
    const { body, contentType, map, owner = 1 } = options
    this.inscribed++
    const suffix = map && { suffix: mapTail(map) }
    return this.spend(this.coin(), inscriptionScript({ contentType, body, lock: p2pkh(owner), ...suffix }))
  }

  private spend(
    coin: { transaction: FakeTransaction; vout: number },
    lockingScript: Uint8Array,
  ): FakeTransaction {
    return this.add(this.chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript }] }))
  }

  private coin(): { transaction: FakeTransaction; vout: number } {
    if (this.paid === A_PURSE || this.purse === undefined) {
      const outputs = Array.from({ length: A_PURSE }, () => ({ satoshis: 2, lockingScript: p2pkh(0) }))
      this.purse = this.add(this.chain.spend({ inputs: [], outputs }))
      this.paid = 0
    }
    return { transaction: this.purse, vout: this.paid++ }
  }

  private add(transaction: FakeTransaction): FakeTransaction {
    this.waiting.push(transaction)
    if (this.waiting.length === A_BLOCK) this.mine()
    return transaction
  }

  private mine(): void {
    if (this.waiting.length === 0) return
    const block = this.headers.mine(this.waiting)
    this.headerBytes.push(block.header.bytes)
    for (const { txid, raw } of this.waiting) this.batch.push({ txid, raw, proof: block.proof(txid) })
    this.waiting = []
    if (this.batch.length >= A_BATCH) this.flush()
  }

  private flush(): void {
    const { folder, index, batch } = this
    writeFileSync(batchFile(folder, index.batches++), serialize(batch))
    this.written += batch.length
    index.count = this.written
    this.batch = []
  }

  /** Words and all their prefixes, each after the shorter ones. */
  private namesFor(size: number): string[] {
    const first = 'aaaaaaaaabcdefghijklmnopqrstuvwxyz0123456789-'
    const rest = 'abcdefghijklmnopqrstuvwxyz0123456789'
    const names = new Set<string>()
    while (names.size < size * 0.17 + 10) {
      let word = first[this.below(first.length)] ?? 'a'
      const length = 2 + this.below(9)
      while (word.length < length) word += rest[this.below(this.random() < 0.6 ? 8 : rest.length)]
      for (let end = 1; end <= length; end++) names.add(word.slice(0, end))
    }
    return [...names]
  }

  private text(length: number): Uint8Array {
    let text = `#${this.inscribed} `
    while (text.length < length) text += `${this.words[this.below(WORDS)]} `
    return Buffer.from(text.slice(0, length))
  }

  private noise(length: number): Uint8Array {
    const seed = this.below(251)
    return new Uint8Array(length).map((_, at) => (at * 31 + seed + (at >> 8)) % 256)
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit)
  }
}

/** Runs in the folder that `BENCH_NETWORK` names, or in a temporary one. */
export async function* withNetworkFolder(
  run: (folder: string) => AsyncGenerator<string>,
): AsyncGenerator<string> {
  const kept = process.env.BENCH_NETWORK
  if (kept === undefined) yield* inFolder(run)
  else yield* run(kept)
}

/** The network in a folder, written if it is missing. */
export function networkIn(folder: string): NetworkIndex {
  if (!existsSync(join(folder, INDEX))) {
    mkdirSync(folder, { recursive: true })
    new MixedNetwork(folder, TRANSACTIONS).write()
  }
  return readNetwork(folder)
}

export function readNetwork(folder: string): NetworkIndex {
  return deserialize(readFileSync(join(folder, INDEX)))
}

/** The network's transactions, in batches of five hundred. */
export function* batchesIn(folder: string): Generator<TransactionRecord[]> {
  const { batches } = readNetwork(folder)
  for (let at = 0; at < batches; at++) yield deserialize(readFileSync(batchFile(folder, at)))
}

export function headersIn(folder: string): Uint8Array {
  return readFileSync(join(folder, HEADERS))
}

function batchFile(folder: string, at: number): string {
  return join(folder, `batch-${at}.bin`)
}

/** Numbers from 0 to 1, always the same (the linear congruential generator of ANSI C). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return ((state >>> 8) & 0xffffff) / 0x1000000
  }
}
