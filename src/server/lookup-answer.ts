import { Utils } from '@bsv/sdk'
import type { Request, Response } from 'express'
import { Collection } from '../../backend/src/graph/collection.js'
import type { TransactionReader } from '../../backend/src/graph/graph-store.js'
import { type ListedTransaction, listedBeef } from '../../backend/src/graph/listed-beef.js'
import type { AnsweringOutput, Reading } from '../../backend/src/lookup-services/output-history.js'
import { fromHex } from '../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../backend/src/protocol/media-type.js'
import { readingFor } from '../gateway/reading-for.js'
import { sendPieces } from '../gateway/send-pieces.js'

interface LookupAnswer {
  request: Request
  response: Response
  formula: AnsweringOutput[]
  graph: TransactionReader
}

/**
 * Answers a lookup with outputs and their BEEF (BRC-24), as JSON or in binary (`spec/http.md`, Overlay). What is to be in
 * it is listed first, and each transaction read again as it is sent: a history or an unproven chain may be of any length.
 */
export async function sendLookupAnswer({ request, response, formula, graph }: LookupAnswer): Promise<void> {
  const reading: Reading = (store) => readingFor(response, store)
  const store = reading(graph)
  const aggregated = request.get('X-Aggregation') === 'yes'
  const asksHistory = formula.some(({ transactions }) => transactions !== undefined)
  // The SDK's client asks for binary always, and keeps of it what vouches for the output: of a proven one, no history.
  const binary = aggregated && (!asksHistory || request.accepts('json', UNTYPED) === UNTYPED)
  if (binary) {
    const transactions = await listedFor(formula, { store, reading })
    const beef = await listedBeef({ transactions, store, envelope: [outputList(formula)] })
    response.setHeader('Content-Type', UNTYPED)
    response.setHeader('Content-Length', beef.length)
    await sendPieces(response, { pieces: beef.bytes(), length: beef.length })
  } else {
    const outputs: ListedOutput[] = []
    for (const output of formula) {
      const transactions = await listedFor([output], { store, reading })
      outputs.push({ outputIndex: output.outputIndex, transactions })
    }
    response.setHeader('Content-Type', 'application/json; charset=utf-8')
    await sendPieces(response, { pieces: jsonPieces(outputs, store) })
  }
}

/** All that is to be in the BEEF of outputs: their histories, or what vouches for them, each transaction once. */
async function listedFor(
  outputs: AnsweringOutput[],
  { store, reading }: { store: TransactionReader; reading: Reading },
): Promise<ListedTransaction[]> {
  const histories = new Map<string, ListedTransaction>()
  const vouching = new Collection(store)
  for (const { txid, transactions } of outputs) {
    if (transactions === undefined) await vouching.addAncestry(txid)
    else for (const each of await transactions(reading)) histories.set(each.txid, each)
    if (!histories.has(txid) && !vouching.has(txid))
      throw new Error(`the index names a transaction that the store does not hold: ${txid}`)
  }
  return [...histories.values(), ...vouching.parentsFirst().filter(({ txid }) => !histories.has(txid))]
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

interface ListedOutput {
  outputIndex: number
  /** All that its BEEF is to hold. */
  transactions: ListedTransaction[]
}

/** What `response.json` would send, but a number for each byte is never all in memory. */
async function* jsonPieces(outputs: ListedOutput[], store: TransactionReader): AsyncGenerator<string> {
  let text = '{"type":"output-list","outputs":['
  for (const [position, { transactions, outputIndex }] of outputs.entries()) {
    text += position === 0 ? '{"beef":[' : ',{"beef":['
    let comma = ''
    for await (const piece of (await listedBeef({ transactions, store })).bytes()) {
      for (let at = 0; at < piece.length; at += BYTES_A_PIECE) {
        text += comma + piece.subarray(at, at + BYTES_A_PIECE).join()
        comma = ','
        if (text.length >= BYTES_A_PIECE) {
          yield text
          text = ''
        }
      }
    }
    text += `],"outputIndex":${outputIndex}}`
  }
  yield `${text}]}`
}

/** Each is up to four characters of JSON. */
const BYTES_A_PIECE = 64 * 1024
