import { Transaction } from '@bsv/sdk'
import { ownersMint } from '../../mining/live-node.js'
import { HttpMineIndex } from '../../mining/mine-index.js'
import { type MiningEvent, mineName, solveNext } from '../../mining/mine-name.js'
import { NodeMovedError } from '../../mining/mining-error.js'
import type { MintDraft, MintPayer, PaidMint, SignedMint } from '../../mining/mint-transaction.js'
import type { ServerDeployment } from '../../mining/server-deployment.js'
import { FAKE_MINT_PAYER, unpaidMint, walletMintPayer } from '../../payments/mints.js'
import { sendWithWallet } from '../../payments/wallet.js'
import { findWallet } from './find-wallet.js'
import type { MiningOrder } from './mining-order.js'
import { savePayment } from './saved-payments.js'

/** A mint to show; `beef` is present if it is paid for. */
export interface ShownMint
  extends Pick<MintDraft, 'plan' | 'source'>,
    SignedMint,
    Partial<Pick<PaidMint, 'beef'>> {}

export interface Served {
  server: ServerDeployment
  /** The URL of the server, without a slash at the end. */
  url: string
  workerUrl: URL
}

export interface MiningRun extends Served {
  order: MiningOrder
  signal: AbortSignal
  onEvent(event: MiningEvent): void
  /** Called when a mint is made. A paid one is submitted next. */
  onMint(mint: ShownMint): void
}

/**
 * Mines all missing characters of the name if somebody pays, and only the next one if nobody does.
 *
 * @throws MiningError; SearchError; MintError; what the wallet throws; the reason of the signal.
 */
export async function runOrder(run: MiningRun): Promise<void> {
  const { order, server, signal, onMint } = run
  const { name, workers } = order
  const payer = await payerOf(order)
  const ownerLock = async (each: string): Promise<Uint8Array> =>
    order.ownerLock ?? (await (payer ?? FAKE_MINT_PAYER).ownerLock(each))
  const { url, workerUrl, onEvent } = run
  const index = new HttpMineIndex({ url })
  const { deployment } = server
  // The server provides this page, so it is trusted about blocks as well.
  const chainTracker = 'scripts only' as const
  const options = { name, deployment, index, ownerLock, workers, workerUrl, signal, onEvent, chainTracker }
  if (payer === undefined) {
    const draft = await solveNext(options)
    onMint({ ...draft, ...(await unpaidMint(draft)) })
    return
  }
  await mineName({
    ...options,
    async pay(draft) {
      const paid = await payer.pay(draft)
      onMint({ ...draft, ...paid })
      return paid
    },
  })
}

async function payerOf({ payer, name }: MiningOrder): Promise<MintPayer | undefined> {
  if (payer === 'nobody') return undefined
  if (payer === 'fake') return FAKE_MINT_PAYER
  return walletMintPayer(await findWallet(), {
    name,
    keep: async ({ transaction, beef, ...mint }) =>
      savePayment('mint', { name: mint.name, txid: transaction.id('hex'), beef }),
  })
}

/**
 * Sends a paid mint again: first to the network, if there is a wallet, then to the server.
 *
 * @returns The state of the mint.
 * @throws MiningError, as {@link HttpMineIndex.submit}.
 */
export async function resend(
  { url, server }: Pick<MiningRun, 'url' | 'server'>,
  mint: { beef: Uint8Array; txid: string; name: string },
): Promise<{ kind: 'known' } | { kind: 'by-other'; by: string } | { kind: 'lost' }> {
  const index = new HttpMineIndex({ url })
  const wallet = await findWallet().catch(() => undefined)
  // A wallet that has already sent it refuses. Whatever the wallet says, the server decides.
  const { txid, name } = mint
  if (wallet !== undefined) await sendWithWallet(wallet, { txid, description: `Send the mint of ${name}` })
  try {
    await index.submit(mint)
    return { kind: 'known' }
  } catch (error) {
    if (!(error instanceof NodeMovedError)) throw error
    const script = Transaction.fromBEEF(Array.from(mint.beef), txid).outputs[2]?.lockingScript
    const nameScript = Uint8Array.from(script?.toUint8Array() ?? [])
    const { deployment } = server
    const found = await ownersMint({ index, deployment, name, nameScript, chainTracker: 'scripts only' })
    if (found === undefined) return { kind: 'lost' }
    return found.txid === txid ? { kind: 'known' } : { kind: 'by-other', by: found.txid }
  }
}
