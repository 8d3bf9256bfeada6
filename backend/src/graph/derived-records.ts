import type { Outpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
import { readTransaction } from '../protocol/transaction.js'
import { flowOf } from './flow.js'
import type { TransactionReader } from './graph-store.js'
import { namesRecords } from './names-records.js'
import { ordinalsRecords } from './ordinals-records.js'
import type { BeefContents } from './read-beef.js'
import { type GraphRecords, mergeRecords } from './records.js'
import { transactionRecords } from './transaction-records.js'
import type { Admitted } from './upkeep.js'

/**
 * What the admissions of a transaction's outputs tell, told once more: of the bytes alone, as the hooks told it when the
 * transaction came.
 *
 * @param options.genesis The root of the tree that is followed; without one, there are no names.
 * @throws RangeError where an output is held that the transaction does not have.
 */
export async function derivedRecords(options: {
  txid: string
  raw: Uint8Array
  admitted: Admitted[]
  store: TransactionReader
  genesis: Outpoint | undefined
}): Promise<GraphRecords> {
  const { txid, raw, admitted, store, genesis } = options
  const subject = readTransaction(raw, { txid })
  const beef: BeefContents = {
    subject,
    transaction: (wanted) => (wanted === txid ? subject : undefined),
    // What proves it stands with it already.
    proof: () => undefined,
    txids: [txid],
  }
  const told: GraphRecords[] = [transactionRecords(beef)]
  for (const { topic, outpoint } of admitted) {
    const { vout } = outpoint
    if (topic === TOPICS.names && genesis !== undefined)
      told.push(namesRecords({ transaction: subject, vout, genesis }))
    if (topic === TOPICS.ordinals)
      told.push(ordinalsRecords({ transaction: subject, vout, flow: await flowOf(beef, store) }))
  }
  return mergeRecords(told)
}
