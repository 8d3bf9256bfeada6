import type { PrivateKey, Transaction } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { readBeefTransaction, writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { type Coin, fundWithKey, p2pkhLockOf } from '../mining/fund-with-key.js'
import { type NameWallet, payWithWallet, WalletSendError } from '../mining/fund-with-wallet.js'
import { MiningError } from '../mining/mining-error.js'
import type { MintPayer, PaidMint } from '../mining/mint-transaction.js'
import { CommandError } from './command.js'
import { findTransactions } from './import-files.js'
import type { MintFolder, StoredMint } from './mint-folder.js'
import type { SendMint } from './mint-services.js'
import { recordOutcome, undecided } from './payment.js'

const SEND_AGAIN = 'the mint is stored: run the same command again to send it once more'

/**
 * Pays with coins of one key, and with the change of earlier mints. A mint is sent to the network before it is submitted to
 * an index.
 *
 * @param options.coins Transactions with coins of the key, each with its proof or ancestors.
 * @param options.feeRate In satoshis per 1,000 bytes.
 * @param options.send Without it, mints are only submitted to the index.
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
    ownerLock: async () => p2pkhLockOf(key.toPublicKey()),
    lost: (mint, other) => loseMint(folder, mint, other),
    async pay({ plan, source, maxFee }) {
      const signed = await fundWithKey({
        ...{ plan, source, key, maxFee },
        coins: coinsOf(key, { coins, ...(await folder.read()) }),
        feeRate,
      })
      const { transaction, mint } = signed
      const beef = writeBeef(transaction)
      const txid = transaction.id('hex')
      await folder.keep(txid, beef)
      const outcome = await send?.({ transaction, name: mint.name })
      if (outcome !== undefined) await recordOutcome(folder, { txid, outcome, later: SEND_AGAIN })
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
    lost: (mint, other) => loseMint(folder, mint, other),
    async pay(draft) {
      try {
        const paid = await payer.pay(draft)
        await folder.setState(paid.transaction.id('hex'), 'sent')
        return paid
      } catch (error) {
        if (!(error instanceof WalletSendError)) throw error
        const { txid, isFinal, message } = error
        if (!isFinal) throw undecided({ txid, why: message, later: SEND_AGAIN })
        await folder.setState(txid, 'lost')
        throw new CommandError(message, { exit: 'refused', cause: error })
      }
    },
  }
}

/**
 * Records that another mint has replaced a paid one. An index cannot overrule the network: a mint that the network has
 * accepted is lost only if the other one is in a block.
 *
 * @throws MiningError `UNDECIDED`.
 */
async function loseMint(
  folder: MintFolder,
  { transaction }: PaidMint,
  other: { proven: boolean },
): Promise<void> {
  const txid = transaction.id('hex')
  if (!other.proven && (await folder.stateOf(txid)) === 'sent')
    throw new MiningError(
      'UNDECIDED',
      `the network has accepted ${txid}, and the server shows another mint, in no block yet, in its place: run the same command again later`,
    )
  await folder.setState(txid, 'lost')
}

/**
 * The transactions in files, each with its proof or its ancestors.
 *
 * @param paths Files, or folders to search, with BEEF as bytes or as hex.
 * @throws ImportError if a path cannot be read; CommandError if a transaction has neither.
 */
export async function readTransactions(paths: string[]): Promise<Transaction[]> {
  const found = await findTransactions(paths)
  const read: Transaction[] = []
  for (const transaction of found.transactions) {
    const { txid } = transaction
    const { value: beef } = await found.beefsOf(transaction).next()
    if (!found.isInBeef(transaction) || !beef)
      throw new CommandError(`${txid} carries no proof: provide its coins in a BEEF`, { exit: 'usage' })
    read.push(readBeefTransaction(beef, { txid, hash: nativeHash256 }))
  }
  return read
}

/**
 * The P2PKH outputs of a key that no known transaction spends. The inputs of a mint stay spent unless it is lost; its change
 * can be spent once the network or an index has accepted it.
 */
export function coinsOf(
  key: PrivateKey,
  { coins, mints }: { coins: readonly Transaction[]; mints: readonly StoredMint[] },
): Coin[] {
  const lock = toHex(p2pkhLockOf(key.toPublicKey()))
  const kept = mints.filter(({ state }) => state !== 'lost')
  const taken = kept.filter(({ state }) => state !== 'pending')
  const transactionsOf = (stored: StoredMint[]): Transaction[] => stored.map((mint) => mint.transaction)
  const spent = new Set(
    [...coins, ...transactionsOf(kept)].flatMap(({ inputs }) =>
      inputs.map(
        (input) => `${input.sourceTXID ?? input.sourceTransaction?.id('hex')}_${input.sourceOutputIndex}`,
      ),
    ),
  )
  const each = new Map([...coins, ...transactionsOf(taken)].map((found) => [found.id('hex'), found]))
  return [...each].flatMap(([txid, transaction]) =>
    transaction.outputs.flatMap(({ lockingScript }, vout) =>
      lockingScript.toHex() === lock && !spent.has(`${txid}_${vout}`) ? [{ transaction, vout }] : [],
    ),
  )
}
