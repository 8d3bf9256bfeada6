import type { SightingRecord } from '../../backend/src/graph/conflict-resolution.js'
import type { Proof as StoredProof } from '../../backend/src/graph/records.js'
import { encodeBeef } from '../../backend/src/graph/write-beef.js'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import { type Answer, ask as askServer } from '../support/server/test-server.js'
import type { BlockedItem } from './answers.js'
import type { Proof } from './decision.js'
import type { HistoryTransaction } from './history.js'
import type { Model } from './model.js'

export type { Answer }

export interface Question {
  path: string
  /** Sent by POST. */
  body?: Uint8Array | string
  headers?: Record<string, string>
}

/** What a host answers and what the model says, by question, as far as they are not the same. */
export type Differences = Record<string, { got: unknown; expected: unknown }>

export async function ask(url: string, { path, body, headers = {} }: Question): Promise<Answer> {
  const method = body === undefined ? 'GET' : 'POST'
  return await askServer(url, path, { method, headers, ...(body !== undefined && { body }) })
}

export const ADMIN_TOKEN = 'a-token-of-the-operator'

/** A transaction in a BEEF, with its proof or without. */
export interface Enclosed {
  transaction: HistoryTransaction
  proof?: StoredProof | undefined
}

/** Something that serves a store over HTTP and follows the chain of a history. */
export abstract class Host {
  abstract readonly url: string

  /** Ends the host while requests may be under way, and starts another on what is left; for hosts that can be. */
  kill?(): Promise<void>
  restart?(): Promise<void>
  /** Starts again with a policy that refuses these types of content, for hosts that can. */
  refuseTypes?(types: readonly string[]): Promise<void>
  /** Starts again with another tracker, for hosts that can. */
  decideBy?(tracker: ProofTracker): Promise<void>
  /** Drops what nobody has seen, as the operator can. @returns How many transactions. */
  prune?(): Promise<number>
  /** Asks a lookup service for outpoints, for hosts whose `/lookup` is not of this package. */
  lookup?(service: string, query: object): Promise<string[] | number>
  /** The places of transactions in its log, for hosts whose log can be read. */
  placesInLog?(): ReadonlyMap<string, number>
  /** What its tables hold other than the model says, for hosts whose tables can be read. */
  storedDifferences?(model: Model): Promise<Differences>

  /** Lets it learn that the chain has changed from a height on. */
  abstract follow(height: number): Promise<void>

  /** What decides which proofs count. */
  get tracker(): ProofTracker {
    return 'tracker'
  }

  /** Told when the chain has changed, for hosts that get its headers at once. */
  chainChanged?(): Promise<void>

  /** Takes what it holds that has become final, for hosts that do so when they are asked. */
  release?(): Promise<void>

  /**
   * What became there of a proof that the chain has taken back: it counts for the time being, it is gone, or its block is refused,
   * whatever else leads to it. One that follows each change at once has refused it.
   */
  async fateOf(_txid: string, _proof: Proof): Promise<'held' | 'gone' | 'refused'> {
    return 'refused'
  }

  /** Records what the network said of a transaction. False: this host cannot be reached in that way. */
  async sight(_record: SightingRecord): Promise<boolean> {
    return false
  }

  /** Waits until nothing is left to be done of what came so far. */
  async untilIdle(): Promise<void> {}

  /** Submits a BEEF of these, of which the last is the subject. */
  async submit(members: readonly Enclosed[], topics: readonly string[]): Promise<Answer> {
    const beef = encodeBeef(
      members.map(({ transaction: { raw }, proof }) => ({ raw, ...(proof && { proof }) })),
    )
    return await this.submitBeef(beef, topics)
  }

  async submitBeef(beef: Uint8Array, topics: readonly string[]): Promise<Answer> {
    const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': JSON.stringify(topics) }
    return await ask(this.url, { path: '/submit', body: beef, headers })
  }

  /** Brings a proof alone, as a transaction processor does. */
  async ingest(txid: string, merklePath: string): Promise<Answer> {
    return await this.post('/arc-ingest', { txid, merklePath })
  }

  /** Brings a status alone, as a transaction processor does. */
  async callback(txid: string, txStatus: string): Promise<Answer> {
    return await this.post('/arc-ingest', { txid, txStatus })
  }

  async block({ kind, value }: BlockedItem): Promise<Answer> {
    return await this.post('/admin/block', { [kind]: value, reason: 'a test' })
  }

  async unblock({ kind, value }: BlockedItem): Promise<Answer> {
    return await this.post('/admin/unblock', { [kind]: value })
  }

  protected async post(path: string, value: unknown): Promise<Answer> {
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${ADMIN_TOKEN}` }
    return await ask(this.url, { path, body: JSON.stringify(value), headers })
  }
}
