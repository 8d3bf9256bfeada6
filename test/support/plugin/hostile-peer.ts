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

/**
 * A host that hides a forgery in the graph of a true transaction: it shows that without its proof, so that an input is asked for; once
 * more, with its proof; and then for the input the forgery, which stands behind what is proven.
 *
 * @param isTaken Resolves once the true one is stored.
 */
export async function startHidingPeer(
  root: Required<SentNode>,
  forgery: Required<SentNode>,
  isTaken: () => Promise<void>,
): Promise<{ url: string; close(): Promise<void> }> {
  const { txid } = root.transaction
  const graphID = `${txid}.0`
  let show = (): void => {}
  const isAsked = new Promise<void>((asked) => {
    show = asked
  })
  const app = express().use(express.json())
  app.post('/requestSyncResponse', (_request, response) => {
    response.json({ UTXOList: [0, 1].map((outputIndex) => ({ txid, outputIndex, score: 1 })), since: 0 })
  })
  app.post('/requestForeignGASPNode', async ({ body }, response) => {
    const asked = body as { txid: string; outputIndex: number }
    const { transaction, proof } = asked.txid === txid ? root : forgery
    const node = { graphID, rawTx: toHex(transaction.raw), outputIndex: 0 }
    if (asked.txid !== txid) {
      show()
      await isTaken()
    } else if (asked.outputIndex === 0) {
      response.json(node)
      return
    } else await isAsked
    response.json({ ...node, proof })
  })
  return await listening(app)
}

/** Has an engine sync topics from a peer, by default both, and no others. */
export async function syncFrom(
  engine: Engine,
  peer: string,
  topics = ['tm_names', 'tm_ordinals'],
): Promise<void> {
  engine.syncConfiguration = Object.fromEntries(topics.map((topic) => [topic, [peer]]))
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
