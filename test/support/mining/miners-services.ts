import { Transaction } from '@bsv/sdk'
import express from 'express'
import { serving } from '../server/connections.js'
import type { TestWallet } from './test-wallet.js'

/** What lies outside a miner's machine, in the protocols that it speaks. */

/** A wallet behind the HTTP interface of BRC-100: JSON in a POST to the name of the call. */
export async function walletServer(wallet: TestWallet): Promise<{ url: string; close(): Promise<void> }> {
  const calls: Record<string, (args: never) => Promise<unknown>> = {
    createAction: (args) => wallet.createAction(args),
    signAction: (args) => wallet.signAction(args),
    abortAction: (args) => wallet.abortAction(args),
    getPublicKey: (args) => wallet.getPublicKey(args),
    createSignature: (args) => wallet.createSignature(args),
  }
  const app = express().use(express.json({ limit: '10mb' }))
  for (const [call, answer] of Object.entries(calls)) {
    app.post(`/${call}`, async (request, response) => {
      try {
        response.json(await answer(request.body as never))
      } catch (error) {
        // An error with a code of BRC-100 has its fields beside the message.
        response.status(400).json({ isError: true, ...(error as Error), message: (error as Error).message })
      }
    })
  }
  return await serving(app)
}

/** The statuses of ARC with which a transaction is under way (`Status` of its API). */
export const ACCEPTING_ARC_STATUSES = [
  'RECEIVED',
  'STORED',
  'ANNOUNCED_TO_NETWORK',
  'REQUESTED_BY_NETWORK',
  'SENT_TO_NETWORK',
  'ACCEPTED_BY_NETWORK',
  'SEEN_ON_NETWORK',
  'MINED',
  'QUEUED',
] as const

/** A miner's ARC service, and below `/arcade` an Arcade (bsv-blockchain/arcade). */
export interface ArcServer {
  url: string
  /** What it was sent, in the extended format with the coins that it spends. */
  received: Transaction[]
  /** The keys that came with them. */
  keys: (string | undefined)[]
  /** What it says of the next: a status, that of each transaction, or `'no answer'`: nothing, ever. */
  says: string | ((transaction: Transaction) => string)
  /** The txid that it speaks of, instead of the one it was sent. */
  of?: string
  close(): Promise<void>
}

export async function arcServer(): Promise<ArcServer> {
  const received: Transaction[] = []
  const keys: ArcServer['keys'] = []
  const app = express().use(express.json({ limit: '10mb' }))
  app.post(['/v1/tx', '/arcade/tx'], (request, response) => {
    const isArcade = request.path === '/arcade/tx'

    const transaction = Transaction.fromHexEF((request.body as { rawTx: string }).rawTx)
    received.push(transaction)
    keys.push(request.get('Authorization'))
    const status = typeof arc.says === 'string' ? arc.says : arc.says(transaction)
    if (status === 'no answer') return
    const txid = arc.of ?? transaction.id('hex')
    // An error of ARC is an HTTP status with a problem document (RFC 7807).
    if (/^\d+$/.test(status))
      response.status(isArcade ? 400 : Number(status)).json({ status, txid, detail: 'no', title: status })
    else if (isArcade) response.status(202).json({ txid, status: 202, txStatus: status })
    else response.json({ txid, txStatus: status, extraInfo: '' })
  })
  const arc: ArcServer = { ...(await serving(app)), received, keys, says: 'SEEN_ON_NETWORK' }
  return arc
}
