import { readBeef } from './read-beef.js'

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
  whole(beef: number[] | Uint8Array): number[] | Uint8Array {
    return this.beefs.get(readBeef(beef).subject.txid) ?? beef
  }

  forget(txid: string): void {
    this.bytes -= this.beefs.get(txid)?.length ?? 0
    this.beefs.delete(txid)
  }
}

/** Those of this process: a host makes topic managers and lookup services apart from each other. */
export const seenBeefs = new SeenBeefs()
