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

/** Where names are asked for: one index, or several that are found together. */
export interface NameSource {
  /** One reply for each index that was asked. What an index does wrong is a reply, and no rejection. */
  ask(name: string): Promise<IndexReply[]>
}
