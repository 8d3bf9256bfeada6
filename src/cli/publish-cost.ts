import { PROFILES } from '../../backend/src/protocol/profile.js'
import { DEFAULT_FEE_RATE } from '../mining/fund-with-key.js'
import { layOutStreamChunk } from '../publish/file.js'
import type { PublishOutput } from '../publish/inscribe.js'
import { bytesText, grouped } from './progress-line.js'
import { countOf, type Found, type FoundFile, sizeOf } from './publish-files.js'

// What it would cost to publish on the live network, where coins come in by P2PKH and change goes back. An estimate: who pays
// there decides how.

/** Bytes of an input that spends a P2PKH output, and of a P2PKH output for the change. */
const P2PKH_INPUT = 148
const P2PKH_OUTPUT = 34
/** Bytes of what every transaction has: version, lock time, and the two counts, of 5 bytes at most. */
const TRANSACTION_OVERHEAD = 4 + 4 + 1 + 5
/** Bytes of an output beside its script: the value, and the length of the script, which is 5 bytes for most files. */
const OUTPUT_OVERHEAD = 8 + 5

/** So many transactions of so many bytes. */
export interface TransactionSizes {
  bytes: number
  count: number
}

/** About how many bytes a transaction would have that somebody pays for. */
export function transactionSize(transaction: {
  inputs: number
  outputs: readonly Pick<PublishOutput, 'lockingScript'>[]
}): number {
  const fixed = TRANSACTION_OVERHEAD + transaction.inputs * P2PKH_INPUT + P2PKH_OUTPUT
  return transaction.outputs.reduce(
    (sum, { lockingScript }) => sum + OUTPUT_OVERHEAD + lockingScript.length,
    fixed,
  )
}

/** The same for the transactions of a stream: each after the first spends the chunk before it, beside a coin. */
export function streamSizes(stream: {
  found: FoundFile
  lock: Uint8Array
  chunkSize: number
  transactions: number
}): TransactionSizes[] {
  const { found, lock, chunkSize, transactions } = stream
  const without = (index: number): number => {
    const chunk = { name: found.name, chunk: new Uint8Array(), index, sha256: new Uint8Array(32) }
    const output = layOutStreamChunk({ ...chunk, lock, profile: PROFILES.local })
    return transactionSize({ inputs: Math.min(index, 1) + 1, outputs: [output] })
  }
  const last = found.size - (transactions - 1) * chunkSize
  if (transactions === 1) return [{ bytes: without(0) + last, count: 1 }]
  return [
    { bytes: without(0) + chunkSize, count: 1 },
    { bytes: without(1) + chunkSize, count: transactions - 2 },
    { bytes: without(1) + last, count: 1 },
  ]
}

/** One line on how much is published and what it would cost, before any of it is submitted. */
export function costText(found: Found, sizes: readonly TransactionSizes[]): string {
  const files = countOf(found)
  const sumOf = (of: (each: TransactionSizes) => number): number =>
    sizes.reduce((sum, each) => sum + each.count * of(each), 0)
  const transactions = sumOf(() => 1)
  const bytes = sumOf((each) => each.bytes)
  const satoshis = sumOf((each) => Math.ceil((each.bytes * DEFAULT_FEE_RATE) / 1000))
  return [
    `publishing ${grouped(files)} ${files === 1 ? 'file' : 'files'}, ${bytesText(sizeOf(found))},`,
    `in ${grouped(transactions)} ${transactions === 1 ? 'transaction' : 'transactions'}`,
    `of ${grouped(bytes)} bytes: on the live network a fee of about ${grouped(satoshis)} satoshis`,
    `(${DEFAULT_FEE_RATE} per 1,000 bytes), on a local network none`,
  ].join(' ')
}
