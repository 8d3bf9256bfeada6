import type { STEAK } from '@bsv/sdk'
import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import { LostConflictError } from '../../../backend/src/graph/errors.js'
import type { GraphStore, RecordOptions } from '../../../backend/src/graph/graph-store.js'
import type { HeldSubmissions } from '../../../backend/src/graph/host-store.js'
import { UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'
import type {
  AdmittanceInstructions,
  LookupService,
  TopicManager,
} from '../../../backend/src/graph/overlay-interfaces.js'
import { type BeefContents, readBeef } from '../../../backend/src/graph/read-beef.js'
import {
  type AdmissionRecord,
  graphRecords,
  type TransactionRecord,
} from '../../../backend/src/graph/records.js'
import { knownTransactions, spendsOf } from '../../../backend/src/graph/transaction-records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  countParts,
  readTransaction,
  type TransactionView,
} from '../../../backend/src/protocol/transaction.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { ProofVerifier } from '../chain/chain-tracker.js'
import type { Limits } from '../config/limits.js'
import { ConflictError, InvalidSubmissionError, UnknownTopicError, verdictOf } from './errors.js'
import { NonFinalSubmissions } from './non-final-submissions.js'
import { runScriptsHere, type ScriptRunner } from './script-scheduler.js'
import { type Submission, type Submit, submissionPriority, WriteLock } from './submission-queue.js'
import {
  assertFewAdvertisements,
  assertSubmittable,
  notStrictError,
  spendsNodeNonStrictly,
} from './submission-rules.js'
import { provenSources, SubmissionTracker, verifySubmission } from './verify-submission.js'

export interface OverlayEngineOptions {
  managers: Record<string, TopicManager>
  lookupServices: Record<string, LookupService>
  graph: GraphStore
  proofs: ProofVerifier
  limits: Limits
  deployment?: Deployment | undefined
  /** How many outputs of a transaction claim to advertise this host, if it can be found by them. */
  claimsIn?: ((transaction: TransactionView) => number) | undefined
  /** Where submissions wait that no block can hold yet; without it, they are refused. */
  held?: HeldSubmissions | undefined
  /** Called with everything that a write admitted: of its subject, and of transactions that waited for it. */
  onAdmitted?: (steak: STEAK) => void
  /** Called for each topic that admits nothing of a submission, or not one of its outputs. */
  onRefusal?: (refusal: TopicRefusal, requestId: string | undefined) => void
}

/** A verified submission, ready to be written. */
export interface VerifiedSubmission extends Pick<Submission, 'topics'> {
  contents: BeefContents
  /** What {@link OverlayEngine.verify} returned for it. */
  sources: TransactionRecord[]
  requestId?: string | undefined
  ahead?: number | undefined
}

/** One write: the transactions that a submission brings, and for whom it is done. */
interface UnitOfWork extends Omit<VerifiedSubmission, 'sources'> {
  transactions: TransactionRecord[]
  /** Runs in the same write, before the transactions are recorded. */
  prepare?: () => Promise<void>
}

/** From how many inputs on it is checked first whether a submission brings anything new: each input takes 0.1 ms to write. */
const MANY_INPUTS = 1000

/**
 * The path of a submission: read its BEEF, check it against the limits, verify it, wait for the write lock, record what it
 * brings in one write (in which the store derives what topics admit), and answer with what the topics hold. Writes come one
 * at a time; verification runs beside them.
 *
 * Topic managers and lookup services have the interfaces of the SDK's `Engine`, so that the same ones run in any host. This
 * host does not use that engine, which judges a transaction once, when it arrives: what could not be judged then is lost
 * (`spec/overlay.md`, What the engine does not do).
 */
export class OverlayEngine {
  readonly managers: Record<string, TopicManager>
  readonly lookupServices: Record<string, LookupService>
  readonly writeLock = new WriteLock()
  /** Where scripts run; by default in this thread. */
  runScripts: ScriptRunner = runScriptsHere
  private readonly nonFinal: NonFinalSubmissions

  constructor(private readonly options: OverlayEngineOptions) {
    const { managers, lookupServices, held: store, graph, proofs } = options
    this.managers = managers
    this.lookupServices = lookupServices
    const { headers } = proofs
    this.nonFinal = new NonFinalSubmissions({ store, graph, headers, writeLock: this.writeLock })
  }

