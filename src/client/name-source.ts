import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { SourceError } from './source-error.js'

/** What an index shows for a name: nothing of it is believed before it is checked. */
export type Evidence =
  /** A proof of the origin and a provenance of the tip, each an Outpoint BEEF (BRC-158), beside what it says they are. */
  | { form: 'proofs'; origin: Outpoint; tip: Outpoint; proof: Uint8Array; provenance: Uint8Array }
  /** One BEEF with all of it, and the output that is the tip; without a txid, of the BEEF's subject. */
  | { form: 'history'; beef: Uint8Array; tip: { txid?: string; vout: number } }

/** What an index says of a name. */
export type IndexAnswer =
  | {
      kind: 'claimed'
      evidence: Evidence
      /** Whether the index says that something spends the tip it shows; undefined where it does not say. */
      spent?: boolean
    }
  /** The name is not claimed, or its ordinal was burnt: that nothing is there, nobody can prove. */
  | { kind: 'not-claimed' }
  | { kind: 'failed'; error: SourceError }

/** An answer, and the index that gave it: a URL. */
export type IndexReply = { index: string } & IndexAnswer

/** How far one index is waited for and read. */
export interface AskBounds {
  /** For all that is asked of it, in milliseconds. */
  timeout?: number
  /** What is read of all its answers together, in bytes. */
  maxBytes?: number
  /** Gives the question up. */
  signal?: AbortSignal
}

/** Where names are asked for: one index, or several that are found together. */
export interface NameSource {
  /** What it is called in reports where it does not answer at all. */
  readonly index?: string
  /**
   * One reply for each index that was asked. What an index does wrong is a reply, and no rejection. A source that does not
   * keep to the bounds is left behind when they are over.
   */
  ask(name: string, bounds?: AskBounds): Promise<IndexReply[]>
  /**
   * Finds the indexes that the source stands for, which are then asked and bounded each by itself.
   *
   * @throws SourceError where none is found.
   */
  find?(bounds?: AskBounds): Promise<NameSource[]>
  /** How many it finds at the most; 1 unless set. */
  readonly maxIndexes?: number
}
