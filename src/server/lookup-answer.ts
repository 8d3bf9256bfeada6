import { Utils } from '@bsv/sdk'
import type { Request, Response } from 'express'
import { assembleBeef } from '../../backend/src/graph/assemble-beef.js'
import { Collection } from '../../backend/src/graph/collection.js'
import type { TransactionReader } from '../../backend/src/graph/graph-store.js'
import { type ListedTransaction, listedBeef } from '../../backend/src/graph/listed-beef.js'
import type { AnsweringOutput } from '../../backend/src/lookup-services/output-history.js'
import { fromHex } from '../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../backend/src/protocol/media-type.js'
import { sendPieces } from '../gateway/send-pieces.js'

interface LookupAnswer {
  request: Request
  response: Response
  formula: AnsweringOutput[]
  graph: TransactionReader
}

/** Answers a lookup with outputs and their BEEF (BRC-24), as JSON or in binary (`spec/http.md`, Overlay). */
export async function sendLookupAnswer({ request, response, formula, graph }: LookupAnswer): Promise<void> {
  const aggregated = request.get('X-Aggregation') === 'yes'
  if (formula.some(({ transactions }) => transactions !== undefined)) {
    const outputs = await withTransactions(formula, graph)
    // The SDK's client asks for binary always, and keeps of it what vouches for the output: of a proven one, no history.
    const binary = aggregated && request.accepts('json', UNTYPED) === UNTYPED
    response.setHeader('Content-Type', binary ? UNTYPED : 'application/json; charset=utf-8')
    await sendPieces<Uint8Array | string>(response, {
      pieces: binary ? binaryPieces(outputs, graph) : jsonPieces(outputs, graph),
    })
  } else if (aggregated) {
    const txids = [...new Set(formula.map(({ txid }) => txid))]
    response.setHeader('Content-Type', UNTYPED)
    response.end(Buffer.concat([outputList(formula), await beefOf(txids, graph)]))
  } else {
    const outputs = []
    for (const { txid, outputIndex } of formula) {
      outputs.push({ beef: Array.from(await beefOf([txid], graph)), outputIndex })
    }
    response.json({ type: 'output-list', outputs })
  }
}

async function beefOf(txids: string[], graph: TransactionReader): Promise<Uint8Array> {
  const beef = await assembleBeef(txids, graph)
  if (beef === undefined) throw notHeld(txids)
  return beef
}

function notHeld(txids: string[]): Error {
  return new Error(`the index names a transaction that the store does not hold: ${txids}`)
}

/** Count, then txid, index and context of each output (no context here). */
function outputList(outputs: { txid: string; outputIndex: number }[]): Uint8Array {
  const writer = new Utils.Writer()
  writer.writeVarIntNum(outputs.length)
  for (const { txid, outputIndex } of outputs) {
    writer.write(fromHex(txid))
    writer.writeVarIntNum(outputIndex)
    writer.writeVarIntNum(0)
  }
  return writer.toUint8Array()
}

/** An output, and all that its BEEF is to hold. */
type WithTransactions = AnsweringOutput & { transactions: ListedTransaction[] }

async function withTransactions(
  formula: AnsweringOutput[],
  graph: TransactionReader,
): Promise<WithTransactions[]> {
  const outputs: WithTransactions[] = []
  for (const output of formula) {
    const { txid, transactions = await vouching(txid, graph) } = output
    if (transactions.at(-1)?.txid !== txid) throw notHeld([txid])
    outputs.push({ ...output, transactions })
  }
  return outputs
}

async function vouching(txid: string, graph: TransactionReader): Promise<ListedTransaction[]> {
  const collection = new Collection(graph)
  await collection.addAncestry(txid)
  return collection.parentsFirst()
}

/** One BEEF for all, each transaction once; sent while it is read, for a history may be of any length. */
async function* binaryPieces(
  outputs: WithTransactions[],
  store: TransactionReader,
): AsyncGenerator<Uint8Array> {
  const all = new Map(outputs.flatMap(({ transactions }) => transactions.map((each) => [each.txid, each])))
  yield* (
    await listedBeef({ transactions: [...all.values()], store, envelope: [outputList(outputs)] })
  ).bytes()
}

/** What `response.json` would send, but a number for each byte is never all in memory. */
async function* jsonPieces(outputs: WithTransactions[], store: TransactionReader): AsyncGenerator<string> {
  let opening = '{"type":"output-list","outputs":[{"beef":['
  for (const { transactions, outputIndex } of outputs) {
    const beef = await listedBeef({ transactions, store })
    for await (const piece of beef.bytes()) {
      for (let at = 0; at < piece.length; at += BYTES_A_PIECE) {
        yield opening + piece.subarray(at, at + BYTES_A_PIECE).join()
        opening = ','
      }
    }
    yield `],"outputIndex":${outputIndex}}`
    opening = ',{"beef":['
  }
  yield ']}'
}

/** Each is up to four characters of JSON. */
const BYTES_A_PIECE = 64 * 1024
