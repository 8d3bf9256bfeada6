import type { PrivateKey, Transaction } from '@bsv/sdk'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { fundWithKey } from '../mining/fund-with-key.js'
import { WalletSendError } from '../mining/fund-with-wallet.js'
import { keyLock } from '../mining/key-lock.js'
import type { MintPayer, PaidMint } from '../mining/mine-name.js'
import { MiningError } from '../mining/mining-error.js'
import { type NameWallet, payWithWallet } from '../mining/pay-with-wallet.js'
import { coinsOf } from './coins.js'
import { CommandError } from './command-error.js'
import type { MintFolder } from './mint-folder.js'
import type { SendMint } from './send-mint.js'

/**
 * Pays with coins of one key, and with the change of the mints before. A mint goes to the network before any index hears
 * of it.
 *
 * @param options.coins Transactions with coins of the key, each with its proof or ancestors.
 * @param options.feeRate In satoshis per 1,000 bytes.
 * @param options.send Without it, mints go to the index alone.
 */
export function keyPayer(options: {
  key: PrivateKey
  coins: readonly Transaction[]
  folder: MintFolder
  feeRate?: number
  send: SendMint | undefined
}): MintPayer {
  const { key, coins, folder, feeRate, send } = options
  return {
    ownerLock: async () => keyLock(key.toPublicKey()),
    lost: (mint, rival) => loseMint(folder, mint, rival),
    async pay({ plan, source, maxFee }) {
      const signed = await fundWithKey({
        ...{ plan, source, key, maxFee },
        coins: coinsOf(key, { coins, ...(await folder.read()) }),
        ...(feeRate !== undefined && { feeRate }),
      })
      const { transaction, mint } = signed
      const beef = writeBeef(transaction)
      const txid = transaction.id('hex')
      await folder.keep(txid, beef)
      const outcome = await send?.({ transaction, name: mint.name })
      if (outcome?.kind === 'accepted') await folder.settle(txid, 'sent')
      if (outcome?.kind === 'refused') {
        await folder.settle(txid, 'lost')
        throw new CommandError(`the network refuses ${txid}: ${outcome.why}`, { exit: 'refused' })
      }
      if (outcome?.kind === 'undecided') throw undecided(txid, outcome.why)
      return { ...signed, beef, fee: transaction.getFee() }
    },
  }
}

/** Pays with a wallet (BRC-100), as {@link payWithWallet}; each mint is stored before the wallet sends it. */
export function walletPayer({ wallet, folder }: { wallet: NameWallet; folder: MintFolder }): MintPayer {
  const payer = payWithWallet(wallet, {
    keep: async ({ transaction, beef }) => await folder.keep(transaction.id('hex'), beef),
  })
  return {
    ...payer,
    lost: (mint, rival) => loseMint(folder, mint, rival),
    async pay(draft) {
      try {
        const paid = await payer.pay(draft)
        await folder.settle(paid.transaction.id('hex'), 'sent')
        return paid
      } catch (error) {
        if (!(error instanceof WalletSendError)) throw error
        const { txid, isFinal, message } = error
        if (!isFinal) throw undecided(txid, message)
        await folder.settle(txid, 'lost')
        throw new CommandError(message, { exit: 'refused', cause: error })
      }
    },
  }
}

function undecided(txid: string, why: string): CommandError {
  return new CommandError(
    `nobody knows yet whether the network takes ${txid}: ${why}; it is kept, and the same command sends it again`,
    { exit: 'unavailable' },
  )
}

/**
 * Notes that another mint has taken the place of a paid one. An index cannot overrule the network: what that has accepted
 * is lost only where the other mint is in a block.
 *
 * @throws MiningError `UNDECIDED`.
 */
async function loseMint(
  folder: MintFolder,
  { transaction }: PaidMint,
  rival: { proven: boolean },
): Promise<void> {
  const txid = transaction.id('hex')
  if (!rival.proven && (await folder.stateOf(txid)) === 'sent')
    throw new MiningError(
      'UNDECIDED',
      `the network has accepted ${txid}, and the server shows another mint, in no block yet, in its place; the same command looks again`,
    )
  await folder.settle(txid, 'lost')
}
