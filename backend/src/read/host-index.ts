import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { OnRefusal } from '../graph/admission-rules.js'
import { memoizeByObject } from '../graph/memoize-by-object.js'
import type { RootChecker, SubmitMode } from '../graph/overlay-interfaces.js'
import { pinnedTree, pinTree, type Settings, treeDifference } from '../graph/pinned-tree.js'
import type { BeefContents, ReadBeef } from '../graph/read-beef.js'
import type { OrdinalsPolicy } from '../graph/topic-rules.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import { CodedError } from '../protocol/coded-error.js'
import type { Deployment } from '../protocol/mint.js'
import type { TransactionView } from '../protocol/transaction.js'
import type { GraphReads } from './fact-store.js'

/**
 * State shared by the topic managers and lookup services of one process in the host of another engine, which constructs them one
 * by one, often without options (`docs/plugin.md`).
 */

export type IndexReader = Pick<GraphReads, 'opened' | 'transactions' | 'names' | 'ordinals'> & {
  /** In the host of another engine: submissions that topic managers see before anybody has verified them. */
  submissions?: SeenSubmissions
}

export interface SeenSubmissions {
  /** @param mode How it came to the engine. */
  see(beef: ReadBeef, mode: SubmitMode | undefined): void
  /** Called if the engine refuses it after all. */
  refuse(txid: string): void
}

export interface HostRules {
  /** The tree to follow, once a topic manager or service of names is configured. */
  deployment?: Deployment
  policy?: OrdinalsPolicy
  /** The host's chain tracker, once it is known. */
  chainTracker?: RootChecker
}

/** The rules of a store, completed by each topic manager and lookup service that is configured over it. */
export const hostRules = memoizeByObject((_store: object): HostRules => ({}))

const MAX_BYTES = 16 * 1024 * 1024

/** The latest BEEFs, by the txids of their subjects, up to a total of bytes; the last one however large it is. */
export function recentBeefs(): LRUCache<string, ReadBeef> {
  return new LRUCache({ maxSize: MAX_BYTES, sizeCalculation: ({ length }) => Math.min(length, MAX_BYTES) })
}

/** The latest BEEFs that engines received from peers while syncing. */
export const syncedBeefs = recentBeefs()

/**
 * A BEEF completed by parents of its subject that were synced separately: a syncing engine passes on one transaction at a time,
 * without its parents. They are authentic, as the subject names them by their hash.
 */
export function withSources(beef: BeefContents): BeefContents {
  const sources = new Map<string, BeefContents>()
  for (const { txid } of beef.subject.inputs) {
    const synced = beef.transaction(txid) === undefined ? syncedBeefs.get(txid) : undefined
    if (synced !== undefined) sources.set(txid, synced)
  }
  if (sources.size === 0) return beef
  return {
    ...beef,
    transaction: (txid) => beef.transaction(txid) ?? sources.get(txid)?.subject,
    txids: [...sources.keys(), ...beef.txids],
  }
}

let current: IndexReader | undefined

/** Makes a store the one that topic managers without options consult: that of the lookup service configured last. */
export function shareIndex(store: IndexReader | undefined): void {
  current = store
}

/** The store that the lookup services of this process have opened, if any. */
export function sharedIndex(): IndexReader | undefined {
  return current
}

/** A database holds a tree of another genesis, or with other rules: the nodes of two would be mixed up. */
export class OtherTreeError extends CodedError {
  override readonly name = 'OtherTreeError'
  readonly code = 'OTHER_TREE'
}

/**
 * Whether an engine may be asking if a peer has to send the inputs of a transaction. It asks that about mined ones, before
 * anybody has verified them: nothing is admitted then that the index could still find to be something else.
 */
export function asksForInputs({ subject, proof }: BeefContents, mode: SubmitMode | undefined): boolean {
  return mode === 'historical-tx' && proof(subject.txid) !== undefined
}

/**
 * The answer by the index, or the one without it. Current engines drop a transaction if a topic manager throws, and 0.4.6 also
 * the coins that it spends. It is better kept, for the index to judge when it is back.
 *
 * @throws OtherTreeError
 */
export async function ifAvailable<Answer>(
  index: IndexReader | undefined,
  read: () => Awaitable<Answer>,
  otherwise: Answer | Promise<Answer>,
): Promise<Answer> {
  try {
    await index?.opened?.()
    return await read()
  } catch (error) {
    if (error instanceof OtherTreeError) throw error
    return await otherwise
  }
}

/**
 * The inputs whose coins an engine must retain: history is the product. The engine names those that it has stored when it asks.
 * 0.4.6, which passes no mode, looks again after the answer, and drops coins stored meanwhile unless they are retained, too: so
 * it gets all inputs that may be coins.
 */
export function coinsToRetain(
  { subject, transaction }: BeefContents,
  {
    previousCoins,
    mode,
    mayAdmit,
  }: {
    previousCoins: number[]
    mode: SubmitMode | undefined
    mayAdmit: (spent: TransactionView, vout: number) => boolean
  },
): number[] {
  if (mode !== undefined) return previousCoins
  const known = new Set(previousCoins)
  return subject.inputs.flatMap(({ txid, vout }, input) => {
    const spent = transaction(txid)
    return known.has(input) || spent === undefined || mayAdmit(spent, vout) ? [input] : []
  })
}

/** The outputs that a topic admits; none, with a refusal, if the database holds another tree. */
export async function unlessOtherTree(
  admitted: () => Promise<number[]>,
  { topic, txid, onRefusal }: { topic: string; txid: string; onRefusal: OnRefusal },
): Promise<number[]> {
  try {
    return await admitted()
  } catch (error) {
    if (!(error instanceof OtherTreeError)) throw error
    const { code, message } = error
    onRefusal({ topic, txid, code, message })
    return []
  }
}

/**
 * Pins the tree that a host follows in its database, once.
 *
 * @returns The tree of the database, also if this host has no service of names: others may, and all derive the same.
 * @throws OtherTreeError if the database holds another one.
 */
export async function pinHostTree(
  settings: Settings,
  deployment: Deployment | undefined,
): Promise<Deployment | undefined> {
  if (deployment !== undefined) {
    await pinTree(settings, deployment)
    const difference = await treeDifference(settings, { ...deployment, place: 'this database' })
    if (difference !== undefined) throw new OtherTreeError(`${difference}: give each tree its own database`)
  }
  const tree = await pinnedTree(settings)
  // By the object, topic managers remember what they have found in a transaction.
  return isDeepStrictEqual(tree, deployment) ? deployment : tree
}
