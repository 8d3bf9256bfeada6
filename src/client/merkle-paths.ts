import { MerklePath } from '../../backend/src/protocol/merkle-path.js'
import type { Hash256 } from '../../backend/src/protocol/transaction.js'
import { ProofError } from './proof-error.js'

/** Where a merkle path says that a transaction is. */
export interface Place {
  height: number
  /** The merkle root that the path leads to, hex in shown order. */
  root: string
}

/** The merkle paths (BUMP, BRC-74) of a BEEF, asked by txid. */
export class MerklePaths {
  private readonly byTxid = new Map<string, Place & { bump: Uint8Array }>()

  /**
   * @param among The transactions that will be asked for; any unless set. Of a path nothing else is kept.
   * @throws ProofError `BAD_PATH` where one cannot be read, or does not lead to one root.
   */
  constructor(
    bumps: readonly Uint8Array[],
    private readonly hash: Hash256,
    among?: { has(txid: string): boolean },
  ) {
    for (const bump of bumps) {
      const path = this.read(bump)
      const { height, root } = path
      for (const txid of path.txids)
        if (!this.byTxid.has(txid) && among?.has(txid) !== false)
          this.byTxid.set(txid, { height, root, bump })
    }
  }

  /** Whether there is a path for a transaction, wherever it leads. */
  has(txid: string): boolean {
    return this.byTxid.has(txid)
  }

  /** Where the first path that has the transaction among its leaves says it is; undefined where none has. */
  place(txid: string): Place | undefined {
    const found = this.byTxid.get(txid)
    return found && { height: found.height, root: found.root }
  }

  /** That path without what proves other transactions, as bytes. */
  cut(txid: string): Uint8Array | undefined {
    const found = this.byTxid.get(txid)
    return found && this.read(found.bump).cut(txid)
  }

  private read(bump: Uint8Array): MerklePath {
    return new MerklePath(bump, { hash: this.hash, fail: (message) => new ProofError('BAD_PATH', message) })
  }
}
