import {
  Beef,
  type CreateActionArgs,
  type CreateActionResult,
  type CreateSignatureArgs,
  type CreateSignatureResult,
  type GetPublicKeyArgs,
  type ListOutputsArgs,
  type ListOutputsResult,
  LockingScript,
  P2PKH,
  PrivateKey,
  ProtoWallet,
  type SignActionArgs,
  type SignActionResult,
  Transaction,
  type TransactionInput,
  UnlockingScript,
  Validation,
} from '@bsv/sdk'
import type { Coin } from '../../../src/payments/key.js'
import type { NameWallet } from '../../../src/payments/mints.js'

/** What a wallet under test does otherwise than it should. */
export interface WalletFaults {
  /** Alters what it drafts, before anybody sees it. */
  draft?: (transaction: Transaction) => void
  /** Alters what was unlocked, before the wallet signs its own input. */
  sign?: (transaction: Transaction) => void
  /** Throws instead of giving a public key. */
  key?: () => void
  /** Throws instead of sending what is signed, or takes its time. */
  send?: () => void | Promise<void>
  /** What it says of a transaction that it was asked to send; unset, that it has sent it. */
  result?: 'failed' | 'nothing'
}

interface Action {
  transaction: Transaction
  args: CreateActionArgs
  noSend: boolean
  /** The longest unlocking script of each input that is for others to unlock. */
  lengths: Map<TransactionInput, number>
  /** What it spends of the wallet's own: nothing else can until it is aborted. */
  coin: Coin
  state: 'unsigned' | 'signed' | 'sent' | 'failed'
}

/** An error as the JSON API states it. */
const refusal = (message: string, fields: object): Error => Object.assign(new Error(message), fields)
const badParameter = (parameter: string, reason: string): Error =>
  refusal(`The ${parameter} parameter must be ${reason}`, { code: 6, parameter })

/**
 * A wallet with one key and one coin, which does of BRC-100 what a mint or a move asks of one, and is as unkind as
 * wallet-toolbox 2.1:
 *
 * - it checks all arguments, descriptions by the lengths of BRC-100, and the proofs of what it is given to spend;
 * - it puts the change into several outputs, behind those that were asked for;
 * - of a draft it shows what that spends and none of the ancestors;
 * - what it has signed is bytes, as of later versions, and an object where an API sends JSON;
 * - it refuses an unlocking script that is longer than was said, and runs all scripts, but only after it has stored what was
 *   signed, which stays so until it is aborted;
 * - it sends what was signed with `noSend` only when that is named in `sendWith`, and says `failed` of what it does not hold;
 * - what an action spends stays reserved until that is sent or aborted, change is spent only once it is sent, and an action that
 *   spends a name of another one, which is neither, fails with its coins reserved and no reference to abort it by;
 * - it gives no key for a protocol that is left to a permission module (`p …`);
 * - it asks its user about each transaction that costs more than the inputs it is given bring, and once about its identity key and
 *   about each basket, but about no key of level 0.
 */
export class TestWallet implements NameWallet {
  readonly key = new PrivateKey(7)
  readonly sent: Transaction[] = []
  readonly actions: CreateActionArgs[] = []
  readonly aborted: string[] = []
  /** The ids of the keys that it was asked for, in order. */
  readonly keysAsked: string[] = []
  /** What its user was asked, in order. */
  readonly prompts: string[] = []
  /** In satoshis. */
  fee = 998
  faults: WalletFaults = {}
  /** By reference. */
  private readonly made = new Map<string, Action>()
  /** The outputs that were asked for, by outpoint: it knows them, and what spends them. */
  private readonly known = new Map<string, { spentBy?: Action }>()
  private readonly keys = new ProtoWallet(this.key)
  /** What it can spend now. */
  private coin: Coin | undefined

  constructor(
    transaction: Transaction,
    private readonly changeOutputs = 3,
  ) {
    this.coin = { transaction, vout: 0 }
  }

  async getPublicKey(args: GetPublicKeyArgs): Promise<{ publicKey: string }> {
    this.keysAsked.push(args.identityKey === true ? 'identity' : (args.keyID ?? ''))
    this.faults.key?.()
    requireOwnProtocol(args)
    if (args.identityKey === true) this.askOnce('identity key')
    return await this.keys.getPublicKey(args)
  }

  async createSignature(args: CreateSignatureArgs): Promise<CreateSignatureResult> {
    requireOwnProtocol(args)
    return await this.keys.createSignature(args)
  }

