import type { RequestHandler } from 'express'
import { z } from 'zod'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import { TIP } from '../../../backend/src/graph/records.js'
import type { RawTransaction, TransactionOutline } from '../../../backend/src/graph/stored-transaction.js'
import { shortOutpointBeef } from '../../../backend/src/graph/write-beef.js'
import { successorOf } from '../../../backend/src/protocol/ordinal-flow.js'
import {
  type ContentReference,
  formatOutpoint,
  isSameOutpoint,
  type Outpoint,
  parseContentReference,
} from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { addHop, Collection } from '../../../backend/src/read/provenance.js'
import { outpointOf, outputAt } from '../content/content-root.js'
import { CACHE, type Exchange, stepCache } from '../http/caching.js'
import { AnswerError, noSuchStep } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { countTransactions, longRead } from '../http/long-read.js'
import { described, ORIGIN_PENDING, PROOF_ANSWER, type Routes, STORE_ERRORS } from '../http/operation.js'
import { askedReference, optionalText, pointerIn } from '../http/schemas.js'
import { beefAnswer, incompleteProof, sendBeef } from '../http/send-beef.js'
import {
  bytesResponse,
  passingErrors,
  type QueryKey,
  StoredResponse,
  sendStored,
} from '../http/stored-response.js'

/** Proofs up to this many bytes are cached whole: those of pages and pictures of usual size. */
const SHORT_PROOF = 64 * 1024

/**
 * `GET /proof/{reference}`, below each of the prefixes: proof that an output, or an ordinal at a step, is on the chain, and of
 * its contents, as an Outpoint BEEF (BRC-158). The content is in the proven transaction, so nothing else has to be fetched.
 */
export function proofRoutes(parts: GatewayParts): Routes {
  return routes({ proof: serveProof(parts) })
}

interface LongProof {
  cache: string
  /** Collects its transactions, and returns its subject. */
  collect: (collection: Collection) => Promise<Outpoint>
  readonly dependsOn: readonly Dependency[]
  readonly weight: 0
}

function serveProof(parts: GatewayParts): RequestHandler {
  const find = proofFinder(parts)
  const { graph, responses } = parts
  return (request, response, next) => {
    passingErrors(() => {
      const reference = parseContentReference(pointerIn(request))
      const isNext = nextKey(request) !== ''
      const proof = responses.cached(request, () => find(reference, isNext), nextKey)
      if (!(proof instanceof StoredResponse)) return sendLong({ request, response, proof, graph })
      proof.queryKey = nextKey
      return sendStored({ request, response, stored: proof })
    }, next)
  }
}

const nextKey: QueryKey = ({ url, query }) => (url.includes('?') && query.next !== undefined ? 'next' : '')

async function sendLong(exchange: Exchange & { proof: LongProof; graph: GraphReads }): Promise<void> {
  const { request, response, proof, graph } = exchange
  const { cache, collect } = proof
  const answer = await longRead(response, async (pace) => {
    const collection = new Collection(graph.transactions, pace)
    const subject = await collect(collection)
    const transactions = await collection.parentsFirst()
    countTransactions(response, transactions.length)
    response.setHeader('X-Outpoint', formatOutpoint(subject))
    return await beefAnswer({ subject, transactions, store: graph.transactions })
  })
  await sendBeef({ request, response, answer, cache })
}