  /**
   * Verifies a transaction and stores it.
   *
   * @returns What its topics hold of it by then, by this submission or an earlier one.
   * @throws UnknownTopicError, InvalidSubmissionError, SubmissionTooLargeError, BeefError: nothing is stored, and the same
   * bytes will fail again.
   * @throws ConflictError: an admitted transaction already spends one of its inputs.
   * @throws ChainTrackerError: block headers are unavailable; try again.
   */
  readonly submit: Submit = async ({ beef, topics, requestId, ahead }) => {
    const contents = readBeef(beef)
    const sources = await this.verify(contents, topics)
    return await this.admit({ contents, topics, sources, requestId, ahead })
  }

  /**
   * Verifies a submission. Takes no lock: scripts may run long, and a chain tracker may take long to answer.
   *
   * @param tracker By default one for a single submission, with the limits of this host. Undefined if proofs are not checked.
   * @returns The sources of its ordinals that are proven.
   * @throws As {@link submit}.
   */
  async verify(
    contents: BeefContents,
    topics: string[],
    tracker: SubmissionTracker | undefined = this.openTracker(),
  ): Promise<TransactionRecord[]> {
    const { limits, deployment, graph, claimsIn } = this.options
    this.assertTopics(topics)
    assertSubmittable(contents, { limits, checksPaths: tracker !== undefined })
    if (claimsIn !== undefined) assertFewAdvertisements(contents, { claimsIn })
    try {
      await verifySubmission({
        ...{ beef: contents, tracker, deployment, ...limits, runScripts: this.runScripts },
        isProven: async (txid) => (await graph.transactions.heightOf(txid)) !== undefined,
      })
      return await provenSources(contents, tracker)
    } catch (cause) {
      if (cause instanceof AnswerError) throw cause
      const reason = `the transaction could not be verified: ${verdictOf(cause)}`
      throw new InvalidSubmissionError(reason, { cause })
    }
  }

  /**
   * Stores a verified transaction; resolves when everything that follows from it is stored.
   *
   * @throws ConflictError: an admitted transaction already spends one of its inputs.
   */
  async admit({ sources, ...verified }: VerifiedSubmission): Promise<STEAK> {
    const { contents, topics, ahead } = verified
    const { proofs } = this.options
    const proven = new Map(sources.map((source) => [source.txid, source]))
    const transactions = knownTransactions(contents).map((each) => proven.get(each.txid) ?? each)
    if (countParts(contents.subject).inputs > MANY_INPUTS && (await this.hasAll(transactions)))
      return await this.steakOf(contents, topics)
    const mined = transactions.filter(({ proof }) => proof !== undefined)
    const disproveConflicts = (): Promise<void> => proofs.disproveConflicts(spendsOf(mined, contents))
    const lock = await this.nonFinal.lockOf(contents)
    if (lock === undefined) return await this.write({ ...verified, transactions, prepare: disproveConflicts })
    if (mined.length > 0)
      await this.writeLock.run(
        async () => {
          await disproveConflicts()
          await this.record(mined, contents)
        },
        submissionPriority({ bytes: contents.length, ahead }),
      )
    await this.nonFinal.hold(contents, lock)
    return Object.fromEntries(topics.map((topic) => [topic, { outputsToAdmit: [], coinsToRetain: [] }]))
  }

  /**
   * Stores a raw transaction on the operator's word: neither scripts nor proofs are checked, and it is stored as unproven. So
   * a mint has to be strict (`submission-rules.ts`); any other comes with its proof.
   */
  async submitTrusted(raw: Uint8Array, topics: string[]): Promise<STEAK> {
    const { limits, deployment } = this.options
    const { txid } = readTransaction(raw)
    const contents: BeefContents = { ...readBeef(encodeBeef([{ raw }])), proof: () => undefined }
    this.assertTopics(topics)
    assertSubmittable(contents, { limits, checksPaths: false })
    if (spendsNodeNonStrictly(contents.subject, { deployment })) throw notStrictError(txid)
    return await this.write({ contents, topics, transactions: [{ txid, raw }] })
  }

  /** Submits some of the held transactions that have become final. Returns how many. */
  readonly releaseNonFinal = async (): Promise<number> =>
    await this.nonFinal.release((beef) => this.submit({ beef, topics: Object.keys(this.managers) }))

  private openTracker(): SubmissionTracker | undefined {
    const { proofs, limits } = this.options
    const { maxTrackerBlocks: maxBlocks, verificationTimeout: timeout } = limits
    return proofs.headers && new SubmissionTracker(proofs.headers, { maxBlocks, timeout })
  }

