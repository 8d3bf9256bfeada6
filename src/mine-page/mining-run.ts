import { WalletClient } from '@bsv/sdk'
import { MADE_UP_PAYER } from '../mining/made-up-mint.js'
import type { HttpMineIndex } from '../mining/mine-index.js'
import {
  type MiningEvent,
  type MintDraft,
  type MintPayer,
  mineName,
  type PaidMint,
  solveNext,
} from '../mining/mine-name.js'
import { MiningError } from '../mining/mining-error.js'
import { type SignedMint, unpaidMint } from '../mining/mint-transaction.js'
import { payWithWallet } from '../mining/pay-with-wallet.js'
import type { ServerDeployment } from '../mining/server-deployment.js'
import type { MiningOrder, Payer } from './mining-order.js'

/** A mint to show. `beef` is there where it was paid for. */
export interface ShownMint extends MintDraft, SignedMint, Partial<Pick<PaidMint, 'beef'>> {}

export interface MiningRun {
  order: MiningOrder
  server: ServerDeployment
  index: HttpMineIndex
  workerUrl: URL
  signal: AbortSignal
  onEvent(event: MiningEvent): void
  /** A mint was made. One that was paid for is submitted next. */
  onMint(mint: ShownMint): void
}

/**
 * Mines what was ordered: all that is missing of the name where somebody pays, and its next character where nobody does.
 *
 * @throws MiningError, SearchError, MintError, as mining does; what the wallet throws; the reason of the signal.
 */
export async function runOrder(run: MiningRun): Promise<void> {
  const { order, server, signal, onMint } = run
  const { name, workers } = order
  const payer = await payerOf(order.payer)
  const ownerLock = async (each: string): Promise<Uint8Array> =>
    order.ownerLock ?? (await (payer ?? MADE_UP_PAYER).ownerLock(each))
  const { index, workerUrl, onEvent } = run
  const { deployment } = server
  const options = { name, deployment, index, ownerLock, workers, workerUrl, signal, onEvent }
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

async function payerOf(payer: Payer): Promise<MintPayer | undefined> {
  if (payer === 'nobody') return undefined
  return payer === 'made-up' ? MADE_UP_PAYER : payWithWallet(await findWallet())
}

/** @throws MiningError `BAD_WALLET`, before anything is mined. */
async function findWallet(): Promise<WalletClient> {
  // One that the browser brings needs no asking around on the machine.
  const wallet = new WalletClient('CWI' in window ? 'window.CWI' : 'auto', location.hostname)
  try {
    await wallet.connectToSubstrate()
  } catch (cause) {
    throw new MiningError('BAD_WALLET', 'no wallet answers in this browser or on this machine', { cause })
  }
  return wallet
}
