import type { Outpoint } from '../protocol/outpoint.js'

/** An output that an engine admitted to a topic, as its own storage has it. */
export interface EngineOutput {
  /** Later outputs have higher ids; of several that are stored at once, a lower one may become visible last. */
  id: number
  topic: string
  outpoint: Outpoint
}

/**
 * The storage of a host's engine: what it admitted, whether or not it lived to call the hooks. A transaction that it had
 * answered is not sent again.
 */
export interface EngineOutputs {
  /** Those of some topics after an id, by id. */
  page(query: { topics: readonly string[]; after: number; limit: number }): Promise<EngineOutput[]>
  /** The BEEF with which a transaction was submitted. */
  beefOf(txid: string): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

/** Opens the storage of the host's engine; undefined if the database has none of a known form. */
export type OpenEngineOutputs = () => Promise<EngineOutputs | undefined>