function proofFinder({ store, graph }: GatewayParts) {
  const { guard } = graph.served
  /** The proof of an output: its transaction, with its merkle path or its ancestors. */
  const ofOutput = ({ pointer }: ContentReference): StoredResponse | LongProof => {
    const output = outputAt(store, pointer)
    if (output === undefined) throw new AnswerError('NOT_FOUND', 'this store does not have this output')
    const { outpoint: subject } = output
    const { txid } = subject
    const { length, proof } = held(txid)
    const dependsOn = [dependency.proof(txid)]
    if (proof !== undefined && length + proof.merklePath.length <= SHORT_PROOF) {
      guard.refuseShort(txid)
      const record = graph.transactions.get(txid)
      if (record === undefined) throw incompleteProof({ txid })
      const headers = [['X-Outpoint', formatOutpoint(subject)] as const]
      const cache = CACHE.immutable
      return bytesResponse(shortOutpointBeef(subject, record), { cache, headers, dependsOn })
    }
    return {
      ...{ dependsOn, weight: 0 },
      cache: proof === undefined ? CACHE.unproven : CACHE.immutable,
      collect: async (collection) => {
        await guard.refuseTransaction(txid)
        await collection.addAncestry(txid)
        return subject
      },
    }
  }

  /** The proof of an ordinal at a step: its lineage, from the first output to that step and to the requested output. */
  const ofStep = ({ sequence, ...reference }: ContentReference & { sequence: number }): LongProof => {
    const asked = outpointOf(store, reference)
    const step = asked && store.ordinals.at(asked, sequence)
    if (asked === undefined || step === undefined) throw noSuchStep(asked)
    const subject = step.output.outpoint
    const collect: LongProof['collect'] = async (collection) => {
      for (const txid of new Set([subject.txid, step.content.outpoint.txid]))
        await guard.refuseTransaction(txid)
      const wanted = new Set([asked, subject].map(formatOutpoint))
      let previous: Outpoint | undefined
      for (const hop of graph.ordinals.lineage(asked)) {
        const missing = await addHop({ hop, previous, collection, store: graph })
        if (missing !== undefined) throw incompleteProof({ txid: missing })
        previous = hop
        wanted.delete(formatOutpoint(hop))
        if (wanted.size === 0) return subject
      }
      throw incompleteProof(subject)
    }
    const cache = sequence === TIP ? CACHE.revalidate : stepCache(store, step)
    return { cache, collect, dependsOn: [dependency.all], weight: 0 }
  }

  /** The proof of an ordinal's next step from an output: for streams, which have a step per chunk. */
  const ofNext = ({ pointer, sequence }: ContentReference): LongProof => {
    if (pointer.kind !== 'outpoint' || sequence !== undefined)
      throw new AnswerError('NOT_FOUND', 'only an outpoint has a next step')
    const { outpoint } = pointer
    const output = store.ordinals.output(outpoint)
    const txid = output?.satoshis === 1 ? store.transactions.spenderOf(outpoint) : undefined
    if (txid === undefined)
      throw new AnswerError('NOT_FOUND', 'no known transaction moves an ordinal from this output')
    return {
      ...{ dependsOn: [dependency.all], weight: 0 },
      cache: held(txid).proof === undefined ? CACHE.unproven : CACHE.immutable,
      collect: async (collection) => {
        await guard.refuseTransaction(txid)
        const outline = await collection.outline(txid)
        if (outline === undefined) throw incompleteProof({ txid })
        const subject = await movedTo(outpoint, outline, collection)
        const missing = await addHop({ hop: subject, previous: outpoint, collection, store: graph })
        if (missing !== undefined) throw incompleteProof({ txid: missing })
        return subject
      },
    }
  }

  const held = (txid: string): RawTransaction => {
    const raw = graph.transactions.raw(txid)
    if (raw === undefined) throw incompleteProof({ txid })
    return raw
  }

  return (reference: ContentReference, isNext: boolean): StoredResponse | LongProof => {
    const { sequence } = reference
    if (isNext) return ofNext(reference)
    return sequence === undefined ? ofOutput(reference) : ofStep({ ...reference, sequence })
  }
}

/** The output to which a transaction moves the ordinal that it spends. @throws AnswerError if it is burnt or unknown. */
async function movedTo(
  from: Outpoint,
  { txid, inputs, outputValues }: TransactionOutline,
  collection: Collection,
): Promise<Outpoint> {
  const input = inputs.findIndex((each) => isSameOutpoint(each, from))
  const inputValues: (number | undefined)[] = []
  for (const before of inputs.slice(0, input)) {
    const source = await collection.outline(before.txid)
    inputValues.push(source?.outputValues[before.vout])
  }
  const next = successorOf({ inputValues, outputValues, input })
  if (next.kind === 'output') return { txid, vout: next.vout }
  throw new AnswerError(
    'NOT_FOUND',
    'the transaction that spends this output burns the ordinal, or moves it to an output that is unknown here',
  )
}

const routes = described({
  tag: 'content',
  operations: {
    proof: {
      route: 'GET /proof/{reference}',
      pattern: /^\/proof\//,
      summary: 'Proof of an output, or of an ordinal at a step',
      description:
        'Without a sequence, the transaction of the output, which contains its content, with its merkle path or with its ancestors down to mined ones. With a sequence, also every hop from the first output of the ordinal, and the transactions whose values locate the ordinal. Anyone with block headers can verify what `/content` returns without trusting this host.',
      params: z.object({ reference: askedReference }),
      query: z.object({
        next: optionalText(
          'If present, with any value: returns the transaction that moves the ordinal from this outpoint, and the transactions that locate the ordinal in it.',
        ),
      }),
      answer: { ...PROOF_ANSWER, headers: [...(PROOF_ANSWER.headers ?? []), 'X-Outpoint'] },
      errors: {
        BAD_OUTPOINT: 'The path does not end with an outpoint or a txid.',
        BAD_SEQUENCE: 'The sequence is not a number.',
        NOT_FOUND: 'The output or step is not in this store, or a transaction of its proof is missing.',
        ORIGIN_PENDING,
        BLOCKED: 'The operator has blocked the output, another output of its transaction, or its content.',
        ...STORE_ERRORS,
      },
    },
  },
})
