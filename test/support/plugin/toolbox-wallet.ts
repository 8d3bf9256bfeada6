import { MerklePath } from '@bsv/sdk'
import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  FakeChain,
  type FakeCoin,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../protocol/fake-chain.js'

/**
 * Makes transactions that a host verifies, mined or not, and sends them as the SDK's `toBEEF()` writes them: with ancestors
 * down to the first proven ones, so that a mined transaction is alone.
 */
export class ToolboxWallet {
  readonly chain = new FakeChain()
  private readonly known = new Map<string, FakeTransaction>()
  private readonly mined = new Set<string>()

  constructor() {
    this.keep(this.chain.genesis, true)
  }

  /** A mint of a name; not mined yet unless that is said. */
  mint(
    name: string,
    overrides: Parameters<FakeChain['mint']>[1] & { mined?: boolean } = {},
  ): FakeTransaction {
    const { mined = false, ...others } = overrides
    const mint = this.chain.mint(name, { ownerLock: OPEN_LOCK, funding: [this.coin()], ...others })
    return this.keep(mint, mined)
  }

  /** Moves the ordinal in an output to the first output of another transaction. */
  transfer(
    transaction: FakeTransaction,
    vout: number,
    { mined = false, before = [] }: { mined?: boolean; before?: FakeCoin[] } = {},
  ): FakeTransaction {
    // As many satoshis before the ordinal as the coins before it have, which are all worth 1000.
    const outputs = [...before.map(() => 1000), 1].map((satoshis) => ({ satoshis, lockingScript: OPEN_LOCK }))
    const inputs = [...before, { transaction, vout }, this.coin()]
    return this.keep(this.chain.spend({ inputs, outputs }), mined)
  }

  /** Moves the ordinal in an output to the first of several files, one an output. */
  show(
    transaction: FakeTransaction,
    vout: number,
    files: { contentType: string; text: string }[],
  ): FakeTransaction {
    const outputs = files.map(({ contentType, text }) => ({
      satoshis: 1,
      lockingScript: inscriptionScript({ contentType, body: utf8(text), lock: OPEN_LOCK }),
    }))
    return this.keep(this.chain.spend({ inputs: [{ transaction, vout }, this.coin()], outputs }), false)
  }

  /** Spends the ordinal in an output into an output of more satoshis, which ends it. */
  burn(transaction: FakeTransaction, vout: number): FakeTransaction {
    const outputs = [{ satoshis: 500, lockingScript: OPEN_LOCK }]
    return this.keep(this.chain.spend({ inputs: [this.coin(), { transaction, vout }], outputs }), false)
  }

  /** An inscription, paid for by a coin. */
  inscribe(text: string, coin: FakeCoin = this.coin()): FakeTransaction {
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text), lock: OPEN_LOCK })
    return this.keep(this.chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript }] }), false)
  }

  /** A mined coin of 1000 satoshis, which anybody can spend. */
  coin(): FakeCoin {
    const lockingScript = OPEN_LOCK
    const outputs = [1000, 1000].map((satoshis) => ({ satoshis, lockingScript }))
    return { transaction: this.keep(this.chain.spend({ inputs: [], outputs }), true), vout: 0 }
  }

  /** Puts a transaction into a block. */
  mine({ txid }: FakeTransaction): void {
    this.mined.add(txid)
  }

  isMined({ txid }: FakeTransaction): boolean {
    return this.mined.has(txid)
  }

  /** Transactions, and all that they are built on. */
  ancestry(transactions: readonly FakeTransaction[]): Set<FakeTransaction> {
    const all = new Set(transactions)
    for (const each of all)
      for (const { txid } of each.transaction.inputs) {
        const source = this.known.get(txid)
        if (source !== undefined) all.add(source)
      }
    return all
  }

  /** As `toBEEF()` writes it. */
  beef(subject: FakeTransaction): Uint8Array {
    const ancestors: FakeTransaction[] = []
    const add = (transaction: FakeTransaction): void => {
      if (this.mined.has(transaction.txid)) return
      for (const { txid } of transaction.transaction.inputs) {
        const source = this.known.get(txid)
        if (source === undefined || ancestors.includes(source)) continue
        add(source)
        ancestors.push(source)
      }
    }
    add(subject)
    return beefOf(subject, {
      proven: this.mined.has(subject.txid),
      with: ancestors,
      unproven: ancestors.filter(({ txid }) => !this.mined.has(txid)),
    })
  }

  /** What a broadcaster tells a host when a transaction is mined. */
  proof({ txid, height }: FakeTransaction): { txid: string; merklePath: string; blockHeight: number } {
    const path = new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
    return { txid, merklePath: toHex(Uint8Array.from(path.toBinary())), blockHeight: height }
  }

  private keep(transaction: FakeTransaction, mined: boolean): FakeTransaction {
    this.known.set(transaction.txid, transaction)
    if (mined) this.mined.add(transaction.txid)
    return transaction
  }
}
