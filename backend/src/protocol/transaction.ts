import { Hash } from '@bsv/sdk'
import { ByteCursor } from './byte-cursor.js'
import { joinBytes, reversed, toHex } from './bytes.js'
import { CodedError } from './coded-error.js'
import type { Outpoint } from './outpoint.js'

/** An input of a raw transaction; `unlockingScript` is a view into it. */
export interface TransactionInput {
  /** The txid of the transaction it spends, hex in display order. */
  txid: string
  vout: number
  unlockingScript: Uint8Array
  sequence: number
}

export interface SpentOutput {
  satoshis: number
  lockingScript: Uint8Array
}

/** An output of a raw transaction; the byte fields are views into it. */
export interface TransactionOutput extends SpentOutput {
  /** The whole output: value, script length, script. Signature hashes commit to it. */
  bytes: Uint8Array
}

/** A raw transaction read once: no copies, so the views live as long as `raw`. */
export interface TransactionView {
  raw: Uint8Array
  txid: string
  version: number
  inputs: TransactionInput[]
  outputs: TransactionOutput[]
  lockTime: number
}

/** The bytes are not exactly one transaction. */
export class TransactionError extends CodedError {
  override readonly name = 'TransactionError'
  readonly code = 'BAD_TRANSACTION'
}

/**
 * The double SHA-256 of `bytes`, in internal order. The default is the SDK's, which runs anywhere; a host
 * with a native one may give that to {@link readTransaction} instead.
 */
export type Hash256 = (bytes: Uint8Array) => Uint8Array

export const hash256: Hash256 = (bytes) => sha256(sha256(bytes))

export function sha256(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(new Hash.SHA256().update(bytes).digest())
}

/**
 * Reads one raw transaction.
 *
 * @param raw The serialised transaction, all of it and nothing after it.
 * @param options.txid Its txid, if the caller knows it; else it is computed.
 * @throws TransactionError (`BAD_TRANSACTION`) if the bytes are not exactly one transaction.
 */
export function readTransaction(
  raw: Uint8Array,
  options: { txid?: string; hash?: Hash256 } = {},
): TransactionView {
  const cursor = new ByteCursor(raw, (message) => new TransactionError(message))
  const fields = readTransactionFields(cursor)
  if (!cursor.atEnd) throw new TransactionError('there are extra bytes after the transaction')
  const txid = options.txid ?? toHex(reversed((options.hash ?? hash256)(raw)))
  return Object.assign(fields, { raw, txid })
}

/** Whether a transaction mints the coins of its block: its one input spends nothing. */
export function isCoinbase({ inputs }: { inputs: readonly Outpoint[] }): boolean {
  const [first] = inputs
  return inputs.length === 1 && first?.vout === 0xffffffff && /^0{64}$/.test(first.txid)
}

/** Transactions with up to this many inputs and outputs are read at once: a BEEF may have thousands of them. */
const FEW = 30

type TransactionFields = Omit<TransactionView, 'raw' | 'txid'>

/**
 * Reads a transaction at the cursor and advances past it. The inputs and outputs of a large one are only made on request: there
 * may be millions, most of which are refused unseen.
 */
export function readTransactionFields(cursor: ByteCursor): TransactionFields {
  const { bytes } = cursor
  const version = cursor.u32()
  const inputs = skipParts(cursor, cursor.count('inputs', bytes.length), skipInput)
  const outputs = skipParts(cursor, cursor.count('outputs', bytes.length), skipOutput)
  const lockTime = cursor.u32()
  if (inputs.count + outputs.count > FEW)
    return new LargeTransaction(bytes, { version, inputs, outputs, lockTime })
  const { at } = cursor
  const read = { inputs: takeAll(cursor, inputs, takeInput), outputs: takeAll(cursor, outputs, takeOutput) }
  cursor.at = at
  return { version, ...read, lockTime }
}

/** Reads the parts of a stretch, and leaves the cursor behind them. */
function takeAll<Part>(
  cursor: ByteCursor,
  { count, marks: [start = 0] }: Stretch,
  take: (cursor: ByteCursor) => Part,
): Part[] {
  cursor.at = start
  const parts: Part[] = []
  while (parts.length < count) parts.push(take(cursor))
  return parts
}

function takeInput(cursor: ByteCursor): TransactionInput {
  const txid = toHex(reversed(cursor.take(32)))
  return { txid, vout: cursor.u32(), unlockingScript: cursor.take(cursor.varint()), sequence: cursor.u32() }
}

function takeOutput(cursor: ByteCursor): TransactionOutput {
  const { at, bytes } = cursor
  const satoshis = cursor.u64()
  const lockingScript = cursor.take(cursor.varint())
  return { satoshis, lockingScript, bytes: bytes.subarray(at, cursor.at) }
}

/** How many inputs and outputs a transaction has. Creates none of them. */
export function countParts(transaction: Pick<TransactionView, 'inputs' | 'outputs'>): {
  inputs: number
  outputs: number
} {
  if (transaction instanceof LargeTransaction) return transaction.counts
  return { inputs: transaction.inputs.length, outputs: transaction.outputs.length }
}

/** One output of a transaction. Creates no others of a large one. */
export function outputOf(
  transaction: Pick<TransactionView, 'outputs'>,
  vout: number,
): TransactionOutput | undefined {
  return transaction instanceof LargeTransaction ? transaction.output(vout) : transaction.outputs[vout]
}

/** The first `count` outputs of a transaction. Creates no others of a large one. */
export function firstOutputs(
  transaction: Pick<TransactionView, 'outputs'>,
  count: number,
): readonly TransactionOutput[] {
  return transaction instanceof LargeTransaction
    ? transaction.firstOutputs(count)
    : transaction.outputs.slice(0, count)
}

