import type { STEAK } from '@bsv/sdk'
import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import { ChainTrackerError, LostConflictError } from '../../../backend/src/graph/errors.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import type { AdmittanceInstructions, Topic } from '../../../backend/src/graph/overlay-interfaces.js'
import { type BeefContents, readBeef } from '../../../backend/src/graph/read-beef.js'
import type { AdmissionRecord, TransactionRecord } from '../../../backend/src/graph/records.js'
import { isLooseMint } from '../../../backend/src/graph/topic-rules.js'
import { knownTransactions, lockOf } from '../../../backend/src/graph/transaction-records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { type Awaitable, whenReady } from '../../../backend/src/graph/yield-to-event-loop.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  countParts,
  readTransaction,
  type TransactionView,
} from '../../../backend/src/protocol/transaction.js'
import type { FactStore, RecordOptions } from '../../../backend/src/read/fact-store.js'
import type { AnsweringService } from '../../../backend/src/read/provenance.js'
import { submissionPlace } from '../../../backend/src/writer/queue.js'
import { WriterBusyError } from '../../../backend/src/writer/writer.js'
import type { BlockHeaders, ProofVerifier } from '../../chain/tracker/chain-tracker.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Limits } from '../config/limits.js'
import { Writes } from '../store/index-status.js'
import { ConflictError, SubmissionError, verdictOf } from './errors.js'
import type { LocalChain } from './local-chain.js'
import { NonFinalSubmissions } from './non-final-submissions.js'
import { runScriptsHere, type ScriptRunner } from './script-scheduler.js'
import type { Submission, Submit } from './submission-queue.js'
import { assertFewAdvertisements, assertSubmittable, notStrictError } from './submission-rules.js'
import { SubmissionTracker, verifySubmission } from './verify-submission.js'

export interface OverlayEngineOptions {
  managers: Record<string, Topic>
  lookupServices: Record<string, AnsweringService>
  graph: FactStore
  proofs: ProofVerifier
  limits: Limits
  deployment?: Deployment | undefined
  /** Mines submissions on a local network. */
  chain?: LocalChain | undefined
  /** How many outputs of a transaction claim to advertise this host; undefined if it does not advertise. */
  claimsIn?: ((transaction: TransactionView) => number) | undefined
  /** Holds submissions that no block can include yet; without it, they are refused. */
  held?: FactStore['held'] | undefined
  /** Called with all outputs that a write admitted: of its subject, and of transactions that waited for it. */
  onAdmitted?: (admissions: AdmissionRecord[]) => void
  /** Called for each topic that admits nothing of a submission, and for each refused output. */
  onRefusal?: (refusal: TopicRefusal, requestId: string | undefined) => void
}

/** A verified submission, ready to be written with its transactions. */
interface Brought extends Omit<Submission, 'beef'> {
  contents: BeefContents
  transactions: TransactionRecord[]
}

/** From this many inputs on, it is checked first whether a submission brings anything new: each input takes 0.1 ms to write. */
const MANY_INPUTS = 1000

/**
 * Processes a submission: reads its BEEF, checks it against the limits, verifies it, records its transactions in one write (in
 * which the store derives what topics admit), and answers with the outputs that the topics hold. Writes wait for one another in
 * the store; verification runs in parallel.
 *
 * This host does not use the SDK's `Engine`: that judges a transaction only once, when it arrives, so what cannot be judged then is
 * lost. Its topic managers describe topics here.
 */
export class OverlayEngine {
  readonly managers: Record<string, Topic>
  readonly lookupServices: Record<string, AnsweringService>
  readonly writes = new Writes()
  /** Runs scripts; by default in this thread. */
  runScripts: ScriptRunner = runScriptsHere
  private readonly nonFinal: NonFinalSubmissions
  private readonly headers: BlockHeaders | undefined

