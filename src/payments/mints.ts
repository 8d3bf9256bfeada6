import { toHex } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import { MintError, requireFinal, rulesOf } from '../../backend/src/protocol/mint.js'
import type { Transaction, WalletInterface } from '../../backend/src/protocol/sdk-types.js'
import { NAME_VOUT } from '../client/verify-name.js'
import { MiningError } from '../mining/mining-error.js'
import {
  finishMint,
  type MintDraft,
  type MintPayer,
  NodeUnlock,
  type PaidMint,
  type SignedMint,
  type SolvedPlan,
  solvePlan,
} from '../mining/mint-transaction.js'
import {
  type Draft,
  type DraftInput,
  type DraftOutput,
  inputOf,
  type Paid,
  startTransaction,
} from './draft.js'
import { FAKE_PAYER, NOBODY_LOCK } from './fake.js'
import { Purse, type PurseWallet } from './purse.js'
import { type PayingWallet, signAndSend } from './wallet.js'
import { NAME_BASKET, nameKey, walletLock } from './wallet-keys.js'

/**
 * A wallet needs the length of an unlocking script before it decides how many change outputs it adds, but the script contains all
 * outputs. This many bytes are reserved for change: about thirty P2PKH outputs.
 */
const ROOM_FOR_CHANGE = 1024

export interface MintTerms extends Pick<MintDraft, 'plan' | 'source'> {
  /** In satoshis; without it, there is no limit. */
  maxFee?: number
  /** Where a wallet keeps the name; by default, it does not keep the name. */
  basket?: DraftOutput['basket']
  /** Inputs that pay for the mint. */
  paidBy?: readonly DraftInput[]
  /** Outputs after those of the mint. */
  setAside?: readonly DraftOutput[]
}

/**
 * The draft of a mint.
 *
 * @param signed Called with the mint once it is signed.
 * @throws MintError if the plan is invalid.
 */
function draftMint(draft: MintTerms, signed: (mint: SignedMint) => void = () => {}): Draft {
  const { source, basket, maxFee = Number.POSITIVE_INFINITY, paidBy = [], setAside = [] } = draft
  const plan = solvePlan(draft.plan)
  const { mint, node } = plan
  const { name } = mint
  const descriptions = [`The node of ${mint.domain || 'the root'}`, `The node of ${name}`, `The name ${name}`]
  const spent: DraftInput = {
    ...{ source, vout: node.outpoint.vout, description: `The node to mine ${name} from` },
    ...{ unlock: new NodeUnlock(plan), isOpen: true, room: ROOM_FOR_CHANGE },
  }
  return {
    what: `the mint of ${name}`,
    description: `Mint the name ${name}`,
    inputs: [spent, ...paidBy],
    outputs: [
      ...plan.outputs.map((output, vout) => ({
        ...output,
        description: descriptions[vout] ?? '',
        basket: vout === NAME_VOUT ? basket : undefined,
      })),
      ...setAside,
    ],
    maxFee,
    check: (transaction) => requireMintable(transaction, plan),
    checkSigned: (transaction) =>
      signed(finishMint({ plan, transaction, input: inputOf(transaction, spent) })),
  }
}

/**
 * A mint without funding. Anyone can add and sign inputs that pay for it later (`ANYONECANPAY`), but the outputs are final.
 *
 * @throws MintError if the plan is invalid.
 */
export async function unpaidMint(draft: Pick<MintDraft, 'plan' | 'source'>): Promise<SignedMint> {
  const plan = solvePlan(draft.plan)
  const transaction = startTransaction(draftMint(draft))
  await transaction.sign()
  return finishMint({ plan, transaction, input: 0 })
}

/** Checked before anything is signed: the covenant rejects other versions and lock times. */
function requireMintable(transaction: Transaction, { deployment, mint }: SolvedPlan): void {
  try {
    requireFinal(transaction, rulesOf(mint.restated, deployment))
  } catch (cause) {
    if (!(cause instanceof MintError)) throw cause
    throw new MiningError('BAD_WALLET', `the wallet drafted no valid mint: ${cause.message}`, { cause })
  }
}

