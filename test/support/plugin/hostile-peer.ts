import type { Engine } from '@bsv/overlay'
import express from 'express'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import type { FakeTransaction } from '../protocol/fake-chain.js'
import { listening } from '../server/connections.js'

/** What a peer sends of a transaction: its proof, true or not, or none. */
export interface SentNode {
  transaction: FakeTransaction
  proof?: string | undefined
}

/** A host that offers outputs by GASP, and sends any transactions for them. */
export async function startHostilePeer(
  offered: { txid: string; outputIndex: number }[],
  nodes: SentNode[],
): Promise<{ url: string; asked: string[]; close(): Promise<void> }> {
  const asked: string[] = []
  const app = express().use(express.json())
  app.post('/requestSyncResponse', (_request, response) => {
    response.json({ UTXOList: offered.map((each) => ({ ...each, score: 1 })), since: 0 })
  })
  app.post('/requestForeignGASPNode', ({ body }, response) => {
    const { graphID, txid, outputIndex } = body as { graphID: string; txid: string; outputIndex: number }
    const sent = nodes.find(({ transaction }) => transaction.txid === txid)
    if (sent === undefined) return void response.sendStatus(404)
    asked.push(txid)
    const { transaction, proof } = sent
    response.json({ graphID, rawTx: toHex(transaction.raw), outputIndex, ...(proof && { proof }) })
  })
  const { url, close } = await listening(app)
  return { url, asked, close }
}

/** Has an engine sync both topics from a peer, and no others. */
export async function syncFrom(engine: Engine, peer: string): Promise<void> {
  engine.syncConfiguration = { tm_names: [peer], tm_ordinals: [peer] }
  // It logs each message of the protocol.
  const { log, info, warn, error } = console
  Object.assign(console, { log() {}, info() {}, warn() {}, error() {} })
  try {
    await engine.startGASPSync()
  } finally {
    Object.assign(console, { log, info, warn, error })
  }
}

/** Refuses whatever it is to broadcast. */
export const refusingBroadcaster = {
  async broadcast() {
    return { status: 'error' as const, code: 'REFUSED', description: 'the network refuses it' }
  },
}
