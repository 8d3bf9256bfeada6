import { type Inscription, readInscription } from '../protocol/inscription.js'
import { decodeMineNode } from '../protocol/mine-node.js'
import { type Predecessor, placingInputs, predecessorsOf } from '../protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import {
  firstOutputs,
  isCoinbase,
  outputOf,
  type TransactionOutput,
  type TransactionView,
} from '../protocol/transaction.js'
import type { TransactionSource } from './graph-store.js'
import { encodeMap } from './map-coder.js'
import { memoizeByObject } from './memoize-by-object.js'
import { sha256 as sha256Of } from './native-hash.js'
import type { BeefContents } from './read-beef.js'
import { type GraphRecords, graphRecords, type SpendRecord, type TransactionRecord } from './records.js'
import { rememberView, storedTransaction } from './stored-transaction.js'

/**
 * What an admission tells of the transaction, whichever of its outputs is admitted: the transactions to keep, and what
 * they spend. Asked again for the same BEEF it gives the same object, since a topic may admit as many outputs
 * as fit into a transaction.
 */
export const transactionRecords = memoizeByObject((beef: BeefContents): GraphRecords => {
  const transactions = admittedTransactions(beef)
  return graphRecords({ transactions, spends: spendsOf(transactions, beef) })
})

/** What transactions of a BEEF spend. */
export function spendsOf(transactions: TransactionRecord[], beef: BeefContents): SpendRecord[] {
  return transactions.flatMap(({ txid }) => {
    const transaction = beef.transaction(txid)
    return transaction === undefined ? [] : spendsBy(transaction)
  })
}

/** What a transaction spends. A coinbase spends nothing: what all of them name is no outpoint for which they are rivals. */
export function spendsBy({ txid, inputs }: Pick<TransactionView, 'txid' | 'inputs'>): SpendRecord[] {
  if (isCoinbase({ inputs })) return []
  return inputs.map((input) => ({ outpoint: { txid: input.txid, vout: input.vout }, spender: txid }))
}

/**
 * The transactions to keep when the subject of a BEEF is admitted: the subject, and where it is not proven, its
 * ancestors in the BEEF down to proven ones, so that a BEEF can be put together for it later.
 */
export const admittedTransactions = memoizeByObject((beef: BeefContents): TransactionRecord[] => {
  const kept = new Map<string, TransactionRecord>()
  const waiting = [beef.subject.txid]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    if (kept.has(txid)) continue
    const view = beef.transaction(txid)
    if (view === undefined) continue
    const proof = beef.proof(txid)
    rememberView(view)
    kept.set(txid, { txid, raw: view.raw, ...(proof && { proof }) })
    // One by one: there may be more than a call takes arguments.
    if (proof === undefined) for (const input of view.inputs) waiting.push(input.txid)
  }
  return [...kept.values()]
})

/**
 * All of a BEEF that is known with its subject: {@link admittedTransactions}, and whatever else of it these are built on,
 * however far back it goes. A verifier stops at what is proven, so what stands behind that is without proof; it is authentic
 * even so, for what spends it names it by its hash.
 */
export const knownTransactions = memoizeByObject((beef: BeefContents): TransactionRecord[] => {
  const known = new Map(admittedTransactions(beef).map((transaction) => [transaction.txid, transaction]))
  const walked = new Set<string>()
  const waiting = [...known.keys()]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    const view = walked.has(txid) ? undefined : beef.transaction(txid)
    walked.add(txid)
    for (const input of view?.inputs ?? []) {
      const source = known.has(input.txid) ? undefined : beef.transaction(input.txid)
      if (source === undefined) continue
      rememberView(source)
      known.set(source.txid, { txid: source.txid, raw: source.raw })
      waiting.push(source.txid)
    }
  }
  return [...known.values()]
})

