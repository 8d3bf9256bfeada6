import { LockingScript, Transaction, UnlockingScript } from '@bsv/sdk'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from '../mining/mining-error.js'
import { preimageView } from '../mining/mint-transaction.js'

/** An input that is a purpose of the transaction: a node, a name, a token. Inputs that pay come after those of the draft. */
export interface DraftInput {
  /** The transaction of the output, with its merkle path or its ancestors down to proven ones. */
  source: sdk.Transaction
  vout: number
  /** Shown to the user of a wallet. */
  description: string
  /** Absent if nobody holds the output: only fake money spends it. */
  unlock?: sdk.ScriptTemplateUnlock | undefined
  /** Whether anybody may spend it, like a node: then it is not reserved for one transaction. */
  isOpen?: boolean
  /** How many bytes the unlocking script may grow by when the payer adds outputs; 0 by default. */
  room?: number
}

/** An output; those of a draft begin at output 0. */
export interface DraftOutput {
  satoshis: number
  lockingScript: Uint8Array
  /** Shown to the user of a wallet. */
  description: string
  /** Where a wallet keeps the output, with what it needs to spend it; by default, it does not keep the output. */
  basket?: { name: string; customInstructions: string; tags?: string[] } | undefined
}

/** A transaction that nobody has paid for yet, without the inputs and outputs of the payer. */
export interface Draft {
  /** What is paid for, as in messages: `the mint of alice`. */
  what: string
  /** Shown to the user of a wallet. */
  description: string
  inputs: readonly DraftInput[]
  outputs: readonly DraftOutput[]
  /** The highest fee, in satoshis. */
  maxFee: number
  /** Throws if a transaction is not drafted or signed as it must be. */
  check?(transaction: sdk.Transaction): void
  /** Throws if a signed transaction must not be stored. */
  checkSigned?(transaction: sdk.Transaction): void
}

export interface Paid {
  /** Includes the transactions that it spends. */
  transaction: sdk.Transaction
  /** The BEEF to submit to an overlay. */
  beef: Uint8Array
  /** In satoshis. */
  fee: number
}

/** Called with a signed transaction before anything else happens to it; if it fails, the payer gets its coins back. */
export type Keep = (paid: Paid) => Promise<void>

/**
 * What the network says about a transaction:
 *
 * - `accepted`: the network has it, or a service has accepted it and will send it;
 * - `mined`: it is in a block;
 * - `refused`: it can never be in a block;
 * - `undecided`: unknown. Its coins stay reserved.
 */
export interface SendOutcome {
  kind: 'accepted' | 'mined' | 'refused' | 'undecided'
  /** The reason, in one line. */
  why: string
  /** Transactions that spend the same outputs, if the network names them. */
  conflicting?: readonly string[]
}

/** Pays for transactions: with a wallet (BRC-100), with the coins of a key, or with fake money. */
export interface Payer {
  /**
   * Funds a draft and signs it; sends nothing.
   *
   * @throws MiningError `NO_FUNDS`, `OVER_BUDGET`, `BAD_WALLET`; what the draft and `keep` throw.
   */
  pay(draft: Draft, keep?: Keep): Promise<Paid>
  /** Sends a transaction that it has signed, any number of times. Absent where no network is asked. */
  send?: ((transaction: sdk.Transaction, description: string) => Promise<SendOutcome>) | undefined
}

/** A transaction with the inputs and outputs of a draft; version 1 and lock time 0, as covenants of version 2 require. */
export function startTransaction({ inputs, outputs }: Pick<Draft, 'inputs' | 'outputs'>): sdk.Transaction {
  const transaction = new Transaction(1, [], [], 0)
  for (const { source, vout, unlock } of inputs)
    transaction.addInput({
      sourceTransaction: source,
      sourceOutputIndex: vout,
      ...(unlock ? { unlockingScriptTemplate: unlock } : { unlockingScript: new UnlockingScript() }),
    })
  for (const { satoshis, lockingScript } of outputs)
    transaction.addOutput({ satoshis, lockingScript: LockingScript.fromHex(toHex(lockingScript)) })
  return transaction
}

/**
 * The highest fee of a transaction of about this many bytes, in satoshis: twice the estimate, with room for the coins and the
 * change of a wallet.
 */
export function highestFee(bytes: number, rate: number): number {
  return 2 * Math.ceil((bytes * rate) / 1000) + 1000
}

/** The outpoints that a transaction spends, by input. */
export function spentBy({ inputs }: sdk.Transaction): Outpoint[] {
  return inputs.map(({ sourceTXID, sourceTransaction, sourceOutputIndex }) => ({
    txid: sourceTXID ?? sourceTransaction?.id('hex') ?? '',
    vout: sourceOutputIndex,
  }))
}

/** The index of a draft's input in a transaction. @throws MiningError `BAD_WALLET` if it is missing. */
export function inputOf(transaction: sdk.Transaction, { source, vout, description }: DraftInput): number {
  const wanted = formatOutpoint({ txid: source.id('hex'), vout })
  const input = spentBy(transaction).findIndex((each) => formatOutpoint(each) === wanted)
  if (input === -1) throw new MiningError('BAD_WALLET', `the wallet left an input out: ${description}`)
  return input
}

/**
 * Checks that a transaction is that of a draft, and that its fee is allowed.
 *
 * @throws MiningError `BAD_WALLET`, `OVER_BUDGET`; what the draft's own check throws.
 */
export function requireDrafted(transaction: sdk.Transaction, draft: Draft): void {
  for (const input of draft.inputs) inputOf(transaction, input)
  for (const [vout, { satoshis, lockingScript }] of draft.outputs.entries()) {
    const output = transaction.outputs[vout]
    if (output?.satoshis !== satoshis || output.lockingScript.toHex() !== toHex(lockingScript))
      throw new MiningError('BAD_WALLET', `the wallet changed output ${vout}`)
  }
  draft.check?.(transaction)
  requireFee(feeOf(transaction), draft)
}

/** @throws MiningError `OVER_BUDGET`. */
export function requireFee(fee: number, { what, maxFee }: Pick<Draft, 'what' | 'maxFee'>): void {
  if (fee <= maxFee) return
  throw new MiningError(
    'OVER_BUDGET',
    `the fee of ${what} would be ${fee} satoshis; at most ${maxFee} are allowed`,
  )
}

/** The fee in satoshis. @throws MiningError `BAD_WALLET` if it is unknown or negative. */
export function feeOf({ inputs, outputs }: sdk.Transaction): number {
  let fee = 0
  for (const { sourceTransaction, sourceOutputIndex } of inputs) {
    const spent = sourceTransaction?.outputs[sourceOutputIndex]?.satoshis
    if (spent === undefined)
      throw new MiningError('BAD_WALLET', 'the wallet omitted a transaction that it spends')
    fee += spent
  }
  for (const { satoshis = 0 } of outputs) fee -= satoshis
  if (fee < 0) throw new MiningError('BAD_WALLET', `the wallet pays out ${-fee} satoshis more than it spends`)
  return fee
}

/** Everything that a draft fixes: all but the unlocking scripts. */
export function partsOf(transaction: sdk.Transaction): string {
  const { version, lockTime, inputs, outputs } = preimageView(transaction)
  return JSON.stringify([version, lockTime, inputs, outputs.map(({ bytes }) => toHex(bytes))])
}
