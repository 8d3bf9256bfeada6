import { fromHex } from '../protocol/bytes.js'
import { encodeOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { TransactionSource } from './graph-store.js'
import { type ListedBeef, type ListedTransaction, listedBeef } from './listed-beef.js'

/** BRC-158, Specification: an Atomic BEEF (BRC-95) whose subject is an output. */
const OUTPOINT_BEEF = fromHex('16a7beef')

/** Lays out the Outpoint BEEF (BRC-158) of stored transactions, which stand parents first. */
export async function outpointBeef(options: {
  subject: Outpoint
  transactions: ListedTransaction[]
  store: TransactionSource
}): Promise<ListedBeef> {
  const { subject, ...beef } = options
  return await listedBeef({ ...beef, envelope: [OUTPOINT_BEEF, encodeOutpoint(subject)] })
}