  async createAction(args: CreateActionArgs): Promise<CreateActionResult> {
    this.actions.push(args)
    Validation.validateCreateActionArgs(args)
    for (const { basket } of args.outputs ?? []) if (basket !== undefined) this.askOnce(`basket ${basket}`)
    const { inputs = [], outputs = [], inputBEEF = [], options = {} } = args
    const texts = [args.description, ...inputs.map((each) => each.inputDescription)]
    texts.push(...outputs.map((each) => each.outputDescription))
    if (!texts.every((text) => /^.{5,50}$/.test(text))) throw badParameter('description', '5 to 50 bytes')
    if (inputs.length === 0 && outputs.length === 0) return await this.sendWith(options.sendWith ?? [])
    if (inputs.length > 0 && !(await Beef.fromBinary(Array.from(inputBEEF)).verify(ANY_BLOCK, true)))
      throw badParameter('inputBEEF', 'valid Beef when factoring options.trustSelf')
    const { coin } = this
    if (coin === undefined)
      throw refusal('Insufficient funds', { code: 7, totalSatoshisNeeded: 1, moreSatoshisNeeded: 1 })
    this.coin = undefined
    const spent = inputs.flatMap(({ outpoint }) => this.known.get(outpoint) ?? [])
    const other = spent.find(({ spentBy }) => spentBy !== undefined)?.spentBy
    if (other !== undefined) {
      const reviewActionResults = [
        { txid: '', status: 'doubleSpend', competingTxs: [other.transaction.id('hex')] },
      ]
      throw refusal('Undelayed createAction or signAction results require review.', {
        ...{ code: 5, reviewActionResults, sendWithResults: [] },
      })
    }
    const transaction = new Transaction(args.version ?? 1, [], [], args.lockTime ?? 0)
    const lengths: Action['lengths'] = new Map()
    for (const { outpoint, unlockingScriptLength = 0 } of inputs) {
      const [txid = '', vout] = outpoint.split('.')
      const source = Transaction.fromBEEF(Array.from(inputBEEF), txid)
      const input = {
        sourceTransaction: source,
        sourceOutputIndex: Number(vout),
        unlockingScript: new UnlockingScript(),
      }
      lengths.set(input, unlockingScriptLength)
      transaction.addInput(input)
    }
    for (const { satoshis, lockingScript } of outputs)
      transaction.addOutput({ satoshis, lockingScript: LockingScript.fromHex(lockingScript) })
    transaction.addInput({
      sourceTransaction: coin.transaction,
      sourceOutputIndex: coin.vout,
      unlockingScript: new UnlockingScript(),
    })
    const brought = satoshisOf(transaction.inputs.slice(0, inputs.length))
    const spending = outputs.reduce((sum, { satoshis }) => sum + satoshis, this.fee) - brought
    const each = Math.floor((satoshisOf(transaction.inputs) - brought - spending) / this.changeOutputs)
    for (let left = this.changeOutputs; left > 0; left--)
      transaction.addOutput({ satoshis: each, lockingScript: new P2PKH().lock(this.key.toAddress()) })
    // No two are the same, as with change that is locked to new keys.
    const [first] = transaction.outputs.slice(outputs.length)
    if (first?.satoshis !== undefined) first.satoshis -= this.made.size
    this.faults.draft?.(transaction)
    // In base64, or the client of the SDK refuses it.
    const reference = String(this.made.size).padStart(4, '0')
    const noSend = options.noSend === true
    const action: Action = { transaction, args, lengths, noSend, coin, state: 'unsigned' }
    this.made.set(reference, action)
    if (spending > 0) this.prompts.push(`pay ${args.description}`)
    for (const each of spent) each.spentBy = action
    const draft = transaction.id('hex')
    const noSendChange = transaction.outputs.map((_, vout) => `${draft}.${vout}`).slice(outputs.length)
    return {
      ...(noSend && { noSendChange }),
      signableTransaction: { tx: transaction.toAtomicBEEF(true), reference },
    }
  }

  async listOutputs({ basket, tags = [], include, limit }: ListOutputsArgs): Promise<ListOutputsResult> {
    this.askOnce(`basket ${basket}`)
    const beef = new Beef()
    const outputs = [...this.made.values()].flatMap(({ transaction, args, state }) =>
      (args.outputs ?? []).flatMap((output, vout) => {
        const outpoint = `${transaction.id('hex')}.${vout}`
        const isAsked = output.basket === basket && tags.every((tag) => output.tags?.includes(tag))
        if (state !== 'sent' || !isAsked || this.known.get(outpoint)?.spentBy !== undefined) return []
        if (include === 'entire transactions') beef.mergeTransaction(transaction)
        const { satoshis, customInstructions = '' } = output
        return [{ outpoint, satoshis, spendable: true, customInstructions }]
      }),
    )
    return {
      totalOutputs: outputs.length,
      outputs: outputs.slice(0, limit),
      ...(beef.txs.length > 0 && { BEEF: beef.toBinary() }),
    }
  }

