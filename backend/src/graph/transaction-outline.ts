import { joinBytes, reversed, toHex } from '../protocol/bytes.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { RawTransaction, TransactionSource } from './graph-store.js'
import type { Proof } from './records.js'
import { TimeSlice, yieldToEventLoop } from './yield-to-event-loop.js'

/** A transaction without its scripts. */
export interface TransactionOutline {
  txid: string
  /** Of the whole transaction, in bytes. */
  length: number
  proof?: Proof
  inputs: Outpoint[]
  outputValues: number[]
}

/**
 * A stored transaction without its scripts; undefined where the store does not hold it. Of a large one, where the store can
 * read in parts, the pieces that hold nothing but scripts are passed over.
 */
export async function readOutline(
  txid: string,
  store: TransactionSource,
): Promise<TransactionOutline | undefined> {
  const raw = await openTransaction(txid, store)
  if (raw === undefined) return undefined
  const { length, proof } = raw
  const reader = new ChunkReader(raw)
  const inputs = await reader.inputs()
  const outputValues: number[] = []
  for (let left = await reader.varint(); left > 0; left--) outputValues.push((await reader.output()).satoshis)
  return { txid, length, ...(proof && { proof }), inputs, outputValues }
}

/** Of an output, how long a script is read at the most, and how many pieces may be read for it. */
interface Reach {
  longest: number
  pieces: number
}

/**
 * The locking script of an output, read up to there and no further.
 *
 * @returns undefined where the store does not hold the output, the script is longer, or takes more to find.
 */
export async function lockingScriptOf(
  outpoint: Outpoint,
  store: TransactionSource,
  reach: Reach,
): Promise<Uint8Array | undefined> {
  return (await storedOutput(outpoint, store, reach))?.lockingScript
}

/** An output, likewise. */
export async function storedOutput(
  { txid, vout }: Outpoint,
  store: TransactionSource,
  { longest, pieces }: Reach,
): Promise<{ satoshis: number; lockingScript: Uint8Array } | undefined> {
  const raw = await openTransaction(txid, store)
  if (raw === undefined) return undefined
  const reader = new ChunkReader(raw, pieces)
  try {
    await reader.inputs()
    const count = await reader.varint()
    if (vout >= count) return undefined
    for (let before = vout; before > 0; before--) await reader.output()
    const { satoshis, script } = await reader.output(longest)
    return script && { satoshis, lockingScript: script }
  } catch (error) {
    if (error instanceof TooManyPiecesError) return undefined
    throw error
  }
}

/** The transaction in parts; of a store that has no parts, whole. */
export async function openTransaction(
  txid: string,
  store: TransactionSource,
): Promise<RawTransaction | undefined> {
  if (store.raw !== undefined) return await store.raw(txid)
  const record = await store.get(txid)
  if (record === undefined) return undefined
  const { raw: bytes, proof } = record
  return {
    txid,
    ...(proof && { proof }),
    length: bytes.length,
    async *chunks() {
      yield { at: 0, bytes }
    },
  }
}

class TooManyPiecesError extends Error {
  override readonly name = 'TooManyPiecesError'
}

/** Others may have their turn after so many pieces, as the embedded store reads one within the thread, or so many parts. */
const PIECES_A_SLICE = 8
const PARTS_A_SLICE = 256

/** Reads a stored transaction from front to back. It was read when it came, so that its counts are trusted here. */
class ChunkReader {
  private at = 0
  private piece: { at: number; bytes: Uint8Array } = { at: 0, bytes: new Uint8Array() }
  private read = 0
  private parts = 0
  private readonly slice = new TimeSlice()

  constructor(
    private readonly raw: RawTransaction,
    private readonly mostPieces = Number.POSITIVE_INFINITY,
  ) {}

  async inputs(): Promise<Outpoint[]> {
    this.at = 4
    const inputs: Outpoint[] = []
    for (let left = await this.varint(); left > 0; left--) {
      await this.rest()
      const outpoint = await this.take(36)
      const vout = new DataView(outpoint.buffer, outpoint.byteOffset + 32, 4).getUint32(0, true)
      inputs.push({ txid: toHex(reversed(outpoint.subarray(0, 32))), vout })
      const script = await this.varint()
      this.at += script + 4
    }
    return inputs
  }

  /** @param longest Up to how many bytes the script is read. */
  async output(longest = -1): Promise<{ satoshis: number; script: Uint8Array | undefined }> {
    await this.rest()
    const satoshis = numberOf(await this.take(8))
    const length = await this.varint()
    const end = this.at + length
    const script = length > longest ? undefined : await this.take(length)
    this.at = end
    return { satoshis, script }
  }

  /** Lets others have their turn now and then: a transaction has as many inputs and outputs as fit into it. */
  private async rest(): Promise<void> {
    this.parts++
    if (this.parts % PARTS_A_SLICE === 0) await this.slice.yieldIfOver()
  }

  async varint(): Promise<number> {
    const [first = 0] = await this.take(1)
    return first < 0xfd ? first : numberOf(await this.take(first === 0xfd ? 2 : first === 0xfe ? 4 : 8))
  }

  private async take(length: number): Promise<Uint8Array> {
    const found: Uint8Array[] = []
    for (const end = this.at + length; this.at < end; ) {
      const { at, bytes } = this.isInPiece ? this.piece : await this.load()
      const part = bytes.subarray(this.at - at, end - at)
      found.push(part)
      this.at += part.length
    }
    return found.length === 1 && found[0] !== undefined ? found[0] : joinBytes(found)
  }

  private get isInPiece(): boolean {
    return this.at >= this.piece.at && this.at < this.piece.at + this.piece.bytes.length
  }

  private async load(): Promise<{ at: number; bytes: Uint8Array }> {
    this.read++
    if (this.read > this.mostPieces) throw new TooManyPiecesError('too many chunks would have to be read')
    if (this.read % PIECES_A_SLICE === 0) await yieldToEventLoop()
    for await (const piece of this.raw.chunks(this.at)) {
      this.piece = piece
      if (this.isInPiece) return piece
      break
    }
    throw new Error(`the transaction ${this.raw.txid} is truncated in the store`)
  }
}

/** Little-endian. */
function numberOf(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0)
}
