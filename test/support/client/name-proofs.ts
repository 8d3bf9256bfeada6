import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { concatBytes, fromHex } from '../../../backend/src/protocol/bytes.js'
import { encodeOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { recordOf } from '../protocol/block.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK, p2pkh } from '../protocol/fake-chain.js'

/** Who knows the blocks of a fake chain: each holds one transaction, whose txid is the root. */
export class FakeHeaders {
  /** Roots that were asked for, in order. */
  readonly asked: string[] = []
  private readonly roots = new Map<string, number>()

  constructor(transactions: readonly FakeTransaction[] = []) {
    for (const each of transactions) this.add(each)
  }

  add<Each extends Pick<FakeTransaction, 'txid' | 'height'>>(transaction: Each): Each {
    this.roots.set(transaction.txid, transaction.height)
    return transaction
  }

  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    this.asked.push(root)
    return this.roots.get(root) === height
  }
}

/** An Outpoint BEEF (BRC-158) of records that stand parents first. */
export function outpointBeef(subject: Outpoint, records: TransactionRecord[]): Uint8Array {
  return concatBytes(fromHex('16a7beef'), encodeOutpoint(subject), encodeBeef(records))
}

/** The records of transactions, each in the block of its height but for those named. */
export function recordsOf(
  transactions: readonly FakeTransaction[],
  unproven: readonly FakeTransaction[] = [],
): TransactionRecord[] {
  return transactions.map((each) => recordOf(each, unproven.includes(each) ? undefined : each.height))
}

/** The proof of a name as an index gives it: everything from the genesis to the mint, which stands last. */
export function proofOf(
  transactions: readonly FakeTransaction[],
  options: { unproven?: readonly FakeTransaction[]; vout?: number } = {},
): Uint8Array {
  const last = transactions.at(-1)
  if (last === undefined) throw new Error('a proof holds something')
  const { vout = 2, unproven } = options
  return outpointBeef({ txid: last.txid, vout }, recordsOf(transactions, unproven))
}

/** The provenance of a tip in output `vout` of the last transaction. */
export function provenanceOf(
  transactions: readonly FakeTransaction[],
  options: { unproven?: readonly FakeTransaction[]; vout?: number } = {},
): Uint8Array {
  return proofOf(transactions, { vout: 0, ...options })
}

/** The output of a fake transaction. */
export function at({ txid }: FakeTransaction, vout: number): Outpoint {
  return { txid, vout }
}

/**
 * A tree in which `abc` was mined last: `b` before it from the root, and `ax` between, so that its line spends restated
 * nodes as well as new ones; and the name's ordinal moved on twice.
 */
export function namedWorld() {
  const chain = new FakeChain()
  const mints = {
    ...{ b: chain.mint('b'), a: chain.mint('a'), ax: chain.mint('ax') },
    ...{ ab: chain.mint('ab'), abc: chain.mint('abc') },
  }
  const { abc } = mints
  const line = [chain.genesis, ...Object.values(mints)]
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 500, lockingScript: OPEN_LOCK }] })
  const first = chain.move(abc, 2, p2pkh(2))
  // Behind another coin, whose value places it.
  const second = chain.spend({
    inputs: [at(purse, 0), at(first, 0)],
    outputs: [
      { satoshis: 500, lockingScript: p2pkh(0) },
      { satoshis: 1, lockingScript: p2pkh(3) },
    ],
  })
  const way = [abc, first, purse, second]
  return {
    chain,
    deployment: chain.deployment,
    mints,
    /** From the genesis to the mint of `abc`. */
    line,
    origin: at(abc, 2),
    purse,
    transfers: [first, second] as const,
    /** What shows that the ordinal is in output 1 of the last. */
    way,
    tip: at(second, 1),
    headers: new FakeHeaders([...line, ...way]),
  }
}
