import { type Request, type RequestHandler, type Response, Router } from 'express'
import { z } from 'zod'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import { TIP } from '../../../backend/src/graph/records.js'
import { readOutline, type TransactionOutline } from '../../../backend/src/graph/stored-transaction.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import { successorOf } from '../../../backend/src/protocol/ordinal-flow.js'
import {
  type ContentReference,
  decodedPointer,
  formatOutpoint,
  isSameOutpoint,
  type Outpoint,
  parseContentReference,
} from '../../../backend/src/protocol/outpoint.js'
import type { Reading } from '../../../backend/src/read/answering-service.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { GraphReads, PacedStore } from '../../../backend/src/read/graph-reads.js'
import { addHop, Collection } from '../../../backend/src/read/provenance.js'
import { CACHE, stepCache } from '../http/caching.js'
import { AnswerError, OriginUnknownError } from '../http/errors.js'
import { countTransactions, longRead } from '../http/long-read.js'
import { type OperationGroup, ORIGIN_PENDING, PROOF_ANSWER, STORE_ERRORS } from '../http/operation.js'
import { askedReference, optionalText } from '../http/schemas.js'
import { securityHeaders } from '../http/security-headers.js'
import { type BeefAnswer, incompleteProof, outpointBeefAnswer, sendBeef } from '../http/send-beef.js'
import {
  passingErrors,
  type QueryKey,
  type ResponseCache,
  StoredResponse,
  sendStored,
} from '../http/stored-response.js'

export interface ProofOptions {
  store: GraphReads
  /** The graph with blocked outputs in it: a blocked ancestor is still evidence of where an output comes from. */
  evidence: FactStore
  responses: ResponseCache
}

/** A proof of up to so many bytes is cached whole: that of a page or a picture of usual size. */
const SHORT_PROOF = 64 * 1024

/**
 * `GET /proof/{reference}`, below each of the prefixes: what shows that an output, or an ordinal at a step, is on the chain and
 * what it contains, as an Outpoint BEEF (BRC-158). Its bytes are in the proven transaction: there is nothing else to fetch.
 */
