import { BEEF_V2, Utils } from '@bsv/sdk'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { type ListedBeef, type ListedTransaction, listedBeef } from '../../../backend/src/graph/write-beef.js'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { AnsweringOutput } from '../../../backend/src/read/provenance.js'
import { Collection, type Pace } from '../../../backend/src/read/provenance.js'
import type { Transactions } from '../../../backend/src/read/transactions.js'
import type { AsOf } from '../http/as-of.js'
import type { Exchange } from '../http/caching.js'
import { countTransactions, longRead } from '../http/long-read.js'
import { sendChunks } from '../http/send-body.js'

interface LookupAnswer extends Exchange {
  formula: AnsweringOutput[]
  graph: Transactions
  /** The most bytes of BEEF of a page with several outputs; undefined if all outputs belong in the answer. */
  pageBytes?: number | undefined
  /** For an answer about names: the block up to which it holds, if known. */
  asOf?: AsOf | undefined
}

/** The prepared answer: binary of known length, or JSON that is generated while it is sent. */
type Prepared = { binary: ListedBeef } | ListedOutputs

interface ListedOutputs {
  outputs: ListedOutput[]
  isTruncated: boolean
}

/**
 * Sends the answer of a lookup: outputs and their BEEF (BRC-24), as JSON or in binary (`docs/spec/http.md`, Overlay). It first lists
 * the transactions, and then reads each again to send it: a history or an unproven chain may have any length.
 *
 * A page ends before the output that would exceed `pageBytes`, but has at least one; JSON then has `"truncated"`.
 */
export async function sendLookupAnswer(answer: LookupAnswer): Promise<void> {
  const { request, response, formula, asOf } = answer
  const aggregated = request.get('X-Aggregation') === 'yes'
  const asksHistory = formula.some(({ transactions }) => transactions !== undefined)
  // The SDK's client always asks for binary, and keeps only the ancestry that verifies the output, not its history.
  const isBinary = aggregated && (!asksHistory || request.accepts('json', UNTYPED) === UNTYPED)
  const prepared = await longRead(response, async (pace): Promise<Prepared> => {
    return isBinary ? { binary: await listedAsOne(answer, pace) } : await listedEach(answer, pace)
  })
  if ('binary' in prepared) {
    const { binary: beef } = prepared
    response.setHeader('Content-Type', UNTYPED)
    response.setHeader('Content-Length', beef.length)
    await sendChunks(response, { chunks: beef.bytes(), length: beef.length, held: beef.held })
  } else {
    response.setHeader('Content-Type', 'application/json; charset=utf-8')
    const chunks = jsonChunks({ ...prepared, asOf })
    const held = prepared.outputs.reduce((sum, { beef }) => sum + beef.held, 0)
    await sendChunks(response, { chunks, held })
  }
}

/**
 * The outputs of an answer, with one BEEF that has each transaction once. It is V2, as in OverlayExpress: of V1, the Python SDK
 * reads the last transaction only.
 */
async function listedAsOne(
  { response, formula, graph, pageBytes }: LookupAnswer,
  pace: Pace,
): Promise<ListedBeef> {
  const histories = new Map<string, ListedTransaction>()
  let ancestry = new Collection(graph, pace)
  const outputs: AnsweringOutput[] = []
  const isPage = pageBytes !== undefined
  for (const output of formula) {
    const proven = await proofOf(output, { ancestry, isPage, pace })
    if (proven === undefined) continue
    const { txid, vout } = proven.end
    for (const each of proven.history ?? []) histories.set(each.txid, each)
    if (!histories.has(txid) && !ancestry.has(txid)) throw notHeld(txid)
    if (ancestry.bytes > (pageBytes ?? Number.POSITIVE_INFINITY) && outputs.length > 0) {
      ancestry = new Collection(graph, pace)
      for (const each of outputs) await ancestry.addAncestry(each.txid)
      break
    }
    outputs.push({ txid, outputIndex: vout })
  }
  const others = (await ancestry.parentsFirst()).filter(({ txid }) => !histories.has(txid))
  const transactions = [...histories.values(), ...others]
  countTransactions(response, transactions.length)
  return await listedBeef({ transactions, store: graph, envelope: [outputList(outputs)], version: BEEF_V2 })
}

/** The outputs of an answer, each with its own BEEF. */
async function listedEach(
  { response, formula, graph, pageBytes }: LookupAnswer,
  pace: Pace,
): Promise<ListedOutputs> {
  const outputs: ListedOutput[] = []
  const isPage = pageBytes !== undefined
  let bytes = 0
  let count = 0
  let isTruncated = false
  for (const output of formula) {
    const ancestry = new Collection(graph, pace)
    const proven = await proofOf(output, { ancestry, isPage, pace })
    if (proven === undefined) continue
    const { txid, vout } = proven.end
    const listed = proven.history ?? (await ancestry.parentsFirst())
    if (!listed.some((each) => each.txid === txid)) throw notHeld(txid)
    bytes += ancestry.bytes
    isTruncated = bytes > (pageBytes ?? Number.POSITIVE_INFINITY) && outputs.length > 0
    if (isTruncated) break
    count += listed.length
    outputs.push({ outputIndex: vout, beef: await listedBeef({ transactions: listed, store: graph }) })
  }
  countTransactions(response, count)
  return { outputs, isTruncated }
}

/**
 * Reads what proves an output of an answer: its history, or else its ancestry, which is added. Undefined for an output of a page
 * whose proof needs purged bytes: the page leaves it out.
 *
 * @throws BlockedError for other answers.
 */
async function proofOf(
  { txid, outputIndex: vout, transactions }: AnsweringOutput,
  { ancestry, isPage, pace }: { ancestry: Collection; isPage: boolean; pace: Pace },
): Promise<{ end: Outpoint; history?: ListedTransaction[] } | undefined> {
  if (transactions !== undefined) {
    const { end, transactions: history } = await transactions(pace)
    return { end, history }
  }
  try {
    await ancestry.addAncestry(txid)
    return { end: { txid, vout } }
  } catch (error) {
    if (isPage && error instanceof BlockedError) return undefined
    throw error
  }
}

function notHeld(txid: string): Error {
  return new Error(`the index refers to ${txid}, which is missing from the store`)
}

/** The number of outputs, then txid, index and context of each (no context here). */
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
  beef: ListedBeef
}

/** Yields what `response.json` would send, without holding a number for each byte in memory. */
function* jsonChunks(answer: ListedOutputs & { asOf: AsOf | undefined }): Generator<string> {
  const { outputs, isTruncated, asOf } = answer
  let text = '{"type":"output-list","outputs":['
  for (const [position, { beef, outputIndex }] of outputs.entries()) {
    text += position === 0 ? '{"beef":[' : ',{"beef":['
    let comma = ''
    for (const chunk of beef.bytes()) {
      for (let at = 0; at < chunk.length; at += BYTES_PER_CHUNK) {
        text += comma + chunk.subarray(at, at + BYTES_PER_CHUNK).join()
        comma = ','
        if (text.length < BYTES_PER_CHUNK) continue
        yield text
        text = ''
      }
    }
    text += `],"outputIndex":${outputIndex}}`
  }
  const said = asOf === undefined ? '' : `,"asOf":${JSON.stringify(asOf)}`
  yield `${text}]${isTruncated ? ',"truncated":true' : ''}${said}}`
}

/** A byte takes up to four characters of JSON. */
const BYTES_PER_CHUNK = 16 * 1024
