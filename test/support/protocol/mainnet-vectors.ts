import { existsSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { readTransaction, type TransactionView } from '../../../backend/src/protocol/transaction.js'

/**
 * Transactions from the live chain. They lie beside the checkout, not in it, so that they may be absent; npm runs its
 * scripts in the checkout.
 */
const FOLDER = new URL('../shared/vectors/mainnet/', pathToFileURL(`${process.cwd()}/`))

interface MintVector {
  txid: string
  spends: string
  char: string
  nonce: string
  seedBefore: string
  hash256: string
  restated: { vout: number; domain: string; claimed: string }
  child: { vout: number; domain: string; claimed: string }
  name: { vout: number; name: string; lock: string }
}

interface ContentVector {
  outpoint: string
  contentType: string
  bytes: number
  sha256?: string
  text?: string
}

export interface MainnetVectors {
  mineTree: { genesis: string; difficulty: number; mints: MintVector[] }
  content: ContentVector[]
}

/** The index of the vectors; undefined where the folder is absent. */
export function mainnetVectors(): MainnetVectors | undefined {
  const index = new URL('index.json', FOLDER)
  return existsSync(index) ? JSON.parse(readFileSync(index, 'utf8')) : undefined
}

export function mainnetTransaction(txid: string): TransactionView {
  return readTransaction(fromHex(readFileSync(new URL(`${txid}.hex`, FOLDER), 'utf8').trim()))
}