export function proofRoutes({ prefixes, ...options }: ProofOptions & { prefixes: string[] }): Router {
  // Not a path with a parameter: text that Express cannot decode is no outpoint, like any other.
  return Router().use(prefixes, Router().get(/^\/proof\//, serveProof(options)))
}

/** A proof that is put together for each request. */
interface LongProof {
  cache: string
  /** Collects its transactions, and gives its subject. */
  collect: (read: Reading, collection: Collection) => Promise<Outpoint>
  readonly dependsOn: readonly Dependency[]
  readonly weight: 0
}

function serveProof(options: ProofOptions): RequestHandler {
  const find = proofFinder(options)
  const { evidence, responses } = options
  return (request, response, next) => {
    passingErrors(async () => {
      const reference = parseContentReference(decodedPointer(request.path.slice('/proof/'.length)))
      const isNext = nextKey(request) !== ''
      const proof = await responses.cached(request, () => find(reference, isNext), nextKey)
      if (proof instanceof StoredResponse) proof.queryKey = nextKey
      if (proof instanceof StoredResponse) await sendStored({ request, response, stored: proof })
      else await sendLong({ request, response, proof, evidence })
    }, next)
  }
}

const nextKey: QueryKey = ({ url, query }) => (url.includes('?') && query.next !== undefined ? 'next' : '')

async function sendLong({
  request,
  response,
  proof: { cache, collect },
  evidence,
}: {
  request: Request
  response: Response
  proof: LongProof
  evidence: GraphReads
}): Promise<void> {
  const answer = await longRead(response, async (read) => {
    const collection = new Collection(read.overRole(evidence.transactions))
    const subject = await collect(read, collection)
    const transactions = await collection.parentsFirst()
    countTransactions(response, transactions.length)
    response.setHeader('X-Outpoint', formatOutpoint(subject))
    return await outpointBeefAnswer({ subject, transactions, store: evidence.transactions })
  })
  await sendBeef({ request, response, answer, cache })
}

function proofFinder({ store, evidence }: ProofOptions) {
  /** An output: its transaction, with its merkle path or its ancestors. */
  const ofOutput = async ({ pointer }: ContentReference): Promise<StoredResponse | LongProof> => {
    const output =
      pointer.kind === 'outpoint'
        ? await store.ordinals.output(pointer.outpoint)
        : await store.ordinals.firstContentOutput(pointer.txid)
    if (output === undefined) throw new AnswerError('NOT_FOUND', 'this store does not have this output')
    const { outpoint: subject } = output
    const { txid } = subject
    const { length, proof } = await outlineOf(txid, evidence)
    const dependsOn = [dependency.proof(txid)]
    if (proof === undefined || length + proof.merklePath.length > SHORT_PROOF)
      return {
        ...{ dependsOn, weight: 0 },
        cache: proof === undefined ? CACHE.unproven : CACHE.immutable,
        collect: async (_read, collection) => {
          await evidence.served.guard.refuseTransaction(txid)
          await collection.addAncestry(txid)
          return subject
        },
      }
    await evidence.served.guard.refuseTransaction(txid)
    const transactions = [{ txid, length, proof }]
    const answer = await outpointBeefAnswer({ subject, transactions, store: evidence.transactions })
    return await storedProof(answer, { subject, dependsOn })
  }

  /** An ordinal at a step: its lineage, from its first output to that step and to the one that was asked for. */
  const ofStep = async ({
    pointer,
    sequence,
  }: ContentReference & { sequence: number }): Promise<LongProof> => {
    const asked =
      pointer.kind === 'outpoint'
        ? pointer.outpoint
        : (await store.ordinals.firstContentOutput(pointer.txid))?.outpoint
    const step = asked && (await store.ordinals.at(asked, sequence))
    if (asked === undefined || step === undefined) {
      const message = 'the ordinal has no such step here, or its origin is unknown here'
      throw asked === undefined
        ? new AnswerError('NOT_FOUND', message)
        : new OriginUnknownError(message, asked)
    }
    const subject = step.output.outpoint
    const collect: LongProof['collect'] = async (read, collection) => {
      const reading = read.over(evidence)
      for (const txid of new Set([subject.txid, step.content.outpoint.txid]))
        await evidence.served.guard.refuseTransaction(txid)
      const wanted = new Set([asked, subject].map(formatOutpoint))
      let previous: Outpoint | undefined
      for (const hop of evidence.ordinals.lineage(asked)) {
        const missing = await addHop({ hop, previous, collection, store: reading })
        if (missing !== undefined) throw incompleteProof({ txid: missing })
        previous = hop
        wanted.delete(formatOutpoint(hop))
        if (wanted.size === 0) return subject
      }
      throw incompleteProof(subject)
    }
    const cache = sequence === TIP ? CACHE.revalidate : await stepCache(store, step)
    return { cache, collect, dependsOn: [dependency.all], weight: 0 }
  }

  /** What moves an ordinal on from an output: for streams, which have a step for each chunk. */
  const ofNext = async ({ pointer, sequence }: ContentReference): Promise<LongProof> => {
    if (pointer.kind !== 'outpoint' || sequence !== undefined)
      throw new AnswerError('NOT_FOUND', 'only an outpoint has a next step')
    const { outpoint } = pointer
    const output = await store.ordinals.output(outpoint)
    const txid = output?.satoshis === 1 ? await store.transactions.spenderOf(outpoint) : undefined
    if (txid === undefined)
      throw new AnswerError('NOT_FOUND', 'nothing that is known here moves an ordinal on from there')
    const outline = await outlineOf(txid, evidence)
    return {
      ...{ dependsOn: [dependency.all], weight: 0 },
      cache: outline.proof === undefined ? CACHE.unproven : CACHE.immutable,
      collect: async (read, collection) => {
        const reading = read.over(evidence)
        await evidence.served.guard.refuseTransaction(txid)
        const subject = await movedTo(outpoint, outline, reading)
        const missing = await addHop({ hop: subject, previous: outpoint, collection, store: reading })
        if (missing !== undefined) throw incompleteProof({ txid: missing })
        return subject
      },
    }
  }

  return async (reference: ContentReference, isNext: boolean): Promise<StoredResponse | LongProof> => {
    const { sequence } = reference
    if (isNext) return await ofNext(reference)
    return sequence === undefined ? await ofOutput(reference) : await ofStep({ ...reference, sequence })
  }
}

async function storedProof(
  { body, tag }: BeefAnswer,
  { subject, dependsOn }: { subject: Outpoint; dependsOn: Dependency[] },
): Promise<StoredResponse> {
  const bytes = joinBytes([...body.bytes()])
  return new StoredResponse(
    {
      headers: [
        ['Cache-Control', CACHE.immutable],
        ['X-Outpoint', formatOutpoint(subject)],
        ...securityHeaders({ active: false }),
        ['ETag', tag],
      ],
      ...{ contentType: UNTYPED, length: bytes.length, tag },
    },
    bytes,
    dependsOn,
  )
}

async function outlineOf(txid: string, { transactions }: GraphReads): Promise<TransactionOutline> {
  const outline = await readOutline(txid, transactions)
  if (outline === undefined) throw incompleteProof({ txid })
  return outline
}

/** Where a transaction moves the ordinal that it spends. @throws AnswerError if it burns it, or that is not known. */
async function movedTo(
  from: Outpoint,
  { txid, inputs, outputValues }: TransactionOutline,
  store: PacedStore<Pick<GraphReads, 'transactions'>>,
): Promise<Outpoint> {
  const input = inputs.findIndex((each) => isSameOutpoint(each, from))
  const inputValues: (number | undefined)[] = []
  for (const before of inputs.slice(0, input)) {
    const source = await readOutline(before.txid, store.transactions)
    inputValues.push(source?.outputValues[before.vout])
  }
  const next = successorOf({ inputValues, outputValues, input })
  if (next.kind === 'output') return { txid, vout: next.vout }
  throw new AnswerError(
    'NOT_FOUND',
    'what spends this output moves the ordinal to no output that is known here',
  )
}

export const PROOF_OPERATIONS: OperationGroup = {
  tag: 'content',
  operations: {
    proof: {
      route: 'GET /proof/{reference}',
      summary: 'Proof of an output, or of an ordinal at a step, with its bytes',
      description:
        'Without a sequence, the transaction of the output with its merkle path, or with its ancestors down to mined ones: what the output holds is in it. With one, also every hop from the first output of the ordinal, and the transactions whose values place it. Anyone with block headers can verify what `/content` shows without trusting this host.',
      params: z.object({ reference: askedReference }),
      query: z.object({
        next: optionalText(
          'If present, with any value: the transaction that moves the ordinal on from this outpoint, and those that place it there.',
        ),
      }),
      answer: { ...PROOF_ANSWER, headers: [...(PROOF_ANSWER.headers ?? []), 'X-Outpoint'] },
      errors: {
        BAD_OUTPOINT: 'The path does not end with an outpoint or a txid.',
        BAD_SEQUENCE: 'The sequence is not a number.',
        NOT_FOUND: 'This store has no such output or step, or not every transaction that proves it.',
        ORIGIN_PENDING,
        BLOCKED: 'The operator has blocked the output, another one of its transaction, or what it leads to.',
        ...STORE_ERRORS,
      },
    },
  },
}
