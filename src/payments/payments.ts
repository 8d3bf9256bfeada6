import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import type { PrivateKey, Transaction } from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from '../mining/mining-error.js'
import { type Conflict, conflictWith, provenBy, type Witness } from './conflict.js'
import type { Draft, Paid, Payer, SendOutcome } from './draft.js'
import { type Journal, type Payment, type Purpose, type Selection, WALLET } from './journal.js'
import { type Coin, p2pkhLockOf, payWithKey } from './key.js'
import { type PayingWallet, payWithWallet } from './wallet.js'

/** A server's answer to a submitted transaction. */
export type Submitted =
  | { kind: 'admitted' }
  /** Another transaction counts instead: `by`, if the server says which. */
  | { kind: 'conflict'; why: string; by?: string | undefined }

export interface Submission extends Purpose {
  transaction: Transaction
  beef: Uint8Array
}

/** A server to which payments are submitted. */
export interface Destination extends Witness {
  /** @throws Error if it neither accepts the payment nor has another one in its place. */
  submit(payment: Submission): Promise<Submitted>
}

/** The result of following up a payment of an earlier command. */
export interface Followed {
  payment: Payment
  outcome: 'admitted' | 'lost' | 'undecided'
  why: string
}

/** Following up stops after this many milliseconds; the next command continues. */
const MAX_TIME = 120_000

/** Shown to the user of a wallet when it is to send a payment. */
const DESCRIPTIONS: Record<Purpose['kind'], (subject: string) => string> = {
  mint: (name) => `Send the mint of ${name}`,
  move: (name) => `Send the name ${name}`,
  publish: (name) => `Send what is published on ${name}`,
  advertise: () => 'Send the advertisements of this host',
}

const LATER = 'it is stored: run the same command again to resend it'

/**
 * Pays for the transactions of commands: funds and signs a draft, stores it in the journal, sends it to the network, and follows
 * it up until it is in a block or lost. A process may end at any point: the next one continues, and nothing is paid for twice.
 */
export class Payments {
  private readonly payer: Payer
  /** The coins of a key; a wallet chooses its own. */
  private readonly coins: (() => readonly Coin[]) | undefined
  /** The payer in the journal. */
  private readonly name: string

  constructor(
    readonly journal: Journal,
    means:
      | { wallet: PayingWallet }
      | { key: PrivateKey; coins: readonly Transaction[]; feeRate?: number | undefined; send: Payer['send'] },
  ) {
    if ('wallet' in means) {
      this.name = WALLET
      this.payer = payWithWallet(means.wallet)
      return
    }
    const { key, coins, feeRate, send } = means
    const address = key.toAddress()
    const lock = toHex(p2pkhLockOf(key.toPublicKey()))
    this.name = address
    this.coins = () => journal.coins({ lock, address }, coins)
    this.payer = payWithKey({ key, coins: this.coins, feeRate, send })
  }

  /** @throws MiningError `NO_FUNDS` if a key has no coins at all: found out here, and not after a search. */
  requireCoins(): void {
    if (this.coins?.().length === 0) throw new MiningError('NO_FUNDS', `there is no coin of ${this.name}`)
  }

  /**
   * Pays for a draft, and sends it to the network if one is asked.
   *
   * @throws MiningError `NO_FUNDS`, `OVER_BUDGET`, `BAD_WALLET`; `REFUSED` if the network rejects it; `UNDECIDED` if that is not
   * known, or an earlier payment for the same may still count; GeneralError `JOURNAL`; what the draft and the wallet throw.
   */
  async pay(draft: Draft, purpose: Purpose): Promise<Paid> {
    const { journal, payer, name } = this
    const store = async (paid: Paid): Promise<void> => journal.add(paid, { ...purpose, payer: name, draft })
    // Not under the lock: a wallet may ask its user for minutes, and chooses its coins itself.
    const paid =
      name === WALLET
        ? await payer.pay(draft, (signed) => journal.exclusively(() => store(signed)))
        : await journal.exclusively(() => payer.pay(draft, store))
    const txid = paid.transaction.id('hex')
    const { kind, why } = await this.send(paid.transaction, { ...purpose, state: 'pending' })
    if (kind === 'refused') throw new MiningError('REFUSED', `the network rejects ${txid}: ${why}`)
    if (kind === 'undecided')
      throw new MiningError(
        'UNDECIDED',
        `it is not known yet whether the network accepts ${txid}: ${why}; ${LATER}`,
      )
    return paid
  }

  /**
   * Submits a payment to a server.
   *
   * @throws MiningError `REFUSED` if another transaction has spent its inputs; `UNDECIDED` if it may still count; what the
   * destination throws.
   */
  async submit(paid: Paid, purpose: Purpose, to: Destination): Promise<void> {
    const { outcome, why } = await this.submitted({ ...paid, ...purpose }, to)
    if (outcome !== 'admitted') throw new MiningError(outcome === 'lost' ? 'REFUSED' : 'UNDECIDED', why)
  }

