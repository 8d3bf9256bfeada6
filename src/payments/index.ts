/** Pays for transactions, for wallets and apps: a wallet (BRC-100), a key with coins, or fake money. */
export {
  type Draft,
  type DraftInput,
  type DraftOutput,
  feeOf,
  type Keep,
  type Paid,
  type Payer,
  type SendOutcome,
  startTransaction,
} from './draft.js'
export { FAKE_PAYER } from './fake.js'
export { type Coin, DEFAULT_FEE_RATE, payWithKey } from './key.js'
export {
  FAKE_MINT_PAYER,
  type MintTerms,
  mintPayer,
  type NameOwner,
  type NameWallet,
  payForMint,
  unpaidMint,
  walletMintPayer,
  walletOwner,
} from './mints.js'
export { type PayingWallet, payWithWallet, sendWithWallet } from './wallet.js'
export { walletLock } from './wallet-keys.js'
