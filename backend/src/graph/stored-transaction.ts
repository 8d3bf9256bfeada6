import { joinBytes, reversed, toHex } from '../protocol/bytes.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { outputOf, readTransaction, type TransactionView } from '../protocol/transaction.js'
import { DamagedError } from './errors.js'
import type { Proof, TransactionRecord } from './records.js'
import { type Awaitable, TimeSlice, whenReady, yieldToEventLoop } from './yield-to-event-loop.js'

/** A stored transaction whose bytes are only read when asked for. */
export interface RawTransaction {
  txid: string
  proof?: Proof
  /** In bytes. */
  length: number
  /** The chunks of its bytes, starting with the one that holds byte `from`; each is read when it is asked for. */
  chunks(from?: number): Iterable<{ at: number; bytes: Uint8Array }>
}

/** Where transactions are read from: a store, or what arrived with a submission. */
export interface TransactionSource {
  get(txid: string): Awaitable<TransactionRecord | undefined>
  raw?(txid: string): Awaitable<RawTransaction | undefined>
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
  /** Of the complete transaction, in bytes. */
  length: number
  proof?: Proof
  inputs: Outpoint[]
  outputValues: number[]
}

/** Up to how many bytes a transaction is parsed at once: some thousand outputs at most. */
const SHORT = 32 * 1024

/**
 * A stored transaction without its scripts; undefined if the store does not have it. If the store can read in chunks, those of a
 * large one that contain nothing but scripts are skipped.
 */
export function readOutline(
  txid: string,
  store: TransactionSource,
): Awaitable<TransactionOutline | undefined> {
  return whenReady(openTransaction(txid, store), (raw) => {
    if (raw === undefined) return undefined
    const { length, proof } = raw
    const parts = length <= SHORT ? partsOf(wholeOf(raw), txid) : readParts(new ChunkReader(raw))
    return whenReady(parts, (found) => ({ txid, length, ...(proof && { proof }), ...found }))
  })
}

function wholeOf({ txid, length, chunks }: RawTransaction): Uint8Array {
  const bytes = joinBytes([...chunks()].map((chunk) => chunk.bytes))
  if (bytes.length !== length) throw new DamagedError(txid, 'its end is missing')
  return bytes
}

type OutlinedParts = Pick<TransactionOutline, 'inputs' | 'outputValues'>

function partsOf(raw: Uint8Array, txid: string): OutlinedParts {
  const { inputs, outputs } = readTransaction(raw, { txid })
  return {
    inputs: inputs.map(({ txid, vout }) => ({ txid, vout })),
    outputValues: outputs.map(({ satoshis }) => satoshis),
  }
}

async function readParts(reader: ChunkReader): Promise<OutlinedParts> {
  const inputs = await reader.inputs()
  const outputValues: number[] = []
  for (let left = await reader.varint(); left > 0; left--) outputValues.push((await reader.output()).satoshis)
  return { inputs, outputValues }
}

/** The longest script of an output that is read, and how many chunks may be read for it. */
interface Reach {
  longest: number
  chunks: number
}

/**
 * The locking script of an output; reads no further than necessary.
 *
 * @returns undefined if the store does not have the output, or it exceeds the limits.
 */
export function lockingScriptOf(
  outpoint: Outpoint,
  store: TransactionSource,
  reach: Reach,
): Awaitable<Uint8Array | undefined> {
  return whenReady(storedOutput(outpoint, store, reach), (output) => output?.lockingScript)
}

/** An output, with the same limits. That of a short transaction is read synchronously. */
export function storedOutput(
  { txid, vout }: Outpoint,
  store: TransactionSource,
  { longest, chunks }: Reach,
): Awaitable<{ satoshis: number; lockingScript: Uint8Array } | undefined> {
  return whenReady(openTransaction(txid, store), (raw) => {
    if (raw === undefined) return undefined
    if (raw.length > SHORT) return outputIn(new ChunkReader(raw, chunks), vout, longest)
    const output = outputOf(readTransaction(wholeOf(raw), { txid }), vout)
    return output !== undefined && output.lockingScript.length <= longest ? output : undefined
  })
}

