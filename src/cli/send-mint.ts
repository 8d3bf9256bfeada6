import { type Broadcaster, isBroadcastFailure, type Transaction } from '@bsv/sdk'
import { sendWithWallet, WalletSendError } from '../mining/fund-with-wallet.js'
import type { NameWallet } from '../mining/pay-with-wallet.js'

/**
 * What the network makes of a mint:
 *
 * - `accepted`: it takes part in it, or a service has taken it over and goes on sending it;
 * - `refused`: it will never be in a block as it is;
 * - `undecided`: nobody knows. Its coins stay set aside, and it is sent again by the next command.
 */
export interface SendOutcome {
  kind: 'accepted' | 'refused' | 'undecided'
  /** What was said, for a line of text. */
  why: string
}

/** Sends a mint to the network, any number of times. */
export type SendMint = (mint: { transaction: Transaction; name: string }) => Promise<SendOutcome>

/**
 * Each status of ARC (`metamorph_api.Status`, and the HTTP codes of its errors). What is not here is undecided: an answer
 * of another kind says nothing about the mint.
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
  MINED: 'accepted',
  // What it spends is not known there yet.
  SEEN_IN_ORPHAN_MEMPOOL: 'undecided',
  // A block will have one of the two.
  DOUBLE_SPEND_ATTEMPTED: 'undecided',
  // A reorg took its block; it may be in the next one.
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
  // Frozen coins, by policy and by consensus; fee with that of unconfirmed ancestors; size.
  471: 'refused',
  472: 'refused',
  473: 'refused',
  474: 'refused',
}

/** Sends mints through ARC. */
export function sendThroughArc(arc: Broadcaster): SendMint {
  return async ({ transaction }) => {
    const answer = await arc.broadcast(transaction)
    const isFailure = isBroadcastFailure(answer)
    const status = isFailure ? answer.code : (answer.message.split(' ')[0] ?? '')
    const said = isFailure ? answer.description : answer.message
    const why = (said.startsWith(status) ? said : `${status} ${said}`).trim()
    const txid = transaction.id('hex')
    if (answer.txid !== undefined && answer.txid !== txid)
      return { kind: 'undecided', why: `ARC speaks of ${answer.txid} instead: ${why}` }
    // Some versions of ARC name an orphan in the text alone.
    if (/ORPHAN/i.test(why)) return { kind: 'undecided', why }
    return { kind: ARC_OUTCOMES[status] ?? 'undecided', why }
  }
}

/** Has the wallet send the mints that it has signed. */
export function sendThroughWallet(wallet: Pick<NameWallet, 'createAction'>): SendMint {
  return async ({ transaction, name }) => {
    try {
      await sendWithWallet(wallet, { txid: transaction.id('hex'), name })
      return { kind: 'accepted', why: 'the wallet has sent it' }
    } catch (error) {
      if (!(error instanceof WalletSendError)) throw error
      return { kind: error.isFinal ? 'refused' : 'undecided', why: error.message }
    }
  }
}
