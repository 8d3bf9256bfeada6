import { decodeMineNode } from '../protocol/mine-node.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { TransactionView } from '../protocol/transaction.js'
import { type GraphRecords, graphRecords } from './records.js'

/**
 * What the admission of an output by `tm_names` says of the tree. The topic admits the genesis output and
 * outputs 0, 1 and 2 of genuine mints, so the place of an output tells what it is (`spec/overlay.md`, Topics):
 * the name of output 2 is the domain of output 1, never the text of an envelope.
 */
export function namesRecords(options: {
  transaction: TransactionView
  vout: number
  genesis: Outpoint
}): GraphRecords {
  const { transaction, vout, genesis } = options
  const { txid, outputs } = transaction
  const outpoint = { txid, vout }
  const domainAt = (position: number): string => {
    const output = outputs[position]
    if (output === undefined) throw new RangeError(`${txid} has no output ${position}`)
    return decodeMineNode(output.lockingScript).domain
  }
  if (!isNodeOutpoint(outpoint, genesis)) return graphRecords({ names: [{ outpoint, name: domainAt(1) }] })
  return graphRecords({ nodes: [{ outpoint, domain: domainAt(vout) }] })
}

/** Whether an output that `tm_names` holds is a node, and not a name. */
export function isNodeOutpoint(outpoint: Outpoint, genesis: Outpoint): boolean {
  if (outpoint.txid === genesis.txid) return outpoint.vout === genesis.vout
  return outpoint.vout === 0 || outpoint.vout === 1
}
