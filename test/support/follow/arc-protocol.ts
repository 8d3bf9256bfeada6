import { toHex } from '../../../backend/src/protocol/bytes.js'
import type { LyingView } from './chain-services.js'
import { json, NOT_FOUND, type Reply } from './fake-service.js'

/**
 * Answers as ARC does (`GETTransactionStatus` of bitcoin-sv/arc): the status of a transaction that was sent through it, with empty
 * fields where it has nothing to say. Below `/arcade`, in the place of Arcade.
 */
export function answerAsArc(path: string, view: LyingView): Reply {
  const [, txid = ''] = /^(?:\/v1|\/arcade)\/tx\/([0-9a-f]{64})$/.exec(path) ?? []
  const record = view.transaction(txid)
  const said = view.statuses.get(txid)
  if (record === undefined && said === undefined) return NOT_FOUND
  const proof = record?.proof
  const { block } = { block: proof && view.facts.blockOf(txid) }
  return json({
    blockHash: block?.header.hash ?? '',
    blockHeight: proof?.height ?? 0,
    competingTxs: null,
    extraInfo: '',
    merklePath: proof === undefined ? '' : toHex(proof.merklePath),
    timestamp: '2026-11-25T17:00:00Z',
    txid,
    txStatus: said ?? (proof === undefined ? 'SEEN_ON_NETWORK' : 'MINED'),
  })
}
