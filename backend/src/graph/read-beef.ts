import { BeefError, readBeefFrame } from '../protocol/beef.js'
import { reversed, toHex } from '../protocol/bytes.js'
import type { MerklePath } from '../protocol/merkle-path.js'
import type { TransactionView } from '../protocol/transaction.js'
import { nativeHash256 } from './native-hash.js'
import { proofIn, readPath } from './read-proof.js'
import type { Proof } from './records.js'

/** A BEEF read once: its subject, and whatever other transactions came along. */
export interface BeefContents {
  subject: TransactionView
  /** A transaction of the BEEF; undefined where it is not there. */
  transaction(txid: string): TransactionView | undefined
  /**
   * The proof that the BEEF holds for a transaction, cut down to that transaction alone. Whether a block has its
   * root is for a chain tracker to say.
   *
   * @throws BeefError where a merkle path of the BEEF does not hold together.
   */
  proof(txid: string): Proof | undefined
  txids: string[]
  /** Of the BEEF, in bytes. */
  length: number
}

const known = new WeakMap<object, BeefContents>()

/**
 * Reads a BEEF; the same array asked for again gives the same answer without reading it again, so that the
 * engine can hand one array to every topic manager and each transaction is parsed once.
 *
 * The subject is the atomic one (BRC-95) where it is named, else the last.
 *
 * @throws BeefError (`BAD_BEEF`) where the bytes are no BEEF, or one without a subject.
 */
export function readBeef(beef: number[] | Uint8Array): BeefContents {
  const read = known.get(beef)
  if (read !== undefined) return read
  const contents = parseBeef(beef instanceof Uint8Array ? beef : Uint8Array.from(beef))
  known.set(beef, contents)
  return contents
}

function parseBeef(bytes: Uint8Array): BeefContents {
  const { atomicTxid, bumps, transactions } = readBeefFrame(bytes)
  const views = new Map<string, TransactionView>()
  // Of the transaction that stands last, though it stood before: the engine verifies that one, so it is the subject.
  let lastTxid: string | undefined
  for (const transaction of transactions) {
    lastTxid = toHex(reversed(nativeHash256(transaction.raw)))
    views.set(lastTxid, Object.assign(transaction, { txid: lastTxid }))
  }
  const subjectTxid = atomicTxid ?? lastTxid
  const subject = subjectTxid === undefined ? undefined : views.get(subjectTxid)
  if (subject === undefined) throw new BeefError('the BEEF does not contain its subject transaction')

  let paths: Map<string, MerklePath> | undefined
  const proof = (txid: string): Proof | undefined => {
    paths ??= pathsByTxid(bumps)
    const path = paths.get(txid)
    return path && proofIn(path, txid)
  }
  const { length } = bytes
  return { subject, transaction: (txid) => views.get(txid), proof, txids: [...views.keys()], length }
}

/** The first path that has a txid among its leaves, as the SDK finds it. */
function pathsByTxid(bumps: Uint8Array[]): Map<string, MerklePath> {
  const paths = new Map<string, MerklePath>()
  for (const bump of bumps) {
    const path = readPath(bump)
    for (const txid of path.txids) if (!paths.has(txid)) paths.set(txid, path)
  }
  return paths
}