  private askOnce(what: string): void {
    if (!this.prompts.includes(what)) this.prompts.push(what)
  }

  async signAction({ reference, spends, options }: SignActionArgs): Promise<SignActionResult> {
    const action = this.made.get(reference)
    if (action === undefined) throw new Error('recovery of out-of-session signAction is not implemented')
    if (action.state !== 'unsigned') throw new Error(`invalid transaction status ${action.state}`)
    const { transaction, lengths, coin } = action
    for (const [index, { unlockingScript }] of Object.entries(spends)) {
      const input = transaction.inputs[Number(index)]
      const length = input && lengths.get(input)
      if (input === undefined || length === undefined) throw badParameter('args', 'of a prior input')
      if (unlockingScript.length / 2 > length)
        throw badParameter('args', 'no longer than unlockingScriptLength')
      input.unlockingScript = UnlockingScript.fromHex(unlockingScript)
    }
    const own = transaction.inputs.find(({ sourceTransaction }) => sourceTransaction === coin.transaction)
    if (own === undefined) throw new Error('the coin is not there')
    this.faults.sign?.(transaction)
    own.unlockingScriptTemplate = new P2PKH().unlock(this.key)
    await transaction.sign()
    // It may have been aborted meanwhile.
    if (this.made.get(reference)?.state !== 'unsigned') throw new Error('invalid transaction status failed')
    action.state = 'signed'
    const txid = transaction.id('hex')
    for (const vout of transaction.outputs.keys()) this.known.set(`${txid}.${vout}`, {})
    if (!(await transaction.verify('scripts only'))) throw badParameter('inputs[0].unlockScript', 'valid')
    if (options?.noSend !== true && !action.noSend) await this.sendWith([txid])
    return { txid, tx: asBytes(transaction.toAtomicBEEF(true)), sendWithResults: [] }
  }

  private async sendWith(txids: string[]): Promise<CreateActionResult> {
    await this.faults.send?.()
    const { result } = this.faults
    const sendWithResults = txids.map((txid) => {
      const action = [...this.made.values()].findLast(
        ({ transaction, state }) => state !== 'unsigned' && transaction.id('hex') === txid,
      )
      if (action?.state === 'signed' && result === undefined) this.finish(action)
      if (action?.state === 'signed' && result === 'failed') this.release(action)
      const isFailed = action === undefined || action.state === 'failed'
      return { txid, status: isFailed ? ('failed' as const) : ('unproven' as const) }
    })
    return result === 'nothing' ? {} : { sendWithResults }
  }

  /** Its change can be spent now. */
  private finish(action: Action): void {
    action.state = 'sent'
    const { transaction } = action
    this.sent.push(transaction)
    const change = new P2PKH().lock(this.key.toAddress()).toHex()
    const vout = transaction.outputs.findIndex(({ lockingScript }) => lockingScript.toHex() === change)
    if (vout !== -1) this.coin = { transaction, vout }
  }

  /** What it spends can be spent again. */
  private release(action: Action): void {
    action.state = 'failed'
    this.coin ??= action.coin
    for (const each of this.known.values()) if (each.spentBy === action) delete each.spentBy
  }

  async abortAction({ reference }: { reference: string }): Promise<{ aborted: true }> {
    this.aborted.push(reference)
    const action = this.made.get(reference)
    if (action === undefined || action.state === 'sent' || action.state === 'failed')
      throw badParameter('reference', 'an inprocess, outgoing action that has not been shared to the network')
    this.release(action)
    return { aborted: true }
  }
}

/** The types of SDK 2 know lists alone. */
const asBytes = (numbers: number[]): number[] => Uint8Array.from(numbers) as unknown as number[]

function satoshisOf(inputs: readonly TransactionInput[]): number {
  return inputs.reduce(
    (sum, { sourceTransaction, sourceOutputIndex }) =>
      sum + (sourceTransaction?.outputs[sourceOutputIndex]?.satoshis ?? 0),
    0,
  )
}

const ANY_BLOCK = { isValidRootForHeight: async () => true, currentHeight: async () => 0 }

function requireOwnProtocol({ protocolID }: Pick<GetPublicKeyArgs, 'protocolID'>): void {
  if (protocolID?.[1].startsWith('p ') !== true) return
  throw new Error(`Unsupported P-module scheme: ${protocolID[1]}`)
}
