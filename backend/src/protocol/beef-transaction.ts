import { MerklePath as SdkMerklePath, Transaction } from '@bsv/sdk'
import { BeefError, readBeefFrame } from './beef.js'
import { reversed, toHex } from './bytes.js'
import { cutPath, MerklePath } from './merkle-path.js'
import type * as sdk from './sdk-types.js'
import { type Hash256, hash256 } from './transaction.js'

// Not `Transaction.fromBEEF`: the SDK's reader (2.1.0) takes quadratic time, above all for merkle paths, and keeps everything
// else that is in the BEEF.

/** More unproven ancestors than nodes relay (25 to 1,000); the SDK walks them recursively. */
const MAX_ANCESTORS = 1_000

/** A transaction on its own: its bytes, and a merkle path (BUMP, BRC-74) that proves it and nothing else. */
export interface ProvableTransaction {
  raw: Uint8Array
  path?: Uint8Array
}

/**
 * Builds an SDK transaction with its merkle path or, if it has none, with its ancestors down to proven ones, as far as
 * `find` knows them.
 *
 * @param find Looks up a transaction by its txid.
 * @returns undefined if `find` does not know the txid itself.
 * @throws BeefError if there are more than 1,000 of them.
 */
export function sdkTransaction(
  txid: string,
  find: (txid: string) => ProvableTransaction | undefined,
): sdk.Transaction | undefined {
  const built = new Map<string, sdk.Transaction | undefined>()
  const build = (each: string): sdk.Transaction | undefined => {
    const found = find(each)
    if (found === undefined) return undefined
    const transaction = Transaction.fromBinary(found.raw)
    if (found.path !== undefined) transaction.merklePath = SdkMerklePath.fromBinary(found.path)
    return transaction
  }
  const subject = build(txid)
  built.set(txid, subject)
  const open = subject === undefined ? [] : [subject]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.merklePath !== undefined) continue
    for (const input of next.inputs) {
      const { sourceTXID } = input
      if (sourceTXID === undefined) continue
      if (!built.has(sourceTXID)) {
        const source = build(sourceTXID)
        if (built.size > MAX_ANCESTORS)
          throw new BeefError(`${txid} has more than ${MAX_ANCESTORS} unproven ancestors`)
        built.set(sourceTXID, source)
        if (source !== undefined) open.push(source)
      }
      const source = built.get(sourceTXID)
      if (source !== undefined) input.sourceTransaction = source
    }
  }
  return subject
}

/**
 * Reads a transaction out of a BEEF (BRC-62, BRC-95, BRC-96) as {@link sdkTransaction} builds it. Its scripts are not run,
 * and no header is asked for.
 *
 * @param options.txid Which transaction; by default the subject of an Atomic BEEF, else the last.
 * @throws BeefError if the bytes are not one BEEF, or it does not hold the transaction.
 */
export function readBeefTransaction(
  beef: Uint8Array,
  { txid: wanted, hash = hash256 }: { txid?: string; hash?: Hash256 } = {},
): sdk.Transaction {
  const { atomicTxid, bumps, transactions } = readBeefFrame(beef)
  const fail = (message: string): Error => new BeefError(message)
  const paths = bumps.map((bump) => new MerklePath(bump, { hash, fail }))
  const txids = transactions.map(({ raw }) => toHex(reversed(hash(raw))))
  const places = new Map(txids.map((txid, index) => [txid, index]))
  const txid = wanted ?? atomicTxid ?? txids.at(-1)
  const found =
    txid &&
    sdkTransaction(txid, (each) => {
      const raw = transactions[places.get(each) ?? -1]?.raw
      if (raw === undefined) return undefined
      const holder = paths.find((candidate) => candidate.has(each))
      const path = holder && cutPath(holder, each)
      return { raw, ...(path && { path }) }
    })
  if (!found) throw new BeefError(`the BEEF does not contain ${txid ?? 'a transaction'}`)
  return found
}

/**
 * A BEEF V1 (BRC-62) of a transaction, with its merkle path or its ancestors down to proven ones, as far as they are linked
 * to it. The transaction comes last.
 */
export function writeBeef(subject: sdk.Transaction): Uint8Array {
  return Uint8Array.from(subject.toBEEFUint8Array(true))
}
