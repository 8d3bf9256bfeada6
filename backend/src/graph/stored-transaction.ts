import { joinBytes } from '../protocol/bytes.js'
import { decodeOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { atOnce, type Steps } from '../protocol/steps.js'
import { readTransaction, type TransactionView } from '../protocol/transaction.js'
import { DamagedError } from './errors.js'
import type { Proof, TransactionRecord } from './records.js'
import { type Awaitable, inSlices, whenReady } from './yield-to-event-loop.js'

/** A stored transaction whose bytes are only read when asked for. */
export interface RawTransaction {
  txid: string
  proof?: Proof
  /** In bytes. */
  length: number
  /** The chunks of its bytes, starting with the one that holds byte `from`; each is read when it is asked for. */
  chunks(from?: number): Iterable<{ at: number; bytes: Uint8Array }>
}

/** Where transactions are read from: a store, or a submission. */
export interface TransactionSource {
  get(txid: string): Awaitable<TransactionRecord | undefined>
}

/** A source that reads transactions in chunks. */
export interface RawSource {
  raw(txid: string): RawTransaction | undefined
}

/** The same, for those who can wait. */
export interface OutlineSource {
  raw(txid: string): Awaitable<RawTransaction | undefined>
}

const views = new WeakMap<Uint8Array, TransactionView>()

/** Parses a raw transaction, once for as long as its bytes are in memory. */
export function viewOf({ txid, raw }: { txid: string; raw: Uint8Array }): TransactionView {
  const known = views.get(raw)
  if (known !== undefined) return known
  const view = readTransaction(raw, { txid })
  views.set(raw, view)
  return view
}

/** Makes {@link viewOf} return a transaction that was parsed already. */
export function cacheView(view: TransactionView): void {
  views.set(view.raw, view)
}

/** A parsed transaction of the store; undefined if there is no store or it does not have it. */
export async function storedTransaction(
  txid: string,
  store: TransactionSource | undefined,
): Promise<TransactionView | undefined> {
  const record = await store?.get(txid)
  return record && viewOf({ txid, raw: record.raw })
}

/** A transaction without its scripts. */
export interface TransactionOutline {
  txid: string
  /** Length of the complete transaction in bytes. */
  length: number
  proof?: Proof
  inputs: Outpoint[]
  outputValues: number[]
}

/** The longest transaction that is read without yielding, in bytes: some thousand outputs at most. */
const SHORT = 32 * 1024

/**
 * A stored transaction without its scripts; undefined if the store does not have it. Chunks of a large one that contain nothing but
 * scripts are skipped. Yields if it is large.
 */
export function readOutline(txid: string, store: OutlineSource): Awaitable<TransactionOutline | undefined> {
  return whenReady(store.raw(txid), (raw) => {
    if (raw === undefined) return undefined
    const { length, proof } = raw
    const steps = readParts(new ChunkReader(raw))
    const parts = length <= SHORT ? atOnce(steps) : inSlices(steps)
    return whenReady(parts, (found) => ({ txid, length, ...(proof && { proof }), ...found }))
  })
}

type OutlinedParts = Pick<TransactionOutline, 'inputs' | 'outputValues'>

function* readParts(reader: ChunkReader): Steps<OutlinedParts> {
  const inputs: Outpoint[] = []
  for (let left = reader.inputs(); left > 0; left--) {
    inputs.push(reader.input())
    if (reader.endsStep) yield
  }
  const outputValues: number[] = []
  for (let left = reader.varint(); left > 0; left--) {
    outputValues.push(reader.output().satoshis)
    if (reader.endsStep) yield
  }
  return { inputs, outputValues }
}

/** The longest script of an output that is read, and how many chunks may be read for it. */
interface Reach {
  longest: number
  chunks: number
}

/** A lock has some dozen bytes, a node some thousand, but an output may contain an inscription, and 4 MiB may come before it. */
const USUAL_REACH: Reach = { longest: 64 * 1024, chunks: 16 }

/** The most inputs and outputs before an output that is read at once: some milliseconds. */
const NEAR = 20_000

/**
 * An output; reads no further than necessary.
 *
 * @returns undefined if the store does not have the output, it exceeds the limits, or {@link NEAR} others come before it.
 */
export function storedOutput(
  { txid, vout }: Outpoint,
  store: RawSource,
  { longest, chunks } = USUAL_REACH,
): StoredOutput | undefined {
  const raw = store.raw(txid)
  return raw && atOnce(outputIn(new ChunkReader(raw, { chunks, parts: NEAR }), vout, longest))
}

/** As {@link storedOutput}, however many others come before it: yields in between. */
export async function farOutput(
  { txid, vout }: Outpoint,
  store: RawSource,
  { longest, chunks }: Reach,
): Promise<StoredOutput | undefined> {
  const raw = store.raw(txid)
  return raw && (await inSlices(outputIn(new ChunkReader(raw, { chunks }), vout, longest)))
}

interface StoredOutput {
  satoshis: number
  lockingScript: Uint8Array
}

function* outputIn(reader: ChunkReader, vout: number, longest: number): Steps<StoredOutput | undefined> {
  try {
    for (let left = reader.inputs(); left > 0; left--) {
      reader.skipInput()
      if (reader.endsStep) yield
    }
    const count = reader.varint()
    if (vout >= count) return undefined
    for (let before = vout; before > 0; before--) {
      reader.output()
      if (reader.endsStep) yield
    }
    const { satoshis, script } = reader.output(longest)
    return script && { satoshis, lockingScript: script }
  } catch (error) {
    if (error instanceof TooFarError) return undefined
    throw error
  }
}

class TooFarError extends Error {
  override readonly name = 'TooFarError'
}

/** A step ends after a chunk, or after this many inputs and outputs. */
const PARTS_A_STEP = 256

/** Reads a stored transaction from front to back. It was validated when it was stored, so its counts are trusted. */
class ChunkReader {
  private at = 0
  private chunk: { at: number; bytes: Uint8Array } = { at: 0, bytes: new Uint8Array() }
  private chunks = 0
  private parts = 0
  private hasLoaded = false

  constructor(
    private readonly raw: RawTransaction,
    private readonly limits: { chunks?: number; parts?: number } = {},
  ) {}

  /** Whether a step ends here: a transaction may have any number of inputs and outputs. */
  get endsStep(): boolean {
    const isOver = this.hasLoaded || this.parts % PARTS_A_STEP === 0
    this.hasLoaded = false
    return isOver
  }

  /** How many inputs follow. */
  inputs(): number {
    this.at = 4
    return this.varint()
  }

  input(): Outpoint {
    const outpoint = decodeOutpoint(this.take(36))
    this.at -= 36
    this.skipInput()
    return outpoint
  }

  skipInput(): void {
    this.countPart()
    this.at += 36
    const script = this.varint()
    this.at += script + 4
  }

  /** @param longest The longest script that is read, in bytes. */
  output(longest = -1): { satoshis: number; script: Uint8Array | undefined } {
    this.countPart()
    const satoshis = numberOf(this.take(8))
    const length = this.varint()
    const end = this.at + length
    const script = length > longest ? undefined : this.take(length)
    this.at = end
    return { satoshis, script }
  }

  private countPart(): void {
    this.parts++
    if (this.parts > (this.limits.parts ?? Number.POSITIVE_INFINITY))
      throw new TooFarError('too many inputs and outputs come before it')
  }

  varint(): number {
    const [first = 0] = this.take(1)
    return first < 0xfd ? first : numberOf(this.take(first === 0xfd ? 2 : first === 0xfe ? 4 : 8))
  }

  private take(length: number): Uint8Array {
    const found: Uint8Array[] = []
    for (const end = this.at + length; this.at < end; ) {
      const { at, bytes } = this.isInChunk ? this.chunk : this.load()
      const part = bytes.subarray(this.at - at, end - at)
      found.push(part)
      this.at += part.length
    }
    return found.length === 1 && found[0] !== undefined ? found[0] : joinBytes(found)
  }

  private get isInChunk(): boolean {
    return this.at >= this.chunk.at && this.at < this.chunk.at + this.chunk.bytes.length
  }

  private load(): { at: number; bytes: Uint8Array } {
    this.chunks++
    if (this.chunks > (this.limits.chunks ?? Number.POSITIVE_INFINITY))
      throw new TooFarError('too many chunks would have to be read')
    this.hasLoaded = true
    for (const chunk of this.raw.chunks(this.at)) {
      this.chunk = chunk
      if (this.isInChunk) return chunk
      break
    }
    throw new DamagedError(this.raw.txid, 'its end is missing')
  }
}

/** Little-endian. */
function numberOf(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0)
}