/**
 * What of a BEEF is to be kept beside that when `tm_ordinals` admits an output of a proven subject: the transactions
 * whose values place its 1-sat outputs (BRC-159), so that the provenance of an ordinal can be shown. Those of an
 * unproven subject are among its ancestors already.
 *
 * They stand without proof: a verifier stops at the proven subject, so that nobody has held theirs against the chain. They
 * are authentic even so, for the subject names them by their hash; a host may hold theirs against it, and tell them. Told once for all outputs of the subject, of which
 * there may be as many as fit into a transaction; so up to its last 1-sat output, admitted or not.
 */
export const placingRecords = memoizeByObject((beef: BeefContents): GraphRecords => {
  const { txid, inputs } = beef.subject
  const outputs = firstOutputs(beef.subject, OUTPUTS_WITH_ORDINALS)
  const output = outputs.findLastIndex(({ satoshis }) => satoshis === 1)
  if (output === -1 || beef.proof(txid) === undefined) return graphRecords({})
  const sources = inputs.map((input) => beef.transaction(input.txid))
  const count = placingInputs({
    inputValues: inputs.map((input, i) => {
      const source = sources[i]
      return source && outputOf(source, input.vout)?.satoshis
    }),
    outputValues: outputs.map(({ satoshis }) => satoshis),
    output,
  })
  const placing = new Set(sources.slice(0, count).filter((source) => source !== undefined))
  const transactions = [...placing].map(({ txid, raw }) => ({ txid, raw }))
  return graphRecords({ transactions, spends: spendsOf(transactions, beef) })
})

/**
 * What the admission of an output by `tm_names` says of the tree. The topic admits the genesis output and
 * outputs 0, 1 and 2 of genuine mints, so the place of an output tells what it is (`spec/overlay.md`, Topics):
 * the name of output 2 is the domain of output 1, never the text of an envelope.
 */
export function namesRecords(options: {
  transaction: TransactionView
  vout: number
  genesis: Outpoint
}): GraphRecords {
  const { transaction, vout, genesis } = options
  const { txid, outputs } = transaction
  const outpoint = { txid, vout }
  const domainAt = (position: number): string => {
    const output = outputs[position]
    if (output === undefined) throw new RangeError(`${txid} has no output ${position}`)
    return decodeMineNode(output.lockingScript).domain
  }
  if (!isNodeOutpoint(outpoint, genesis)) return graphRecords({ names: [{ outpoint, name: domainAt(1) }] })
  return graphRecords({ nodes: [{ outpoint, domain: domainAt(vout) }] })
}

/** Whether an output that `tm_names` holds is a node, and not a name. */
export function isNodeOutpoint(outpoint: Outpoint, genesis: Outpoint): boolean {
  if (outpoint.txid === genesis.txid) return outpoint.vout === genesis.vout
  return outpoint.vout === 0 || outpoint.vout === 1
}

const inscriptions = new WeakMap<TransactionOutput, Inscription>()

/** What an output's script inscribes; of one that is admitted, the script is walked once, whoever asks. */
export function inscriptionOf(output: TransactionOutput): Inscription {
  const known = inscriptions.get(output)
  if (known !== undefined) return known
  const inscription = readInscription(output.lockingScript)
  const { content, map } = inscription
  // What holds nothing is not kept: a transaction may have millions of such outputs.
  if (content !== undefined || map.length > 0) inscriptions.set(output, inscription)
  return inscription
}

/** Whether `tm_ordinals` admits an output for what it holds: content, or MAP in one satoshi. */
export function holdsOrdinal(output: TransactionOutput): boolean {
  const { content, map } = inscriptionOf(output)
  return content !== undefined || (output.satoshis === 1 && map.length > 0)
}

/**
 * What the admission of an output by `tm_ordinals` says of it: its value, its owner, its content by hash, its MAP, its
 * parent, and the 1-sat coin that it received, where the flow knows.
 */
