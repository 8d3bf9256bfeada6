import { parentsOf } from '../../../backend/src/graph/ancestry.js'
import type { GraphStore, TransactionSource } from '../../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { assembleBeef, encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { placement } from '../../../backend/src/protocol/ordinal-flow.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import type { ChainSource } from '../sources/chain-source.js'
import { FollowError } from '../sources/errors.js'

/** The limits of a submission. */
export interface GatherLimits {
  maxTransactions: number
  maxBytes: number
}

interface GatherOptions {
  store: Pick<GraphStore, 'transactions'>
  source: Pick<ChainSource, 'transaction'>
  limits: GatherLimits
  /** How many unproven transactions the source may be asked for; by default, any number within the limits. */
  maxUnproven?: number
}

/** A transaction with everything that is needed to admit it. */
export interface Gathered {
  /** The transaction with the fetched ones that place its ordinals; if it is unproven, with its ancestors down to proven ones. */
  beef: Uint8Array
  /** Those of these that were not in the store. */
  fetched: string[]
  /** How many of those are unproven. */
  unproven: number
  /** Parents that place its ordinals, and that neither the store nor the source knows. */
  unknown: string[]
}

/** Of how many parents it is looked up first whether the store has all of them. */
const FEW_PARENTS = 100

/**
 * Gathers the ancestors that a topic needs to admit a transaction: of the inputs, as many as place the last output that may be
 * an ordinal (BRC-159). The source is asked only for what the store lacks, and a proven transaction comes with nothing else:
 * an admission finds the rest in the store.
 *
 * @throws FollowError `TOO_LARGE` or `TOO_MANY` if they exceed the limits of a submission, `UNPROVEN` if too many are
 * unproven; errors of the source.
 */
export async function gather(subject: TransactionRecord, options: GatherOptions): Promise<Gathered> {
  const { txid, raw, proof } = subject
  const { inputs, outputs } = readTransaction(raw, { txid })
  if (proof !== undefined && hasAll(parentsOf({ inputs }), options.store))
    return { beef: encodeBeef([subject]), fetched: [], unproven: 0, unknown: [] }
  const reader = new GatheringReader(subject, options)
  const placing: string[] = []
  const unknown = new Set<string>()
  const last = outputs.findLastIndex(({ satoshis }) => satoshis === 1)
  const isPlaced = placement({ outputValues: outputs.map(({ satoshis }) => satoshis), output: last })
  for (const { txid, vout } of last === -1 ? [] : inputs) {
    const record = await reader.get(txid)
    if (record === undefined) unknown.add(txid)
    else if (proof === undefined || reader.fetched.has(txid)) placing.push(txid)
    if (isPlaced(record && readTransaction(record.raw, { txid }).outputs[vout]?.satoshis)) break
  }
  const beef = await assembleBeef([...placing, txid], reader)
  if (beef === undefined) throw new RangeError(`${txid} is missing from its own BEEF`)
  const { fetched, unproven } = reader
  return { beef, fetched: [...fetched], unproven, unknown: [...unknown] }
}

function hasAll(txids: string[], { transactions }: GatherOptions['store']): boolean {
  return txids.length <= FEW_PARENTS && txids.every((txid) => transactions.has(txid))
}

/** Reads transactions from the store, and others from the source; each once, up to the limits. */
class GatheringReader implements TransactionSource {
  /** What came from the source, and how many of those are unproven. */
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
