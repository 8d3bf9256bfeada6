import { type Answer, posted, type TestServer } from './test-server.js'

/** An output as peers offer it. */
export interface Offered {
  txid: string
  outputIndex: number
  score: number
}

/** What a peer offers of a topic. */
export async function askOffered(
  server: Pick<TestServer, 'ask'>,
  { topic, since = 0, limit }: { topic: string; since?: number; limit?: number },
): Promise<Offered[]> {
  const { headers, ...question } = posted({ version: 1, since, ...(limit && { limit }) })
  const asked = { ...question, headers: { ...headers, 'x-bsv-topic': topic } }
  const { status, body, json } = await server.ask('/requestSyncResponse', asked)
  if (status !== 200) throw new Error(`offered nothing: ${body.toString()}`)
  return (json as { UTXOList: Offered[] }).UTXOList
}

/** Asks for the transaction of an output, `<txid>_<vout>`, in the graph of an offered one. */
export async function askNode(
  server: Pick<TestServer, 'ask'>,
  { graph, outpoint = graph }: { graph: string; outpoint?: string },
): Promise<Answer> {
  const [txid, vout] = outpoint.split('_')
  const question = { graphID: graph.replace('_', '.'), txid, outputIndex: Number(vout), metadata: true }
  return await server.ask('/requestForeignGASPNode', posted(question))
}