export function ordinalsRecords(options: {
  transaction: TransactionView
  vout: number
  flow: Flow
}): GraphRecords {
  const { transaction, vout, flow } = options
  const { txid, inputs, outputs } = transaction
  const outpoint = { txid, vout }
  const output = outputs[vout]
  if (output === undefined) throw new RangeError(`${txid} has no output ${vout}`)
  const { content, map, parent, owner } = inscriptionOf(output)
  const mapBytes = map.length === 0 ? undefined : encodeMap(map)
  const sha256 = content && sha256Of(content.body).toString('hex')
  const predecessor = flow.predecessors[vout]
  const received = predecessor?.kind === 'input' ? inputs[predecessor.input] : undefined
  return graphRecords({
    outputs: [
      {
        outpoint,
        satoshis: output.satoshis,
        ...(owner !== undefined && { owner }),
        ...(parent && { parent }),
        ...(mapBytes && { mapLength: mapBytes.length }),
        ...(content &&
          sha256 && { content: { sha256, contentType: content.contentType, length: content.body.length } }),
        ...(received && { previous: { txid: received.txid, vout: received.vout } }),
        ...(predecessor?.kind === 'unknown' && { unsettled: true }),
      },
    ],
    contents: content && sha256 ? [{ sha256, bytes: content.body }] : [],
    maps: mapBytes ? [{ outpoint, bytes: mapBytes }] : [],
  })
}

/**
 * How many outputs of a transaction `tm_ordinals` looks at, the first ones: each that it admits takes some kilobytes while it
 * is written. What stands behind them is no ordinal here; a name is, as the covenant puts it into output 2.
 */
export const OUTPUTS_WITH_ORDINALS = 100_000

/** How 1-sat coins flow through a transaction (BRC-159). */
export interface Flow {
  /** Satoshis of each input; undefined where neither the BEEF nor the store holds what it spends. */
  inputValues: (number | undefined)[]
  /** For each output that is looked at, the input whose coin it continues. */
  predecessors: Predecessor[]
}

/** Its one input spends no coin that an output could continue. */
const OF_COINBASE = [0]

/** The flow through a transaction, by the values that are known of what it spends. */
export function flowBy(transaction: TransactionView, spends: SpendRecord[]): Flow {
  const { inputs } = transaction
  const values = new Map(spends.map(({ outpoint, satoshis }) => [formatOutpoint(outpoint), satoshis]))
  const inputValues = isCoinbase({ inputs })
    ? OF_COINBASE
    : inputs.map((input) => values.get(formatOutpoint(input)))
  return flowOfValues(transaction, inputValues)
}

/** Through the outputs that `tm_ordinals` looks at. */
function flowOfValues(transaction: TransactionView, inputValues: Flow['inputValues']): Flow {
  const outputValues = firstOutputs(transaction, OUTPUTS_WITH_ORDINALS).map(({ satoshis }) => satoshis)
  return { inputValues, predecessors: predecessorsOf({ inputValues, outputValues }) }
}

const known = new WeakMap<BeefContents, Promise<Flow>>()

/** The flow through the subject of a BEEF; worked out once, whoever asks. */
export function flowOf(beef: BeefContents, store: TransactionSource | undefined): Promise<Flow> {
  const told = known.get(beef)
  if (told !== undefined) return told
  const flow = workOut(beef, store)
  known.set(beef, flow)
  // A store that failed once may answer the next time.
  flow.catch(() => known.delete(beef))
  return flow
}

async function workOut(beef: BeefContents, store: TransactionSource | undefined): Promise<Flow> {
  const { inputs } = beef.subject
  if (isCoinbase({ inputs })) return flowBy(beef.subject, [])
  const inputValues: (number | undefined)[] = []
  for (const { txid, vout } of inputs) {
    const source = beef.transaction(txid) ?? (await storedTransaction(txid, store))
    inputValues.push(source && outputOf(source, vout)?.satoshis)
  }
  return flowOfValues(beef.subject, inputValues)
}
