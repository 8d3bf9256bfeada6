import { Transaction } from '@bsv/sdk'

/** A mint that was signed, and left the process that signed it. */
export interface SignedMint {
  txid: string
  /** In satoshis: what goes in, less what comes out. */
  fee: number
  /** What pays for it: the outpoints of all inputs but the first, which spends the node. */
  coins: string[]
  /** Who saw it: the index, ARC or the wallet. */
  seenBy: Set<string>
}

/** The signed mints that hostile services saw, each once. */
export class Ledger {
  private readonly mints = new Map<string, SignedMint>()

  get signed(): SignedMint[] {
    return [...this.mints.values()]
  }

  /** The fees of all of them, in satoshis. */
  get paid(): number {
    return this.signed.reduce((sum, { fee }) => sum + fee, 0)
  }

  note(transaction: Transaction, seenBy: string): SignedMint {
    const txid = transaction.id('hex')
    const known = this.mints.get(txid)
    if (known !== undefined) {
      known.seenBy.add(seenBy)
      return known
    }
    const { inputs, outputs } = transaction
    const into = inputs.reduce((sum, { sourceTransaction, sourceOutputIndex }) => {
      return sum + (sourceTransaction?.outputs[sourceOutputIndex]?.satoshis ?? 0)
    }, 0)
    const outOf = outputs.reduce((sum, { satoshis = 0 }) => sum + satoshis, 0)
    const coins = inputs.slice(1).map(({ sourceTXID, sourceTransaction, sourceOutputIndex }) => {
      return `${sourceTXID ?? sourceTransaction?.id('hex')}_${sourceOutputIndex}`
    })
    const mint = { txid, fee: into - outOf, coins, seenBy: new Set([seenBy]) }
    this.mints.set(txid, mint)
    return mint
  }

  /** Notes the subject of a BEEF, where it is one. */
  noteBeef(beef: Uint8Array, seenBy: string): SignedMint | undefined {
    try {
      return this.note(Transaction.fromBEEF(Array.from(beef)), seenBy)
    } catch {
      return undefined
    }
  }

  /** Pairs of mints that spend one coin, as `<txid> <txid>`. */
  get doubleSpends(): string[] {
    const found: string[] = []
    const spenders = new Map<string, string>()
    for (const { txid, coins } of this.signed) {
      for (const coin of coins) {
        const other = spenders.get(coin)
        if (other !== undefined) found.push(`${other} ${txid}`)
        spenders.set(coin, txid)
      }
    }
    return [...new Set(found)]
  }
}
