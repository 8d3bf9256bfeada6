import {
  type CreateActionArgs,
  type CreateActionResult,
  type CreateSignatureArgs,
  type CreateSignatureResult,
  type GetPublicKeyArgs,
  LockingScript,
  P2PKH,
  PrivateKey,
  ProtoWallet,
  type SignActionArgs,
  type SignActionResult,
  Transaction,
  type TransactionInput,
  UnlockingScript,
} from '@bsv/sdk'
import type { Coin } from '../../../src/mining/fund-with-key.js'
import type { MintWallet } from '../../../src/mining/fund-with-wallet.js'

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

interface Draft {
  transaction: Transaction
  noSend: boolean
  /** The longest unlocking script of each input that is for others to unlock. */
  lengths: Map<TransactionInput, number>
}

/**
 * A wallet with one key and one coin, which does of BRC-100 what a mint asks of one: it puts the change into several
 * outputs, refuses an unlocking script that is longer than was said, runs all scripts, and keeps what it would send. As
 * wallet-toolbox does, it shows of a draft what it spends and none of its ancestors, sends what was signed with `noSend`
 * only when it is named in `sendWith`, and refuses to send what it does not hold.
 */
export class TestWallet implements MintWallet {
  readonly key = new PrivateKey(7)
  readonly sent: Transaction[] = []
  readonly actions: CreateActionArgs[] = []
  readonly aborted: string[] = []
  /** The ids of the keys that it was asked for, in order. */
  readonly keysAsked: string[] = []
  faults: WalletFaults = {}
  private readonly drafts = new Map<string, Draft>()
  /** What is signed, by txid. */
  private readonly unsent = new Map<string, Transaction>()
  private readonly keys = new ProtoWallet(this.key)
  private coin: Coin

  constructor(
    transaction: Transaction,
    private readonly changeOutputs = 3,
  ) {
    this.coin = { transaction, vout: 0 }
  }

  async getPublicKey(args: GetPublicKeyArgs): Promise<{ publicKey: string }> {
    this.keysAsked.push(args.keyID ?? '')
    this.faults.key?.()
    return await this.keys.getPublicKey(args)
  }

  async createSignature(args: CreateSignatureArgs): Promise<CreateSignatureResult> {
    return await this.keys.createSignature(args)
  }

  async createAction(args: CreateActionArgs): Promise<CreateActionResult> {
    this.actions.push(args)
    const { inputs = [], outputs = [], inputBEEF = [], options = {} } = args
    if (inputs.length === 0 && outputs.length === 0) return await this.sendWith(options.sendWith ?? [])
    const transaction = new Transaction()
    const lengths: Draft['lengths'] = new Map()
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
      sourceTransaction: this.coin.transaction,
      sourceOutputIndex: this.coin.vout,
      unlockingScript: new UnlockingScript(),
    })
    const each = Math.floor(
      ((this.coin.transaction.outputs[this.coin.vout]?.satoshis ?? 0) - 1000) / this.changeOutputs,
    )
    for (let left = this.changeOutputs; left > 0; left--)
      transaction.addOutput({ satoshis: each, lockingScript: new P2PKH().lock(this.key.toAddress()) })
    this.faults.draft?.(transaction)
    const reference = String(this.drafts.size)
    this.drafts.set(reference, { transaction, lengths, noSend: options.noSend === true })
    return { signableTransaction: { tx: transaction.toAtomicBEEF(true), reference } }
  }

  async signAction({ reference, spends, options }: SignActionArgs): Promise<SignActionResult> {
    const draft = this.drafts.get(reference)
    if (draft === undefined) throw new Error('no such action')
    const { transaction, lengths } = draft
    for (const [index, { unlockingScript }] of Object.entries(spends)) {
      const input = transaction.inputs[Number(index)]
      const length = input && lengths.get(input)
      if (input === undefined || length === undefined) throw new Error('not an input to unlock')
      if (unlockingScript.length / 2 > length)
        throw new Error('unlockingScript is longer than unlockingScriptLength')
      input.unlockingScript = UnlockingScript.fromHex(unlockingScript)
    }
    const own = transaction.inputs.find(
      ({ sourceTransaction }) => sourceTransaction === this.coin.transaction,
    )
    if (own === undefined) throw new Error('the coin is not there')
    this.faults.sign?.(transaction)
    own.unlockingScriptTemplate = new P2PKH().unlock(this.key)
    await transaction.sign()
    if (!(await transaction.verify('scripts only'))) throw new Error('the scripts do not hold')
    const txid = transaction.id('hex')
    const change = new P2PKH().lock(this.key.toAddress()).toHex()
    const vout = transaction.outputs.findIndex(({ lockingScript }) => lockingScript.toHex() === change)
    this.coin = { transaction, vout }
    this.unsent.set(txid, transaction)
    if (options?.noSend !== true && !draft.noSend) await this.sendWith([txid])
    return { txid, tx: transaction.toAtomicBEEF(true) }
  }

  private async sendWith(txids: string[]): Promise<CreateActionResult> {
    await this.faults.send?.()
    const { result } = this.faults
    const sendWithResults = txids.map((txid) => {
      const transaction = this.unsent.get(txid)
      if (transaction === undefined) throw new Error(`${txid} is no action that waits to be sent`)
      if (result === undefined) this.sent.push(transaction)
      return { txid, status: result === 'failed' ? ('failed' as const) : ('unproven' as const) }
    })
    return result === 'nothing' ? {} : { sendWithResults }
  }

  async abortAction({ reference }: { reference: string }): Promise<{ aborted: true }> {
    this.aborted.push(reference)
    return { aborted: true }
  }
}
