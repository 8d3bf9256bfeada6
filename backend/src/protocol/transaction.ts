import { Hash } from '@bsv/sdk'
import { ByteCursor } from './byte-cursor.js'
import { reversed, toHex } from './bytes.js'
import type { Outpoint } from './outpoint.js'

/** An input as it stands in the raw transaction; `unlockingScript` is a view into it. */
export interface TransactionInput {
  /** The txid of the transaction it spends, hex in shown order. */
  txid: string
  vout: number
  unlockingScript: Uint8Array
  sequence: number
}

/** An output as it stands in the raw transaction; the byte fields are views into it. */
export interface TransactionOutput {
  satoshis: number
  lockingScript: Uint8Array
  /** The whole output: value, script length, script. What a signature hash commits to. */
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

/** Bytes that are not one whole transaction. */
export class TransactionError extends Error {
  readonly code = 'BAD_TRANSACTION'
  override readonly name = 'TransactionError'
}

/**
 * The double SHA-256 of `bytes`, in internal order. The default is the SDK's, which runs anywhere; a host
 * with a native one may give that to {@link readTransaction} instead.
 */
export type Hash256 = (bytes: Uint8Array) => Uint8Array

export const hash256: Hash256 = (bytes) => {
  const { SHA256 } = Hash
  return Uint8Array.from(new SHA256().update(Uint8Array.from(new SHA256().update(bytes).digest())).digest())
}

/**
 * Reads one raw transaction.
 *
 * @param raw The serialised transaction, all of it and nothing after it.
 * @param options.txid Its txid where the caller has it already; else it is computed.
 * @throws TransactionError (`BAD_TRANSACTION`) where the bytes are not exactly one transaction.
 */
export function readTransaction(
  raw: Uint8Array,
  options: { txid?: string; hash?: Hash256 } = {},
): TransactionView {
  const cursor = new ByteCursor(raw, (message) => new TransactionError(message))
  const fields = readTransactionFields(cursor)
  if (!cursor.atEnd) throw new TransactionError('bytes follow the transaction')
  const txid = options.txid ?? toHex(reversed((options.hash ?? hash256)(raw)))
  return { raw, txid, ...fields }
}

/** Whether a transaction mints the coins of its block: its one input spends nothing that there is. */
export function isCoinbase({ inputs }: { inputs: readonly Outpoint[] }): boolean {
  const [first] = inputs
  return inputs.length === 1 && first?.vout === 0xffffffff && /^0{64}$/.test(first.txid)
}

/** Inputs, or outputs, of one transaction: more than any that has to do with ordinals; each costs memory to hold. */
const MAX_PARTS = 100_000

/** Reads what stands at the cursor as a transaction, and leaves the cursor behind it. */
export function readTransactionFields(cursor: ByteCursor): Omit<TransactionView, 'raw' | 'txid'> {
  const version = cursor.u32()
  const inputs: TransactionInput[] = []
  for (let left = cursor.count('inputs', MAX_PARTS); left > 0; left--) {
    const txid = toHex(reversed(cursor.take(32)))
    const vout = cursor.u32()
    const unlockingScript = cursor.take(cursor.varint())
    inputs.push({ txid, vout, unlockingScript, sequence: cursor.u32() })
  }
  const outputs: TransactionOutput[] = []
  for (let left = cursor.count('outputs', MAX_PARTS); left > 0; left--) {
    const start = cursor.at
    const satoshis = cursor.u64()
    const lockingScript = cursor.take(cursor.varint())
    outputs.push({ satoshis, lockingScript, bytes: cursor.bytes.subarray(start, cursor.at) })
  }
  return { version, inputs, outputs, lockTime: cursor.u32() }
}