/**
 * Lets `pay` pay for a mint.
 *
 * @param pay Funds a draft and signs it, as the `pay` of a {@link Payer}.
 * @throws MintError if the plan is invalid; what `pay` throws.
 */
export async function payForMint(terms: MintTerms, pay: (draft: Draft) => Promise<Paid>): Promise<PaidMint> {
  let mint: SignedMint | undefined
  const paid = await pay(draftMint(terms, (signed) => (mint = signed)))
  if (mint === undefined) throw new Error('the mint was not checked')
  return { ...mint, ...paid }
}

/** The part of a wallet (BRC-100) that pays for mints and owns the names. */
export type NameWallet = PayingWallet & PurseWallet

export interface NameOwner {
  /** The lock of a name or of one of its prefixes. */
  ownerLock(name: string): Promise<Uint8Array>
  /** The basket in which a wallet keeps a name with this lock. */
  basketOf?(name: string, lock: Uint8Array): Promise<DraftOutput['basket']>
}

/**
 * Pays for mints.
 *
 * @param pay Funds a draft of the mint of a name, signs it and sends it.
 * @param purse Pays for the later mints of a name with coins of the first.
 */
export function mintPayer(
  owner: NameOwner,
  pay: (draft: Draft, name: string) => Promise<Paid>,
  purse?: Purse,
): MintPayer {
  return {
    ownerLock: (name) => owner.ownerLock(name),
    async pay(draft) {
      const { domain } = decodeMineNode(draft.plan.node.lockingScript)
      const name = domain + draft.plan.character
      const basket = await owner.basketOf?.(name, draft.plan.ownerLock)
      const terms = { ...draft, basket }
      const funding = await purse?.fundingOf(draftMint(terms), name)
      const paid = await payForMint({ ...terms, ...funding }, async (each) => await pay(each, name))
      if (funding) await purse?.add(paid, funding, NAME_VOUT + 1)
      return paid
    },
  }
}

/** Pays on a local network. By default, the names have no owner. */
export const FAKE_MINT_PAYER: MintPayer = mintPayer(
  { ownerLock: async () => NOBODY_LOCK },
  async (draft) => await FAKE_PAYER.pay(draft),
)

/**
 * Pays with a wallet (BRC-100), which sends the mint to the network and keeps its own names in a basket.
 *
 * @param options.name The whole name: its first mint pays for the later ones, so that the wallet asks its user once.
 * @param options.keep Stores a signed mint before the wallet sends it.
 * @throws MiningError `REFUSED` if the network rejects a mint, `UNDECIDED` if the wallet does not say whether it does.
 */
export function walletMintPayer(
  wallet: NameWallet,
  options: { name?: string; keep?: (mint: Paid & { name: string }) => Promise<void> } = {},
): MintPayer {
  const { name: whole, keep } = options
  return mintPayer(
    walletOwner(wallet),
    async (draft, name) => await signAndSend(wallet, draft, async (paid) => await keep?.({ ...paid, name })),
    whole === undefined ? undefined : new Purse(wallet, whole),
  )
}

export function walletOwner(wallet: Pick<WalletInterface, 'getPublicKey'>): NameOwner {
  /** By name: the wallet is asked once, as it may ask its user each time. */
  const known = new Map<string, Uint8Array>()
  const ownerLock = async (name: string): Promise<Uint8Array> => {
    const lock = known.get(name) ?? (await walletLock(wallet, name))
    known.set(name, lock)
    return lock
  }
  return {
    ownerLock,
    async basketOf(name, lock) {
      if (toHex(await ownerLock(name)) !== toHex(lock)) return undefined
      return { name: NAME_BASKET, customInstructions: JSON.stringify(nameKey(name)) }
    },
  }
}
