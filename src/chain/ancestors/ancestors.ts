import { parentsOf } from '../../../backend/src/graph/ancestry.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { readOutline, type TransactionSource } from '../../../backend/src/graph/stored-transaction.js'
import { assembleBeef, encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { placement } from '../../../backend/src/protocol/ordinal-flow.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { ChainSource } from '../sources/chain-source.js'
import { ChainSourceError, FollowError } from '../sources/errors.js'

/** The result of submitting a transaction to a node. */
export type Admission =
  | { kind: 'admitted'; outputs: number }
  /** Every topic that admits the transaction has it already. */
  | { kind: 'known' }
  /** The transaction is valid, but no topic admits any of it, for the reasons in `codes`. */
  | { kind: 'passed over'; why: string; codes: string[] }
  /** The transaction is invalid or conflicted. */
  | { kind: 'refused'; why: string }

export interface GatherLimits {
  maxTransactions: number
  maxBytes: number
}

interface GatherOptions {
  store: Pick<FactStore, 'transactions'>
  source: Pick<ChainSource, 'transaction'>
  limits: GatherLimits
  /** The most unproven transactions that the source may be asked for; by default, any number within the limits. */
  maxUnproven?: number
  /** The output to place; by default, the last one that may be an ordinal. */
  placed?: number | undefined
}

/** A transaction with everything needed to admit it. */
export interface Gathered {
  /** The transaction with the fetched ones that place its ordinals; if it is unproven, with its ancestors down to proven ones. */
  beef: Uint8Array
  /** The transactions in `beef` that were not in the store. */
  fetched: string[]
  /** How many of `fetched` are unproven. */
  unproven: number
  /** A parent that places its ordinals, but that neither the store nor the source knows. */
  unknown?: string
  /** Why parents of a proven transaction are missing. It can be admitted without them, and the others are not fetched again. */
  failure?: FollowError | ChainSourceError
}

/** Up to this many parents, it is checked first whether the store has all of them. */
const FEW_PARENTS = 100

/**
 * Gathers the ancestors that a topic needs to admit a transaction: only as many inputs as it takes to place an output (BRC-159).
 * The source is asked only for transactions that the store lacks. A proven transaction comes with no other ancestors: the
 * admission finds the rest in the store.
 *
 * @throws FollowError `TOO_LARGE` or `TOO_MANY` if the ancestors of an unproven transaction exceed the limits of a submission,
 * `UNPROVEN` if too many are unproven; errors of the source. A proven one comes with its `failure` instead.
 */
export async function gather(subject: TransactionRecord, options: GatherOptions): Promise<Gathered> {
  const { txid, raw, proof } = subject
  const { inputs, outputs } = readTransaction(raw, { txid })
  if (proof !== undefined && hasAll(parentsOf({ inputs }), options.store))
    return { beef: encodeBeef([subject]), fetched: [], unproven: 0 }
  const { transactions } = options.store
  const reader = new GatheringReader(subject, options)
  const placing: string[] = []
  let unknown: string | undefined
  const output = options.placed ?? outputs.findLastIndex(({ satoshis }) => satoshis === 1)
  const isPlaced = placement({ outputValues: outputs.map(({ satoshis }) => satoshis), output })
  // A transaction may spend thousands of outputs of one parent.
  const read = new Map<string, readonly number[] | undefined>()
  const valuesOf = async (parent: string): Promise<readonly number[] | undefined> => {
    const stored = proof === undefined ? undefined : await readOutline(parent, transactions)
    if (stored !== undefined) return stored.outputValues
    const record = await reader.get(parent)
    if (record === undefined) unknown = parent
    else placing.push(parent)
    return record && readTransaction(record.raw, { txid: parent }).outputs.map(({ satoshis }) => satoshis)
  }
  let failure: Gathered['failure']
  try {
    for (const { txid: parent, vout } of output === -1 ? [] : inputs) {
      if (!read.has(parent)) read.set(parent, await valuesOf(parent))
      const satoshis = read.get(parent)?.[vout]
      // After an unknown value, nothing can be placed.
      if (satoshis === undefined || isPlaced(satoshis)) break
    }
  } catch (error) {
    const isOfSource = error instanceof FollowError || error instanceof ChainSourceError
    if (proof === undefined || !isOfSource) throw error
    failure = error
  }
  const beef = await assembleBeef([...placing, txid], reader)
  if (beef === undefined) throw new RangeError(`${txid} is missing from its own BEEF`)
  const { fetched, unproven } = reader
  return { beef, fetched: [...fetched], unproven, ...(unknown && { unknown }), ...(failure && { failure }) }
}

function hasAll(txids: string[], { transactions }: GatherOptions['store']): boolean {
  return txids.length <= FEW_PARENTS && txids.every((txid) => transactions.has(txid))
}

/** Reads transactions from the store, and those it lacks from the source; each once, up to the limits. */
class GatheringReader implements TransactionSource {
  /** The transactions that came from the source, and how many of them are unproven. */
  readonly fetched = new Set<string>()
  unproven = 0
  private readonly found = new Map<string, TransactionRecord | undefined>()
  private bytes = 0

  constructor(
    private readonly subject: TransactionRecord,
    private readonly options: GatherOptions,
  ) {
    this.found.set(subject.txid, subject)
  }

  async get(txid: string): Promise<TransactionRecord | undefined> {
    if (this.found.has(txid)) return this.found.get(txid)
    const { store, source, limits, maxUnproven = Number.POSITIVE_INFINITY } = this.options
    const { txid: subject } = this.subject
    const about = `the ancestors of ${subject}`
    if (this.found.size >= limits.maxTransactions)
      throw new FollowError('TOO_MANY', `${about} are more than a submission may have`)
    let record = store.transactions.get(txid)
    if (record === undefined) {
      record = await source.transaction(txid, limits)
      if (record !== undefined) this.fetched.add(txid)
      if (record !== undefined && record.proof === undefined && ++this.unproven > maxUnproven)
        throw new FollowError(
          'UNPROVEN',
          `${subject} is unmined, and so are too many of its ancestors: it will be followed once it is mined`,
        )
    }
    this.bytes += record?.raw.length ?? 0
    if (this.bytes > limits.maxBytes)
      throw new FollowError('TOO_LARGE', `${about} are longer than a submission may be`)
    this.found.set(txid, record)
    return record
  }
}