  /**
   * Sends earlier payments again that are not in a block yet: to the network first, then to the server. A stuck payment does not
   * hold up the others.
   *
   * @param options.again Includes those that the server has accepted: it may have lost them.
   */
  async followUp(
    of: Selection,
    to: Destination,
    { again = false }: { again?: boolean } = {},
  ): Promise<Followed[]> {
    const end = monotonic() + MAX_TIME
    const followed: Followed[] = []
    for (const payment of this.journal.payments(of)) {
      const { state, isAdmitted, payer } = payment
      // Without a network, the server's word is all there is.
      const isDone = isAdmitted && (state === 'mined' || this.payer.send === undefined || payer !== this.name)
      if (this.journal.stateOf(payment.txid) === 'lost' || (isDone && !again)) continue
      try {
        if (monotonic() > end) throw new Error('earlier payments took too long')
        followed.push({ payment, ...(await this.follow(payment, to)) })
      } catch (error) {
        followed.push({ payment, outcome: 'undecided', why: messageOf(error) })
      }
    }
    return followed
  }

  private async follow(payment: Payment, to: Destination): Promise<Omit<Followed, 'payment'>> {
    const { transaction, payer, txid } = payment
    // Some services reject a transaction that is in a block as spent when it is sent again.
    const isMined = payment.state === 'sent' && (await this.foundMined(txid, to))
    const state = isMined ? 'mined' : payment.state
    // A wallet refuses a transaction that another one has signed, and sends its own ones again by itself.
    const isOurs = payer === this.name && (state === 'pending' || (state === 'sent' && payer !== WALLET))
    if (!isOurs && state === 'pending')
      return { outcome: 'undecided', why: `${payer} has signed it: run the command with that payer` }
    if (isOurs) {
      const { kind, why, conflicting = [] } = await this.send(transaction, payment)
      if (kind === 'refused') return { outcome: 'lost', why }
      // A payment that the network may not have is submitted to no server.
      if (kind === 'undecided' && state === 'pending') {
        const conflict = await conflictWith(transaction, conflicting, to)
        if (conflict?.isProven) return await this.lose(txid, conflict)
        return { outcome: 'undecided', why: `${why} (to give it up: minetree payments --lose ${txid})` }
      }
    }
    const submitted = await this.submitted({ ...payment, beef: writeBeef(transaction) }, to)
    if (submitted.outcome === 'admitted' && state === 'pending') await this.foundMined(txid, to)
    return submitted
  }

  /** Whether the server shows a payment in a block; if so, that is recorded. */
  private async foundMined(txid: string, to: Destination): Promise<boolean> {
    const beef = await to.beefOf(txid)
    const proven = beef && (await provenBy(beef, txid, to.chainTracker))
    if (proven) this.journal.setMined(txid, writeBeef(proven))
    return proven !== undefined
  }

  /** Records that a server has accepted a payment. */
  recordAdmitted(txid: string): void {
    if (this.journal.stateOf(txid) === 'pending') this.journal.setState(txid, 'sent')
    this.journal.setAdmitted(txid)
  }

  private async send(
    transaction: Transaction,
    { state, ...purpose }: Pick<Payment, 'kind' | 'subject' | 'state'>,
  ): Promise<SendOutcome> {
    const txid = transaction.id('hex')
    const outcome = await this.payer.send?.(transaction, DESCRIPTIONS[purpose.kind](purpose.subject))
    if (outcome === undefined) return { kind: 'accepted', why: 'no network is asked' }
    if (outcome.kind === 'refused') await this.journal.lose(txid)
    else if (outcome.kind === 'mined') this.journal.setState(txid, 'mined')
    else if (outcome.kind === 'accepted' && state === 'pending') this.journal.setState(txid, 'sent')
    return outcome
  }

  private async submitted(
    { transaction, beef, kind, subject, place }: Submission,
    to: Destination,
  ): Promise<Omit<Followed, 'payment'>> {
    const txid = transaction.id('hex')
    const said = await to.submit({ transaction, beef, kind, subject, place })
    if (said.kind === 'admitted') {
      this.recordAdmitted(txid)
      return { outcome: 'admitted', why: '' }
    }
    const conflict = await conflictWith(transaction, said.by === undefined ? [] : [said.by], to)
    return await this.resolve(txid, conflict, said.why)
  }

  /**
   * Gives a payment up if another transaction has spent its inputs. No server can overrule the network: a payment that the
   * network has accepted is lost only if the other one is in a block.
   */
  private async resolve(
    txid: string,
    conflict: Conflict | undefined,
    why: string,
  ): Promise<Omit<Followed, 'payment'>> {
    if (conflict === undefined)
      return { outcome: 'undecided', why: `${why}; the server does not show the conflicting transaction` }
    if (conflict.isProven || this.payer.send === undefined) return await this.lose(txid, conflict)
    return {
      outcome: 'undecided',
      why: `the network has accepted it, but the server shows ${conflict.txid} instead, in no block yet`,
    }
  }

  private async lose(txid: string, conflict: Conflict): Promise<Omit<Followed, 'payment'>> {
    await this.journal.lose(txid, conflict)
    const { txid: other, outpoint } = conflict
    return { outcome: 'lost', why: `${txid} is lost: it conflicts with ${other}, which spends ${outpoint}` }
  }
}
