import type { FakeChain, FakeTransaction } from '../../support/protocol/fake-chain.js'
import type { Environment } from '../../support/server/test-server.js'

/** A request of somebody who wants it to cost the host as much as it may. */
export interface HostileRequest {
  method?: 'GET' | 'HEAD' | 'POST'
  path: string
  headers?: Record<string, string | string[]>
  body?: Uint8Array | string
  /** The body is announced as longer than it is: the server waits for a rest that never comes. */
  unfinished?: boolean
  /** Sent so often at once on a connection of its own, of which no answer is read. */
  atOnce?: number
  /** Milliseconds between chunks of `chunkBytes` of the body; the answer is read as slowly. */
  slow?: { chunkBytes: number; everyMs: number }
}

/** What an attack finds in the server's store before it begins. */
export interface Fixture {
  chain: FakeChain
  /** Admits a transaction on its own, as proven; with ancestors, which count as proven too. */
  admit(transaction: FakeTransaction, ancestors?: readonly FakeTransaction[]): Promise<void>
  /** Submits a BEEF as it is. */
  submit(beef: Uint8Array): Promise<void>
}

/** What an attack sends: made once the store is filled. `index` counts from 0. */
export type RequestOf = (index: number) => HostileRequest

/** One way to make this host work for strangers, within its limits. */
export interface Attack {
  /** The command line and the table know it by this. */
  name: string
  /** What is sent, in a few words. */
  title: string
  /** Settings that the attack is about; all others have their defaults. */
  env?: Environment
  /** Whether the server checks proofs. */
  checksProofs?: boolean
  /** Fills the store, and gives what is to be sent then. */
  prepare(fixture: Fixture): Promise<RequestOf> | RequestOf
  /** How often it is sent by one client that uses its whole allowance, and on how many connections. */
  allowance: { requests: number; connections: number }
  /** The statuses that the documentation promises for it. A connection that is kept open counts as `held`. */
  statuses: (number | 'held')[]
}

/** What goes with the body of a submission to `tm_ordinals`. */
export const SUBMIT_HEADERS = {
  'Content-Type': 'application/octet-stream',
  'X-Topics': '["tm_ordinals"]',
}

/** The request that submits a BEEF to `tm_ordinals`. */
export function submitting(beef: Uint8Array, headers: Record<string, string> = {}): HostileRequest {
  return { method: 'POST', path: '/submit', headers: { ...SUBMIT_HEADERS, ...headers }, body: beef }
}

/** The request that posts JSON. */
export function postingJson(path: string, value: unknown): HostileRequest {
  const headers = { 'Content-Type': 'application/json' }
  return { method: 'POST', path, headers, body: JSON.stringify(value) }
}
