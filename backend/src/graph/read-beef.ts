import { BeefError, readBeefFrame } from '../protocol/beef.js'
import { reversed, toHex } from '../protocol/bytes.js'
import { MerklePath } from '../protocol/merkle-path.js'
import type { TransactionView } from '../protocol/transaction.js'
import { nativeHash256 } from './native-hash.js'
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
  if (subject === undefined) throw new BeefError('the BEEF does not hold its subject transaction')

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

/**
 * The proof that a merkle path (BUMP, BRC-74) holds for a transaction, cut down to that transaction alone. Whether a block
 * has its root is for a chain tracker to say.
 *
 * @throws BeefError where the bytes are no merkle path that holds together, or one that does not hold the transaction.
 */
export function readProof({ txid, bump }: { txid: string; bump: Uint8Array }): Proof {
  const proof = proofIn(readPath(bump), txid)
  if (proof === undefined) throw new BeefError(`the merkle path does not hold ${txid}`)
  return proof
}

/** A merkle path that a stranger has sent. @throws BeefError where it does not hold together. */
export function readPath(bump: Uint8Array): MerklePath {
  return new MerklePath(bump, { hash: nativeHash256, fail: (message) => new BeefError(message) })
}

/** What of a merkle path proves one of the transactions in it; undefined where it is not there. */
export function proofIn(path: MerklePath, txid: string): Proof | undefined {
  const merklePath = path.cut(txid)
  return merklePath && { merklePath, height: path.height, root: path.root }
}

const MAX_BYTES = 16 * 1024 * 1024

/**
 * The BEEFs that topic managers were asked about last, for the lookup services of the same process.
 *
 * The engine hands a lookup service the transaction with a BEEF that it makes anew, and that ends at the first proof: of a
 * transaction that came proven, what it spends is not in it, and without those values nobody can tell which coin an
 * ordinal continues. The topic manager was given all that came.
 */
export class SeenBeefs {
  private readonly beefs = new Map<string, number[] | Uint8Array>()
  private bytes = 0

  /** @param maxBytes How many bytes of BEEF are kept, beside the last one. */
  constructor(private readonly maxBytes = MAX_BYTES) {}

  /** @throws BeefError where it cannot be read. */
  remember(beef: number[] | Uint8Array): void {
    const { txid } = readBeef(beef).subject
    this.forget(txid)
    for (const [oldest] of this.beefs) {
      if (this.bytes + beef.length <= this.maxBytes) break
      this.forget(oldest)
    }
    this.beefs.set(txid, beef)
    this.bytes += beef.length
  }

  /**
   * What came with the subject of a BEEF, where that is known; else the BEEF itself.
   *
   * @throws BeefError where it cannot be read.
   */
  complete(beef: number[] | Uint8Array): number[] | Uint8Array {
    return this.beefs.get(readBeef(beef).subject.txid) ?? beef
  }

  forget(txid: string): void {
    this.bytes -= this.beefs.get(txid)?.length ?? 0
    this.beefs.delete(txid)
  }
}

/** Those of this process: a host makes topic managers and lookup services apart from each other. */
export const seenBeefs = new SeenBeefs()
