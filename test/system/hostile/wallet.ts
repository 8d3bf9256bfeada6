import { P2PKH, PrivateKey, type Transaction } from '@bsv/sdk'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import type { BodyDeed } from './body-deeds.js'
import { answer, type HostileServer } from './hostile-server.js'
import { doing } from './index-front.js'
import type { Stage } from './stage.js'

/** What a wallet (BRC-100) does otherwise than it should. */
export const WALLET_DEEDS = {
  'pays a fee of all it has': (wallet) => {
    wallet.faults.draft = (transaction) => void transaction.outputs.splice(3)
  },
  'puts another owner into the name': (wallet) => {
    wallet.faults.draft = (transaction) => {
      const name = transaction.outputs[2]
      if (name !== undefined) name.lockingScript = new P2PKH().lock(new PrivateKey(666).toAddress())
    }
  },
  'puts an output of its own first': (wallet) => {
    wallet.faults.draft = (transaction) => {
      transaction.outputs.unshift({ satoshis: 1, lockingScript: new P2PKH().lock(wallet.key.toAddress()) })
    }
  },
  'says it failed after it sent': (wallet) => {
    const sign = wallet.signAction.bind(wallet)
    wallet.signAction = async (args) => {
      await sign(args)
      throw new Error('the mint could not be sent')
    }
  },
  'gives another transaction back than it drafted': (wallet) => {
    const sign = wallet.signAction.bind(wallet)
    wallet.signAction = async (args) => {
      const signed = await sign(args)
      const other = coinsFor(wallet.key, 1, 1, 1)
      return { ...signed, tx: other.toAtomicBEEF(true) }
    }
  },
  'leaves nothing to sign': (wallet) => {
    wallet.createAction = async () => ({})
  },
  'drafts garbage': (wallet) => {
    wallet.createAction = async () => ({ signableTransaction: { tx: [1, 2, 3], reference: 'r' } })
  },
  'fails with 30 MB of text': (wallet) => {
    wallet.createAction = async () => {
      throw new Error('e'.repeat(30_000_000))
    }
  },
} satisfies Record<string, (wallet: TestWallet) => void>

export interface HostileWallet {
  server: HostileServer
  url: string
  wallet: TestWallet
}

/**
 * A wallet behind the HTTP interface of BRC-100, with a coin of so many satoshis. What it sends is noted.
 *
 * @param options.calls What happens to these calls in place of an answer.
 */
export async function hostileWallet(
  stage: Stage,
  options: {
    deed?: (wallet: TestWallet) => void
    calls?: Record<string, BodyDeed>
    satoshis?: number
  } = {},
): Promise<HostileWallet> {
  const { deed, calls = {}, satoshis = 50_000 } = options
  const wallet = new TestWallet(coinsFor(new PrivateKey(7), satoshis))
  deed?.(wallet)
  const noted = new Set<Transaction>()
  const server = await stage.serve(async (request, response) => {
    const call = request.path.slice(1)
    const own = calls[call]
    if (own !== undefined) return await doing(own, stage)(request, response)
    const answering = (wallet as unknown as Record<string, unknown>)[call]
    try {
      if (typeof answering !== 'function') throw new Error(`no such call: ${call}`)
      answer(response, await answering.call(wallet, JSON.parse(request.body.toString('utf8'))))
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      answer(response, { message }, { status: 400 })
    }
    for (const transaction of wallet.sent) {
      if (!noted.has(transaction)) stage.ledger.note(transaction, 'wallet')
      noted.add(transaction)
    }
  })
  return { server, url: server.url, wallet }
}