  constructor(private readonly options: OverlayEngineOptions) {
    const { managers, lookupServices, held: store, graph, proofs } = options
    this.managers = managers
    this.lookupServices = lookupServices
    const { headers } = proofs
    this.headers = headers
    this.nonFinal = new NonFinalSubmissions({ store, graph, headers, writes: this.writes })
  }

  /**
   * Verifies a transaction and stores it.
   *
   * @returns What its topics now hold of it, from this submission or an earlier one.
   * @throws SubmissionError, BeefError: nothing is stored, and the same bytes will fail again.
   * @throws ConflictError: an admitted transaction already spends one of its inputs.
   * @throws ChainTrackerError: block headers are unavailable; try again.
   */
  readonly submit: Submit = async ({ beef, ...submission }) => {
    const { topics } = submission
    const contents = readBeef(beef)
    const proven = new Map((await this.verify(contents, topics)).map((source) => [source.txid, source]))
    const transactions = knownTransactions(contents).map((each) => proven.get(each.txid) ?? each)
    const brought = { ...submission, contents, transactions }
    if (countParts(contents.subject).inputs > MANY_INPUTS && this.hasAll(transactions))
      return await this.steakOf(brought)
    const lock = lockOf(contents, this.options.graph.transactions)
    if (lock === undefined || (await this.nonFinal.isOver(lock))) return await this.write(brought)
    const mined = transactions.filter(({ proof }) => proof !== undefined)
    if (mined.length > 0) await this.record(mined)
    await this.nonFinal.hold(contents, lock)
    return Object.fromEntries(topics.map((topic) => [topic, { outputsToAdmit: [], coinsToRetain: [] }]))
  }

  /**
   * Stores a raw transaction on the operator's word: neither scripts nor proofs are checked, and it is stored as unproven. So a
   * mint has to be strict (`submission-rules.ts`); any other needs its proof.
   */
  async submitTrusted(raw: Uint8Array, topics: string[]): Promise<STEAK> {
    const { limits, deployment } = this.options
    const { txid } = readTransaction(raw)
    const contents: BeefContents = { ...readBeef(encodeBeef([{ raw }])), proof: () => undefined }
    this.assertTopics(topics)
    assertSubmittable(contents, { limits, checksPaths: false })
    if (isLooseMint(contents.subject, { deployment })) throw notStrictError(txid)
    return await this.write({ contents, topics, transactions: [{ txid, raw }] })
  }

  /** Submits some of the held transactions that have become final. Returns how many. */
  readonly releaseNonFinal = async (): Promise<number> =>
    await this.nonFinal.release((beef) => this.submit({ beef, topics: Object.keys(this.managers) }))

  /**
   * Verifies a submission, outside of the writes: scripts and chain trackers may be slow.
   *
   * @returns The proven sources of its ordinals.
   */
  private async verify(contents: BeefContents, topics: string[]): Promise<TransactionRecord[]> {
    const { limits, deployment, graph, claimsIn } = this.options
    const { maxTrackerBlocks: maxBlocks, verificationTimeout: timeout } = limits
    const tracker = this.headers && new SubmissionTracker(this.headers, { maxBlocks, timeout })
    this.assertTopics(topics)
    assertSubmittable(contents, { limits, checksPaths: tracker !== undefined })
    if (claimsIn !== undefined) assertFewAdvertisements(contents, { claimsIn })
    try {
      return await verifySubmission({
        ...{ beef: contents, tracker, deployment, ...limits, runScripts: this.runScripts },
        isProven: (txid) => graph.transactions.heightOf(txid) !== undefined,
      })
    } catch (cause) {
      if (cause instanceof AnswerError || cause instanceof ChainTrackerError) throw cause
      const reason = `the transaction could not be verified: ${verdictOf(cause)}`
      throw new SubmissionError('BAD_BODY', reason, { cause })
    }
  }

  private assertTopics(topics: string[]): void {
    for (const topic of topics)
      if (!Object.hasOwn(this.managers, topic))
        throw new SubmissionError('BAD_BODY', `this host has no topic ${JSON.stringify(topic)}`)
  }

