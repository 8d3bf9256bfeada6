import { Utils } from '@bsv/sdk'
import type { Request, Response } from 'express'
import type { TransactionSource } from '../../../backend/src/graph/graph-store.js'
import { Collection } from '../../../backend/src/graph/provenance.js'
import { type ListedBeef, type ListedTransaction, listedBeef } from '../../../backend/src/graph/write-beef.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import type { AnsweringOutput, Reading } from '../../../backend/src/lookup-services/output-history.js'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import { countTransactions, longRead } from '../../gateway/http/long-read.js'
import { sendChunks } from '../../gateway/http/send-body.js'

interface LookupAnswer {
  request: Request
  response: Response
  formula: AnsweringOutput[]
  graph: TransactionSource
  /** How many bytes of BEEF a page may have; undefined where all outputs belong in the answer. */
  pageBytes?: number | undefined
}

/** What is to be sent, laid out: an answer of some length, or JSON that is written as it is sent. */
type LaidOut = { binary: ListedBeef } | { outputs: ListedOutput[]; isTruncated: boolean }

/**
 * Answers a lookup with outputs and their BEEF (BRC-24), as JSON or in binary (`spec/http.md`, Overlay). What is to be in
 * it is listed first, and each transaction read again as it is sent: a history or an unproven chain may be of any length.
 *
 * A page ends with the output by which it has `pageBytes`; as JSON it says that it was cut, `"truncated"`.
 */
export async function sendLookupAnswer(answer: LookupAnswer): Promise<void> {
  const { request, response, formula, graph } = answer
  const aggregated = request.get('X-Aggregation') === 'yes'
  const asksHistory = formula.some(({ transactions }) => transactions !== undefined)
  // The SDK's client asks for binary always, and keeps of it what vouches for the output: of a proven one, no history.
  const isBinary = aggregated && (!asksHistory || request.accepts('json', UNTYPED) === UNTYPED)
  const laidOut = await longRead(response, async (read): Promise<LaidOut> => {
    const reading: Reading = (store) => read.over(store)
    return isBinary ? { binary: await listedTogether(answer, reading) } : await listedApart(answer, reading)
  })
  if ('binary' in laidOut) {
    const { binary: beef } = laidOut
    response.setHeader('Content-Type', UNTYPED)
    response.setHeader('Content-Length', beef.length)
    await sendChunks(response, { chunks: beef.bytes(), length: beef.length })
  } else {
    response.setHeader('Content-Type', 'application/json; charset=utf-8')
    await sendChunks(response, { chunks: jsonChunks(laidOut, graph) })
  }
}

/** The outputs of an answer, and one BEEF for all of them, with each transaction once. */
async function listedTogether(
  { response, formula, graph, pageBytes = Number.POSITIVE_INFINITY }: LookupAnswer,
  reading: Reading,
): Promise<ListedBeef> {
  const histories = new Map<string, ListedTransaction>()
  const vouching = new Collection(reading(graph))
  const outputs: AnsweringOutput[] = []
  for (const output of formula) {
    const { txid, transactions } = output
    if (transactions === undefined) await vouching.addAncestry(txid)
    else for (const each of await transactions(reading)) histories.set(each.txid, each)
    if (!histories.has(txid) && !vouching.has(txid)) throw notHeld(txid)
    outputs.push(output)
    if (vouching.bytes >= pageBytes) break
  }
  const others = (await vouching.parentsFirst()).filter(({ txid }) => !histories.has(txid))
  const transactions = [...histories.values(), ...others]
  countTransactions(response, transactions.length)
  return await listedBeef({ transactions, store: graph, envelope: [outputList(outputs)] })
}

/** The outputs of an answer, each with all that is to be in a BEEF of its own. */
async function listedApart(
  { response, formula, graph, pageBytes = Number.POSITIVE_INFINITY }: LookupAnswer,
  reading: Reading,
): Promise<{ outputs: ListedOutput[]; isTruncated: boolean }> {
  const outputs: ListedOutput[] = []
  let bytes = 0
  for (const { txid, outputIndex, transactions } of formula) {
    const vouching = new Collection(reading(graph))
    if (transactions === undefined) await vouching.addAncestry(txid)
    const listed = (await transactions?.(reading)) ?? (await vouching.parentsFirst())
    if (!listed.some((each) => each.txid === txid)) throw notHeld(txid)
    outputs.push({ outputIndex, transactions: listed })
    bytes += vouching.bytes
    if (bytes >= pageBytes) break
  }
  countTransactions(
    response,
    outputs.reduce((sum, { transactions }) => sum + transactions.length, 0),
  )
  return { outputs, isTruncated: outputs.length < formula.length }
}

function notHeld(txid: string): Error {
  return new Error(`the index refers to ${txid}, which is missing from the store`)
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
async function* jsonChunks(
  { outputs, isTruncated }: { outputs: ListedOutput[]; isTruncated: boolean },
  store: TransactionSource,
): AsyncGenerator<string> {
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
          // Writing numbers takes longer than sending them: others have their turn between.
          await yieldToEventLoop()
        }
      }
    }
    text += `],"outputIndex":${outputIndex}}`
  }
  yield `${text}]${isTruncated ? ',"truncated":true' : ''}}`
}

/** Each is up to four characters of JSON. */
const BYTES_A_PIECE = 16 * 1024
