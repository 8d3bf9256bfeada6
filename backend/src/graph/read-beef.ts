import { BeefError, readBeefFrame } from '../protocol/beef.js'
import { reversed, toHex } from '../protocol/bytes.js'
import { cutPath, MerklePath } from '../protocol/merkle-path.js'
import type { TransactionView } from '../protocol/transaction.js'
import { nativeHash256 } from './native-hash.js'
import type { Proof } from './records.js'

/** A parsed BEEF: its subject and the other transactions in it. */
export interface BeefContents {
  subject: TransactionView
  /** A transaction of the BEEF; undefined if it has none. */
  transaction(txid: string): TransactionView | undefined
  /**
   * The proof of a transaction in the BEEF, trimmed to it. Only a chain tracker knows whether a block has its root.
   *
   * @throws BeefError if a merkle path of the BEEF is invalid.
   */
  proof(txid: string): Proof | undefined
  txids: string[]
  /** The length of the BEEF in bytes. */
  length: number
}

export interface ReadBeef extends BeefContents {
  bytes: Uint8Array
}

const known = new WeakMap<object, ReadBeef>()

/**
 * Parses a BEEF, once for the same array: an engine passes one array to every topic manager.
 *
 * The subject is the atomic one (BRC-95) if there is one, otherwise the last.
 *
 * @throws BeefError (`BAD_BEEF`) if the bytes are no BEEF, it has no subject, or it has no atomic one and a child before its
 * parent: then its last transaction may not be the one that was meant.
 */
export function readBeef(beef: number[] | Uint8Array): ReadBeef {
  const read = known.get(beef)
  if (read !== undefined) return read
  const contents = parseBeef(beef instanceof Uint8Array ? beef : Uint8Array.from(beef))
  for (const each of [beef, contents.bytes]) known.set(each, contents)
  return contents
}

function parseBeef(bytes: Uint8Array): ReadBeef {
  const { atomicTxid, bumps, transactions, proven } = readBeefFrame(bytes)
  const views = new Map<string, TransactionView>()
  // The last entry, even if the transaction occurs earlier as well: engines verify that one, so it is the subject.
  let lastTxid: string | undefined
  const places = new Map<string, Place>()
  for (const [place, transaction] of transactions.entries()) {
    lastTxid = toHex(reversed(nativeHash256(transaction.raw)))
    const first = places.get(lastTxid)?.first ?? place
    places.set(lastTxid, { first, last: place, hasPath: proven.has(place) })
    views.set(lastTxid, Object.assign(transaction, { txid: lastTxid }))
  }
  if (atomicTxid === undefined && views.size > 1) requireParentsFirst(views, { places, lastTxid })
  const subjectTxid = atomicTxid ?? lastTxid
  const subject = subjectTxid === undefined ? undefined : views.get(subjectTxid)
  if (subject === undefined) throw new BeefError('the BEEF does not contain its subject transaction')

  let paths: Map<string, MerklePath> | undefined
  const proofs = new Map<string, Proof | undefined>()
  const proof = (txid: string): Proof | undefined => {
    if (proofs.has(txid)) return proofs.get(txid)
    paths ??= pathsByTxid(bumps)
    const path = paths.get(txid)
    const found = path && proofIn(path, txid)
    proofs.set(txid, found)
    return found
  }
  const { length } = bytes
  return { subject, transaction: (txid) => views.get(txid), proof, txids: [...views.keys()], length, bytes }
}

/** Where a transaction occurs in a BEEF, and whether it has a merkle path in the last place. */
interface Place {
  first: number
  last: number
  hasPath: boolean
}

/**
 * BRC-62: parents come first. Transactions with a merkle path need no parents: the SDK and others write them in any order, but
 * then the last one is no parent of another.
 */
function requireParentsFirst(
  views: ReadonlyMap<string, TransactionView>,
  { places, lastTxid }: { places: ReadonlyMap<string, Place>; lastTxid: string | undefined },
): void {
  for (const [child, { inputs }] of views) {
    const { last, hasPath } = places.get(child) ?? { last: 0, hasPath: false }
    const late = inputs.find(
      ({ txid }) => (places.get(txid)?.first ?? 0) > last && (!hasPath || txid === lastTxid),
    )
    if (late !== undefined)
      throw new BeefError(`the BEEF must have parents first (BRC-62): ${late.txid} comes after ${child}`)
  }
}

/** For each txid the first path with it among its leaves, as in the SDK. */
function pathsByTxid(bumps: Uint8Array[]): Map<string, MerklePath> {
  const paths = new Map<string, MerklePath>()
  for (const bump of bumps) {
    const path = readPath(bump)
    for (const txid of path.txids) if (!paths.has(txid)) paths.set(txid, path)
  }
  return paths
}

/**
 * The proof that a merkle path (BUMP, BRC-74) has for a transaction, trimmed to that transaction. Only a chain tracker knows
 * whether a block has its root.
 *
 * @throws BeefError if the bytes are no valid merkle path, or the transaction is not in it.
 */
export function readProof({ txid, bump }: { txid: string; bump: Uint8Array }): Proof {
  const proof = proofIn(readPath(bump), txid)
  if (proof === undefined) throw new BeefError(`the merkle path does not contain ${txid}`)
  return proof
}

/** Parses an untrusted merkle path. @throws BeefError if it is invalid. */
export function readPath(bump: Uint8Array): MerklePath {
  return new MerklePath(bump, { hash: nativeHash256, fail: (message) => new BeefError(message) })
}

/** The part of a merkle path that proves one transaction; undefined if it is not in there. */
export function proofIn(path: MerklePath, txid: string): Proof | undefined {
  const merklePath = cutPath(path, txid)
  const proof = merklePath && { merklePath, height: path.height, root: path.root }
  if (proof !== undefined) pathsOfProofs.set(proof, path)
  return proof
}

const pathsOfProofs = new WeakMap<Proof, MerklePath>()

/** The merkle path of a proof, parsed once: the one that it was cut from, if that is known. @throws BeefError */
export function pathOf(proof: Proof): MerklePath {
  return pathsOfProofs.get(proof) ?? readPath(proof.merklePath)
}