async function outputIn(
  reader: ChunkReader,
  vout: number,
  longest: number,
): Promise<{ satoshis: number; lockingScript: Uint8Array } | undefined> {
  try {
    await reader.inputs()
    const count = await reader.varint()
    if (vout >= count) return undefined
    for (let before = vout; before > 0; before--) await reader.output()
    const { satoshis, script } = await reader.output(longest)
    return script && { satoshis, lockingScript: script }
  } catch (error) {
    if (error instanceof TooManyChunksError) return undefined
    throw error
  }
}

/** Opens a transaction to be read in chunks; in one chunk if the store cannot do that. */
export function openTransaction(
  txid: string,
  store: TransactionSource,
): Awaitable<RawTransaction | undefined> {
  if (store.raw !== undefined) return store.raw(txid)
  return whenReady(store.get(txid), (record) => {
    if (record === undefined) return undefined
    const { raw: bytes, proof } = record
    return { txid, ...(proof && { proof }), length: bytes.length, chunks: () => [{ at: 0, bytes }] }
  })
}

class TooManyChunksError extends Error {
  override readonly name = 'TooManyChunksError'
}

/** After so many chunks, which the embedded store reads synchronously, or so many inputs and outputs, it yields. */
const CHUNKS_A_SLICE = 8
const PARTS_A_SLICE = 256

/** Reads a stored transaction from front to back. It was validated when it was stored, so its counts are trusted. */
class ChunkReader {
  private at = 0
  private chunk: { at: number; bytes: Uint8Array } = { at: 0, bytes: new Uint8Array() }
  private read = 0
  private parts = 0
  private readonly slices = new TimeSlice()

  constructor(
    private readonly raw: RawTransaction,
    private readonly maxChunks = Number.POSITIVE_INFINITY,
  ) {}

  async inputs(): Promise<Outpoint[]> {
    this.at = 4
    const inputs: Outpoint[] = []
    for (let left = await this.varint(); left > 0; left--) {
      await this.yieldNowAndThen()
      const outpoint = await this.take(36)
      const vout = new DataView(outpoint.buffer, outpoint.byteOffset + 32, 4).getUint32(0, true)
      inputs.push({ txid: toHex(reversed(outpoint.subarray(0, 32))), vout })
      const script = await this.varint()
      this.at += script + 4
    }
    return inputs
  }

  /** @param longest Up to how many bytes a script is read. */
  async output(longest = -1): Promise<{ satoshis: number; script: Uint8Array | undefined }> {
    await this.yieldNowAndThen()
    const satoshis = numberOf(await this.take(8))
    const length = await this.varint()
    const end = this.at + length
    const script = length > longest ? undefined : await this.take(length)
    this.at = end
    return { satoshis, script }
  }

  /** Yields now and then: a transaction may have any number of inputs and outputs. */
  private async yieldNowAndThen(): Promise<void> {
    this.parts++
    if (this.parts % PARTS_A_SLICE === 0) await this.slices.yieldIfOver()
  }

  async varint(): Promise<number> {
    const [first = 0] = await this.take(1)
    return first < 0xfd ? first : numberOf(await this.take(first === 0xfd ? 2 : first === 0xfe ? 4 : 8))
  }

  async take(length: number): Promise<Uint8Array> {
    const found: Uint8Array[] = []
    for (const end = this.at + length; this.at < end; ) {
      const { at, bytes } = this.isInChunk ? this.chunk : await this.load()
      const part = bytes.subarray(this.at - at, end - at)
      found.push(part)
      this.at += part.length
    }
    return found.length === 1 && found[0] !== undefined ? found[0] : joinBytes(found)
  }

  private get isInChunk(): boolean {
    return this.at >= this.chunk.at && this.at < this.chunk.at + this.chunk.bytes.length
  }

  private async load(): Promise<{ at: number; bytes: Uint8Array }> {
    this.read++
    if (this.read > this.maxChunks) throw new TooManyChunksError('too many chunks would have to be read')
    if (this.read % CHUNKS_A_SLICE === 0) await yieldToEventLoop()
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