  private assertTopics(topics: string[]): void {
    for (const topic of topics) if (!Object.hasOwn(this.managers, topic)) throw new UnknownTopicError(topic)
  }

  /**
   * Whether all transactions are stored with the proofs that they bring, and topics hold something of the first, which is
   * proven: so it gets its answer whether it counts or not.
   */
  private async hasAll(transactions: TransactionRecord[]): Promise<boolean> {
    const { graph } = this.options
    const [subject] = transactions
    if (subject === undefined || (await graph.admissions.ofTransaction(subject.txid)).length === 0)
      return false
    for (const { txid, proof } of transactions) {
      const stored = await graph.transactions.raw(txid)
      if (stored === undefined || stored.proof?.height !== (proof ?? stored.proof)?.height) return false
      if (stored.proof?.root !== (proof ?? stored.proof)?.root) return false
    }
    return true
  }

  private async write(unit: UnitOfWork): Promise<STEAK> {
    const { contents, topics, transactions, prepare, requestId, ahead } = unit
    const { txid } = contents.subject
    // While nobody waits for the lock, there is no order to decide.
    const behind = this.writeLock.isLocked ? await this.workBehind(contents) : 0
    return await this.writeLock.run(
      async () => {
        const refusals = new Map<string, TopicRefusal>()
        const onRefusal = (refusal: TopicRefusal): void => {
          // A write re-evaluates other transactions, too; nobody waits for an answer about those.
          if (refusal.txid === txid && topics.includes(refusal.topic))
            refusals.set(`${refusal.topic} ${refusal.code} ${refusal.message}`, refusal)
        }
        try {
          await prepare?.()
          await this.record(transactions, contents, { subject: txid, onRefusal })
        } catch (cause) {
          if (cause instanceof LostConflictError) throw new ConflictError(cause)
          // Its ancestors are stored from now on, so that a retry continues behind them.
          if (cause instanceof UnstableReadError)
            await this.record(
              transactions.filter((each) => each.txid !== txid),
              contents,
            )
          throw cause
        }
        for (const refusal of refusals.values()) this.options.onRefusal?.(refusal, requestId)
        return await this.steakOf(contents, topics)
      },
      submissionPriority({ bytes: contents.length, behind, ahead }),
    )
  }

  /** About how much is re-evaluated because a submission comes, in spends. */
  private async workBehind({ txids, subject }: BeefContents): Promise<number> {
    const { graph } = this.options
    const waiting = await graph.backlog.workBehind({ txids, limit: MAX_BEHIND })
    for (const { txid, vout } of subject.inputs.slice(0, INPUTS_CHECKED)) {
      const spender = await graph.transactions.spenderOf({ txid, vout })
      if (spender !== undefined && spender !== subject.txid) return waiting + CONFLICT_COST
    }
    return waiting
  }

  private async record(
    transactions: TransactionRecord[],
    contents: BeefContents,
    options?: RecordOptions,
  ): Promise<void> {
    const { graph, onAdmitted } = this.options
    const spends = spendsOf(transactions, contents)
    onAdmitted?.(newlyAdmitted(await graph.record(graphRecords({ transactions, spends }), options)))
  }

  /** What topics hold of a transaction, and of what it spends. */
  private async steakOf({ subject }: BeefContents, topics: string[]): Promise<STEAK> {
    const { graph } = this.options
    const own = await graph.admissions.ofTransaction(subject.txid)
    const spent = await graph.admissions.among(subject.inputs.map(({ txid, vout }) => ({ txid, vout })))
    const holders = new Set(spent.map(({ topic, outpoint }) => `${topic} ${formatOutpoint(outpoint)}`))
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
  }
}

/** Up to how much re-evaluation is counted, in spends. */
const MAX_BEHIND = 20_000
/** A conflict may re-evaluate a whole branch; how many inputs of a submission are checked for one. */
const CONFLICT_COST = 1000
const INPUTS_CHECKED = 20

function newlyAdmitted(admissions: AdmissionRecord[]): STEAK {
  const steak: Record<string, AdmittanceInstructions> = {}
  for (const { topic, outpoint } of admissions) {
    steak[topic] ??= { outputsToAdmit: [], coinsToRetain: [] }
    steak[topic].outputsToAdmit.push(outpoint.vout)
  }
  return steak
}
