import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, TOPICS } from '../../../backend/src/protocol/profile.js'
import type { Transaction } from '../../../backend/src/protocol/sdk-types.js'
import { type ResolvedName, resolveName } from '../../client/resolve.js'
import { bindingLock } from '../../identity/binding-lock.js'
import {
  askedOnce,
  type BindingWallet,
  draftMove,
  inscribingMove,
  type NameMove,
} from '../../identity/move-name.js'
import { type NameCoin, nameCoin, nameSteps } from '../../identity/name-coin.js'
import { MiningError } from '../../mining/mining-error.js'
import {
  ANSWER_TIMEOUT,
  askServer,
  ordinalsIn,
  quote,
  refusalOf,
  submitBeef,
  unexpectedAnswer,
} from '../../mining/server-answers.js'
import type { Paid } from '../../payments/draft.js'
import { FAKE_PAYER, NOBODY_LOCK } from '../../payments/fake.js'
import { signAndSend } from '../../payments/wallet.js'
import { walletLock } from '../../payments/wallet-keys.js'
import type { FolderEntry } from '../../publish/content-tree.js'
import { planSite, type SitePlan } from '../../publish/plan.js'
import { publishedOn } from '../../publish/published.js'
import type { MiningRun } from '../mine-page/mining-run.js'
import { forgetPayment, savePayment } from '../mine-page/saved-payments.js'

export type Served = Pick<MiningRun, 'server' | 'url'>

/** A name that was verified in this browser, and the wallet that changes it. */
export interface OpenedName {
  name: string
  checked: ResolvedName
  coin: NameCoin
  provenance: Uint8Array
  /** Undefined where money is fake: there, anybody may move names without an owner. */
  wallet: BindingWallet | undefined
}

/** The longest proof of a name's moves that is read, in bytes. */
const MAX_PROVENANCE = 32 * 1024 * 1024

/**
 * Resolves and verifies a name completely, as every move depends on where the name is.
 *
 * @throws ResolutionError; ProofError; MiningError; IdentityError.
 */
export async function openName(
  { server, url }: Served,
  name: string,
  wallet: BindingWallet | undefined,
): Promise<OpenedName> {
  const { deployment } = server
  // The server provides this page, so it is trusted about blocks as well.
  const checked = await resolveName({ name, deployment, sources: [url], chainTracker: 'scripts only' })
  const { tip, origin, spendStatus } = checked
  if (spendStatus !== 'unspent')
    throw new MiningError(
      'BAD_INDEX',
      `${name} may no longer be at ${formatOutpoint(tip.tip)}: try again later`,
    )
  const [prefix] = PROFILES.local.gatewayPrefixes
  const asked = `${url}${prefix}/provenance/${formatOutpoint(origin.origin)}`
  const { status, body } = await askServer({ url: asked, timeout: ANSWER_TIMEOUT, maxBytes: MAX_PROVENANCE })
  if (status !== 200) throw unexpectedAnswer(url, { status, body: undefined })
  const coin = nameCoin({ name, tip, provenance: body })
  return { name, checked, coin, provenance: body, wallet: wallet && askedOnce(wallet) }
}

/** Plans a site as the next content of a name. Files that the name has inscribed before are referenced, not paid for again. */
export function planOn(
  { server }: Served,
  { name, checked: { tip }, provenance }: OpenedName,
  { site, lock = NOBODY_LOCK }: { site: FolderEntry; lock?: Uint8Array },
): SitePlan {
  const profile = PROFILES[server.profile]
  const published = publishedOn({ steps: nameSteps({ name, tip, provenance }), profile })
  return planSite({ site, lock, profile, published })
}

export async function publishing(
  served: Served,
  opened: OpenedName,
  site: FolderEntry,
): Promise<Pick<NameMove, 'lock' | 'behind' | 'outputs'>> {
  const { coin, wallet, name } = opened
  const lock = wallet === undefined ? NOBODY_LOCK : await walletLock(wallet, name)
  const { outputs } = planOn(served, opened, { site, lock })
  return await inscribingMove({ coin, holder: { ...(wallet && { wallet }) } }, { lock, outputs })
}

/** The lock of a wallet that binds a name to its identity, or to none. */
export async function boundLock(
  { coin }: OpenedName,
  { wallet, isBound }: { wallet: BindingWallet; isBound: boolean },
): Promise<Uint8Array> {
  return isBound ? await bindingLock({ coin, signer: wallet }) : await walletLock(wallet, coin.name)
}

/**
 * Moves a name: a wallet signs the transaction, this browser keeps it, the wallet sends it, and the server gets it.
 *
 * @throws IdentityError; MiningError; DOMException if the browser cannot keep it; what the wallet throws.
 */
export async function moveName(
  { url }: Served,
  { name, coin, wallet }: OpenedName,
  move: Pick<NameMove, 'lock' | 'behind' | 'outputs' | 'maxFee'>,
): Promise<Paid> {
  const draft = await draftMove({ coin, holder: { ...(wallet && { wallet }) }, ...move })
  const paid =
    wallet === undefined
      ? await FAKE_PAYER.pay(draft)
      : await signAndSend(wallet, draft, async ({ transaction, beef }) =>
          savePayment('move', { name, txid: transaction.id('hex'), beef }),
        )
  await submitMove(url, paid)
  return paid
}

/** In milliseconds: submissions are queued, and a site is verified and stored as a whole. */
const SUBMIT_TIMEOUT = 120_000

/**
 * Submits a change of a name. All of its ordinals must be admitted.
 *
 * @throws MiningError `REFUSED` if another transaction counts, or the server leaves out some outputs; those of {@link
 * submitBeef}.
 */
export async function submitMove(
  url: string,
  { transaction, beef }: { transaction: Transaction; beef: Uint8Array },
): Promise<void> {
  const { status, body, admitted } = await submitBeef({
    ...{ url, beef, topics: [TOPICS.ordinals], timeout: SUBMIT_TIMEOUT },
  })
  if (status === 409)
    throw new MiningError('REFUSED', quote(refusalOf(body)?.error ?? 'another transaction counts'))
  if (admitted === undefined) throw unexpectedAnswer(url, { status, body })
  const { left } = ordinalsIn(transaction, admitted[TOPICS.ordinals])
  if (left > 0) throw new MiningError('REFUSED', `the server did not admit ${left} outputs: see its log`)
  forgetPayment('move', transaction.id('hex'))
}