  /**
   * Whether all transactions are stored with the proofs that they bring, and topics hold something of the first one. Such a
   * transaction was admitted before, so it gets its answer whether it is active or not.
   */
  private hasAll(transactions: TransactionRecord[]): boolean {
    const { graph } = this.options
    const [subject] = transactions
    if (subject === undefined || graph.admissions.ofTransaction(subject.txid).length === 0) return false
    return transactions.every(({ txid, proof }) => {
      const stored = graph.transactions.raw(txid)
      const expected = proof ?? stored?.proof
      return (
        stored !== undefined &&
        stored.proof?.height === expected?.height &&
        stored.proof?.root === expected?.root
      )
    })
  }

  /** @throws ConflictError if the subject loses, and any other error; then nothing is stored. */
  private async write(brought: Brought): Promise<STEAK> {
    const { contents, transactions, topics, requestId, ahead } = brought
    const { patience, ...place } = submissionPlace({ bytes: contents.length, ahead })
    // The follower and imports can wait longer.
    if (requestId !== undefined) Object.assign(place, { patience })
    try {
      const options = { subjects: [contents.subject.txid], keepLost: waitingFor(brought), place }
      for (const refusal of await this.record(transactions, options))
        if (topics.includes(refusal.topic)) this.options.onRefusal?.(refusal, requestId)
    } catch (cause) {
      if (cause instanceof LostConflictError) throw new ConflictError(cause)
      if (cause instanceof WriterBusyError) throw new AnswerError('NOT_READY', cause.message, { cause })
      if ((cause as { code?: unknown }).code === 'TOO_MANY_DESCENDANTS')
        throw new AnswerError('NOT_READY', verdictOf(cause), { cause, headers: { 'Retry-After': '600' } })
      throw cause
    }
    return await this.steakOf(brought)
  }

  /** @returns Why topics admit nothing of a subject, or not one of its outputs. */
  private record(transactions: TransactionRecord[], options?: RecordOptions): Promise<TopicRefusal[]> {
    const { graph, proofs, chain, onAdmitted } = this.options
    const store = async (records: TransactionRecord[]): Promise<TopicRefusal[]> => {
      const mined = records.filter(({ proof }) => proof !== undefined)
      if (mined.length > 0 && this.headers) await proofs.disproveRuledOut(mined)
      const { admitted, refused } = await graph.record(records, options)
      onAdmitted?.(admitted)
      return refused
    }
    return this.writes.run(() => (chain ? chain.mine(transactions, store) : store(transactions)))
  }

  /** The subject's outputs and spent coins that the topics hold. Yields if it spends many. */
  private steakOf({ contents: { subject }, topics }: Pick<Brought, 'contents' | 'topics'>): Awaitable<STEAK> {
    const { admissions } = this.options.graph
    const own = admissions.ofTransaction(subject.txid)
    const spent = admissions.among(subject.inputs.map(({ txid, vout }) => ({ txid, vout })))
    return whenReady(spent, (held) => {
      const holders = new Set(held.map(({ topic, outpoint }) => `${topic} ${formatOutpoint(outpoint)}`))
      return Object.fromEntries(
        topics.map((topic): [string, AdmittanceInstructions] => [
          topic,
          {
            outputsToAdmit: own.filter((each) => each.topic === topic).map(({ outpoint }) => outpoint.vout),
            // History is the product: every spent coin is retained.
            coinsToRetain: subject.inputs.flatMap((input, index) =>
              holders.has(`${topic} ${formatOutpoint(input)}`) ? [index] : [],
            ),
          },
        ]),
      )
    })
  }
}

/** The client for whom a losing submission waits: hashed, as a database should not hold addresses. */
function waitingFor({ client }: Brought): NonNullable<RecordOptions['keepLost']> {
  return client === undefined ? {} : { client: sha256(utf8(client)).subarray(0, 8).toString('hex') }
}
