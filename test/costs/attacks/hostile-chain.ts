import { fromHex, joinBytes } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import type { FakeOutput, FakeTransaction } from '../../support/fake-chain.js'
import { encodeTransaction, type FakeInput, varint } from '../../support/raw-transaction.js'

/** A coin that nobody here made, told apart by a number. */
export function unknownCoin(seed: number): Outpoint {
  return { txid: seed.toString(16).padStart(16, '0').padStart(64, 'd'), vout: 0 }
}

/** A transaction of exactly these inputs and outputs, smaller than those of a fake chain, and quicker to make. */
export function bareTransaction(parts: {
  inputs: readonly (Outpoint | FakeInput)[]
  outputs: readonly FakeOutput[]
  height?: number
  lockTime?: number
}): FakeTransaction {
  const inputs = parts.inputs.map(
    (input): FakeInput =>
      'outpoint' in input ? input : { outpoint: input, unlockingScript: new Uint8Array() },
  )
  const raw = encodeTransaction({ ...parts, inputs })
  const transaction = readTransaction(raw)
  const { txid } = transaction
  return {
    ...{ txid, raw, transaction, height: parts.height ?? 700_000 },
    outpoint: (vout) => formatOutpoint({ txid, vout }),
  }
}

/** A BEEF (BRC-62) without merkle paths: none of its transactions is proven. */
export function unprovenBeef(transactions: readonly FakeTransaction[]): Uint8Array {
  const members = transactions.flatMap(({ raw }) => [raw, Uint8Array.of(0)])
  return joinBytes([fromHex('0100beef00'), varint(transactions.length), ...members])
}

/** A script that anything unlocks. */
export const ANYONE = Uint8Array.of(0x51)
