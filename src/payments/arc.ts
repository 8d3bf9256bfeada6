import { type Broadcaster, isBroadcastFailure } from '@bsv/sdk'
import { field } from '../client/bounded-fetch.js'
import type { Payer, SendOutcome } from './draft.js'

/**
 * Statuses of ARC (`metamorph_api.Status`, and the HTTP codes of its errors). Any other status is undecided: it says nothing
 * about the transaction.
 */
const ARC_OUTCOMES: Readonly<Record<string, SendOutcome['kind']>> = {
  QUEUED: 'accepted',
  RECEIVED: 'accepted',
  STORED: 'accepted',
  ANNOUNCED_TO_NETWORK: 'accepted',
  REQUESTED_BY_NETWORK: 'accepted',
  SENT_TO_NETWORK: 'accepted',
  ACCEPTED_BY_NETWORK: 'accepted',
  SEEN_ON_NETWORK: 'accepted',
  SEEN_MULTIPLE_NODES: 'accepted',
  MINED: 'mined',
  // ARC does not know its inputs yet.
  SEEN_IN_ORPHAN_MEMPOOL: 'undecided',
  // A block will contain one of the two.
  DOUBLE_SPEND_ATTEMPTED: 'undecided',
  // Its block was reorganised away; it may be in the next one.
  MINED_IN_STALE_BLOCK: 'undecided',
  REJECTED: 'refused',
  INVALID: 'refused',
  MALFORMED: 'refused',
  // Unlocking scripts, inputs, form, outputs, fee.
  461: 'refused',
  462: 'refused',
  463: 'refused',
  464: 'refused',
  465: 'refused',
  // A conflicting transaction is known.
  466: 'undecided',
  // Coins frozen by policy and by consensus; cumulative fee; size.
  471: 'refused',
  472: 'refused',
  473: 'refused',
  474: 'refused',
}

export function sendThroughArc(arc: Broadcaster): NonNullable<Payer['send']> {
  return async (transaction) => {
    const answer = await arc.broadcast(transaction)
    const isFailure = isBroadcastFailure(answer)
    // Arcade answers 400 to everything it refuses, with the status of ARC in the body.
    const status = isFailure
      ? String(field(answer.more, 'status') ?? answer.code)
      : (answer.message.split(' ')[0] ?? '')
    // Without `extraInfo`, as from Arcade, the SDK's message ends with `undefined`.
    const said = isFailure ? answer.description : answer.message.replace(/ undefined$/, '')
    const why = (said.startsWith(status) ? said : `${status} ${said}`).trim()
    const txid = transaction.id('hex')
    if (answer.txid !== undefined && answer.txid !== txid)
      return { kind: 'undecided', why: `ARC answered about ${answer.txid} instead: ${why}` }
    // Some versions of ARC mention an orphan only in the text.
    if (/ORPHAN/i.test(why)) return { kind: 'undecided', why }
    const conflicting = isFailure ? [] : (answer.competingTxs ?? [])
    return { kind: ARC_OUTCOMES[status] ?? 'undecided', why, conflicting }
  }
}