/** The serialised outputs of a transaction from an index on. Creates none of a large one. */
export function serialisedOutputs(
  transaction: { readonly outputs: readonly Pick<TransactionOutput, 'bytes'>[] },
  from = 0,
): Uint8Array {
  if (transaction instanceof LargeTransaction) return transaction.outputsFrom(from)
  return joinBytes(transaction.outputs.slice(from).map(({ bytes }) => bytes))
}

function skipParts(cursor: ByteCursor, count: number, skip: (cursor: ByteCursor) => void): Stretch {
  const marks: number[] = []
  for (let index = 0; index < count; index++) {
    if (index % PARTS_A_MARK === 0) marks.push(cursor.at)
    skip(cursor)
  }
  return { count, marks, end: cursor.at }
}

function skipInput(cursor: ByteCursor): void {
  cursor.skip(36)
  cursor.skip(cursor.varint())
  cursor.skip(4)
}

function skipOutput(cursor: ByteCursor): void {
  cursor.u64()
  cursor.skip(cursor.varint())
}

/** Where the inputs or the outputs of a transaction are. */
interface Stretch {
  count: number
  /** The offset of every {@link PARTS_A_MARK}th. */
  marks: readonly number[]
  end: number
}

/** A proof may look up half a million outputs, each from the mark before it. */
const PARTS_A_MARK = 64

/** A transaction whose inputs and outputs are created on request. A copy by spreading makes them. */
class LargeTransaction implements TransactionFields {
  readonly version: number
  readonly lockTime: number
  readonly counts: { inputs: number; outputs: number }
  private madeInputs: TransactionInput[] | undefined
  private madeOutputs: TransactionOutput[] | undefined

  constructor(
    private readonly source: Uint8Array,
    private readonly layout: { version: number; inputs: Stretch; outputs: Stretch; lockTime: number },
  ) {
    this.version = layout.version
    this.lockTime = layout.lockTime
    this.counts = { inputs: layout.inputs.count, outputs: layout.outputs.count }
  }

  get inputs(): TransactionInput[] {
    this.madeInputs ??= takeAll(this.cursorAt(0), this.layout.inputs, storedInput)
    return this.madeInputs
  }

  get outputs(): TransactionOutput[] {
    this.madeOutputs ??= this.firstOutputs(this.layout.outputs.count)
    return this.madeOutputs
  }

  output(vout: number): TransactionOutput | undefined {
    if (this.madeOutputs !== undefined) return this.madeOutputs[vout]
    const start = this.startOf(vout)
    if (start === undefined) return undefined
    return storedOutput(this.cursorAt(start))
  }

  firstOutputs(most: number): TransactionOutput[] {
    const { outputs } = this.layout
    return takeAll(this.cursorAt(0), { ...outputs, count: Math.min(most, outputs.count) }, storedOutput)
  }

  outputsFrom(vout: number): Uint8Array {
    const { end } = this.layout.outputs
    return this.source.subarray(this.startOf(vout) ?? end, end)
  }

  private startOf(vout: number): number | undefined {
    const { count, marks } = this.layout.outputs
    if (!(vout >= 0 && vout < count)) return undefined
    const cursor = this.cursorAt(marks[Math.floor(vout / PARTS_A_MARK)] ?? 0)
    for (let left = vout % PARTS_A_MARK; left > 0; left--) skipOutput(cursor)
    return cursor.at
  }

  private cursorAt(at: number): ByteCursor {
    const cursor = new ByteCursor(this.source, (message) => new TransactionError(message))
    cursor.at = at
    return cursor
  }
}

function storedInput(cursor: ByteCursor): StoredInput {
  const { at, bytes } = cursor
  skipInput(cursor)
  return new StoredInput(bytes, at, cursor.at)
}

function storedOutput(cursor: ByteCursor): StoredOutput {
  const { at, bytes } = cursor
  skipOutput(cursor)
  return new StoredOutput(bytes, at, cursor.at)
}

/**
 * An input of a large transaction as its offset: a fifth of the memory that its fields would take.
 * These are not own properties: a copy by spreading has none of them.
 */
class StoredInput implements TransactionInput {
  constructor(
    private readonly source: Uint8Array,
    private readonly start: number,
    private readonly end: number,
  ) {}

  get txid(): string {
    return toHex(reversed(this.source.subarray(this.start, this.start + 32)))
  }

  get vout(): number {
    return u32At(this.source, this.start + 32)
  }

  get unlockingScript(): Uint8Array {
    const at = this.start + 36
    return this.source.subarray(at + varintLength(this.source, at), this.end - 4)
  }

  get sequence(): number {
    return u32At(this.source, this.end - 4)
  }
}

/** An output of a large transaction, likewise. */
class StoredOutput implements TransactionOutput {
  constructor(
    private readonly source: Uint8Array,
    private readonly start: number,
    private readonly end: number,
  ) {}

  get satoshis(): number {
    // Below 2^53: that was checked when it was read.
    return u32At(this.source, this.start) + u32At(this.source, this.start + 4) * 2 ** 32
  }

  get lockingScript(): Uint8Array {
    const at = this.start + 8
    return this.source.subarray(at + varintLength(this.source, at), this.end)
  }

  get bytes(): Uint8Array {
    return this.source.subarray(this.start, this.end)
  }
}

function u32At(bytes: Uint8Array, at: number): number {
  const [a = 0, b = 0, c = 0, d = 0] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
  return a + b * 2 ** 8 + c * 2 ** 16 + d * 2 ** 24
}

/** How many bytes the CompactSize number at `at` takes. */
function varintLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0
  return first < 0xfd ? 1 : first === 0xfd ? 3 : first === 0xfe ? 5 : 9
}
