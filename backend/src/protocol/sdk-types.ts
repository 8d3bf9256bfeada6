/**
 * The types of the SDK that public declarations name, each from its own module. The declarations of the SDK as a whole (2.1.0)
 * do not compile under `strict` without `skipLibCheck`, and ask a browser's program for the types of Node.
 */
export type { LookupResolverConfig } from '@bsv/sdk/overlay-tools/LookupResolver'
export type { default as PrivateKey } from '@bsv/sdk/primitives/PrivateKey'
export type { default as PublicKey } from '@bsv/sdk/primitives/PublicKey'
export type { default as ScriptTemplateUnlock } from '@bsv/sdk/script/ScriptTemplateUnlock'
export type { default as UnlockingScript } from '@bsv/sdk/script/UnlockingScript'
export type { default as ChainTracker } from '@bsv/sdk/transaction/ChainTracker'
export type { HttpClient, HttpClientResponse } from '@bsv/sdk/transaction/http/HttpClient'
export type { default as MerklePath } from '@bsv/sdk/transaction/MerklePath'
export type { default as Transaction } from '@bsv/sdk/transaction/Transaction'
export type { WalletInterface } from '@bsv/sdk/wallet/Wallet.interfaces'
