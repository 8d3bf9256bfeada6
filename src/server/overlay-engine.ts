import type { LookupService, TopicManager } from '@bsv/overlay'
import type { AdmittanceInstructions, STEAK, TaggedBEEF } from '@bsv/sdk'
import { Mutex } from 'async-mutex'
import { encodeBeef } from '../../backend/src/graph/assemble-beef.js'
import { LostConflictError } from '../../backend/src/graph/conflict-error.js'
import { type ChainPosition, isOver, lockOf } from '../../backend/src/graph/finality.js'
import type { GraphStore, RecordOptions } from '../../backend/src/graph/graph-store.js'
import type { HeldSubmissions } from '../../backend/src/graph/held-submissions.js'
import { type BeefContents, readBeef } from '../../backend/src/graph/read-beef.js'
import {
  type AdmissionRecord,
  graphRecords,
  type TransactionRecord,
} from '../../backend/src/graph/records.js'
import { unsoundness } from '../../backend/src/graph/soundness.js'
import { knownTransactions, spendsOf } from '../../backend/src/graph/transaction-records.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import type { Refusal } from '../../backend/src/topic-managers/refusal.js'
import { AnswerError } from '../gateway/error-response.js'
import { runScriptsHere, type ScriptRunner } from './limits/script-runner.js'
import { requireWithinLimits, type SubmissionLimits } from './limits/submission-limits.js'
import { type SubmissionTracker, verifySubmission } from './limits/verify-submission.js'
import {
  ConflictError,
  InvalidSubmissionError,
  SubmissionError,
  UnknownTopicError,
} from './overlay-errors.js'
import type { ProofCheck } from './proof-check.js'
import { provenSources } from './proven-sources.js'

export interface OverlayEngineOptions {
  managers: Record<string, TopicManager>
  lookupServices: Record<string, LookupService>
  graph: GraphStore
  /** Against which chain proofs are checked. */
  proofs: ProofCheck
  limits: SubmissionLimits
  /** Where submissions wait that no block can hold yet; without it, they are refused. */
  held?: HeldSubmissions | undefined
  /** Called with what was admitted of a submission, of its subject and of others that it was news for. */
  onAdmitted?: (steak: STEAK) => void
  /** Called with why a topic admits nothing of a subject, or not one of its outputs. */
  onRefusal?: (refusal: Refusal, requestId: string | undefined) => void
}

/** Of submissions that are not final: how many wait, how long each is, and how many are taken at once. */
const MAX_HELD = 1000
const MAX_HELD_BYTES = 256 * 1024
const A_RELEASE = 20
/** About how far the median time of the last eleven blocks is behind the clock, in seconds (BIP 113). */
const MEDIAN_TIME_LAG = 3600

/** A transaction that was verified. */
export interface Verified {
  contents: BeefContents
  topics: string[]
  /** What {@link OverlayEngine.verify} gave for it. */
  sources: TransactionRecord[]
  /** Of the request that it came with. */
  requestId?: string | undefined
}

/**
 * The way of a submission: it is verified, and what it brings is written in one step, in which the store derives what topics
 * admit by that. Writes come one at a time.
 *
 * Topics and lookup services have the interfaces of the overlay's `Engine`, so that the same run in any host. This host asks
 * no engine: there, a transaction is judged once, when it comes, and what could not be judged then is lost
 * (`spec/overlay.md`, What the engine does not do).
 */
export class OverlayEngine {
  readonly managers: Record<string, TopicManager>
  readonly lookupServices: Record<string, LookupService>
  private readonly turn = new Mutex()
  private current: { txid: string; refusals: Map<string, Refusal> } | undefined
  /** Throws where nothing may be written now, however long it has waited for its turn. */
  requireWhole: () => void = () => {}
  /** Where scripts are run that submissions bring. */
  runScripts: ScriptRunner = runScriptsHere

  constructor(private readonly options: OverlayEngineOptions) {
    this.managers = options.managers
    this.lookupServices = options.lookupServices
  }

  /**
   * Verifies a transaction and stores what it brings.
   *
   * @returns What its topics hold of it by then, whether by this submission or one before.
   * @throws UnknownTopicError, InvalidSubmissionError, SubmissionTooLargeError, BeefError: nothing is stored, and the same bytes will fail again.
   * @throws ConflictError: an admitted transaction spends one of its inputs already.
   * @throws ChainTrackerError: no block headers to be had; try again.
   */
  async submit({
    beef,
    topics,
    requestId,
  }: Pick<TaggedBEEF, 'topics'> & { beef: Uint8Array | number[]; requestId?: string }): Promise<STEAK> {
    const contents = readBeef(beef)
    const sources = await this.verify(contents, topics, this.options.proofs.openTracker())
    return await this.admit({ contents, topics, sources, requestId })
  }

  /**
   * Verifies what is to be stored, while others have their turn: scripts may take long to run, and a chain tracker to answer.
   *
   * @param tracker Without one, merkle paths are believed.
   * @returns What places its ordinals and is proven to.
   * @throws As {@link submit}.
   */
  async verify(
    contents: BeefContents,
    topics: string[],
    tracker: SubmissionTracker | undefined,
  ): Promise<TransactionRecord[]> {
    this.requireSubmittable(contents, topics)
    const { limits } = this.options
    return await verifying(async () => {
      await verifySubmission({ beef: contents, tracker, ...limits, runScripts: this.runScripts })
      return await provenSources({ contents, tracker })
    })
  }

  /**
   * Stores what a verified transaction brings; returns when all that follows from it is stored.
   *
   * @throws ConflictError: an admitted transaction spends one of its inputs already.
   */
  async admit({ contents, topics, sources, requestId }: Verified): Promise<STEAK> {
    const { proofs, graph } = this.options
    const proven = new Map(sources.map((source) => [source.txid, source]))
    const transactions = knownTransactions(contents).map(
      (transaction) => proven.get(transaction.txid) ?? transaction,
    )
    const mined = transactions.filter(({ proof }) => proof !== undefined)
    const spends = spendsOf(mined, contents)
    const lock = await lockOf(contents, graph)
    if (lock !== undefined && !isOver(lock, await this.position())) {
      // What a block holds waits for nobody.
      if (mined.length > 0)
        await this.exclusively(async () => {
          await proofs.takeBackRivals(spends)
          await this.record(mined, contents)
        }, submissionPriority(contents.length))
      return await this.hold({ contents, topics, lock })
    }
    return await this.takeTurn({ contents, topics, requestId }, transactions, () =>
      proofs.takeBackRivals(spends),
    )
  }

  /** Takes some of the submissions that were not final when they came and are by now. @returns How many. */
  async releaseHeld(): Promise<number> {
    const { held } = this.options
    if (held === undefined) return 0
    let released = 0
    for (const { txid, beef } of await held.heldUntil(await this.position(), A_RELEASE)) {
      try {
        await this.submit({ beef, topics: Object.keys(this.managers) })
      } catch (error) {
        // What the chain tracker did not answer for is tried again; what has lost to another by now is not.
        if (!(error instanceof SubmissionError)) throw error
      }
      await held.release(txid)
      released++
    }
    return released
  }

  /**
   * Stores a raw transaction on the operator's word: neither its scripts nor any proof are checked, and it is kept as
   * unproven.
   */
  async submitTrusted(raw: Uint8Array, topics: string[]): Promise<STEAK> {
    const { txid } = readTransaction(raw)
    const contents: BeefContents = { ...readBeef(encodeBeef([{ raw }])), proof: () => undefined }
    this.requireSubmittable(contents, topics)
    return await this.takeTurn({ contents, topics }, [{ txid, raw }])
  }

  /**
   * Does something while no submission is under way, and lets none begin.
   *
   * @param priority Who goes first of those that wait; of equals, the first to come. By default before any submission.
   */
  async exclusively<Result>(work: () => Promise<Result>, priority = 0): Promise<Result> {
    return await this.turn.runExclusive(async () => {
      this.requireWhole()
      return await work()
    }, priority)
  }

  /** As {@link exclusively}, for what makes the index whole. */
  async makeWhole(work: () => Promise<void>): Promise<void> {
    await this.turn.runExclusive(work)
  }

  /** What each topic says of itself. */
  async listTopicManagers(): Promise<Record<string, Metadata>> {
    return await metadataOf(this.managers)
  }

  /** What each lookup service says of itself. */
  async listLookupServiceProviders(): Promise<Record<string, Metadata>> {
    return await metadataOf(this.lookupServices)
  }

  /** Takes down why a topic admits nothing of the transaction that is being submitted; others are nobody's question. */
  readonly noteRefusal = (refusal: Refusal): void => {
    if (this.current?.txid === refusal.txid)
      this.current.refusals.set(`${refusal.topic} ${refusal.code} ${refusal.message}`, refusal)
  }

  /**
   * How far the chain has come. Without block headers, as far as proofs say; its time is some blocks behind the clock, as a
   * block's is that of the median of those before it.
   */
  private async position(): Promise<ChainPosition> {
    const { proofs, graph } = this.options
    const height = (await proofs.headers?.currentHeight()) ?? (await graph.lastHeight())
    return { height, time: Math.floor(Date.now() / 1000) - MEDIAN_TIME_LAG }
  }

  private async hold({
    contents,
    topics,
    lock,
  }: Pick<Verified, 'contents' | 'topics'> & { lock: ChainPosition }): Promise<STEAK> {
    const { held } = this.options
    const { txid } = contents.subject
    const beef = encodeBeef([...knownTransactions(contents)].reverse())
    if (held === undefined || beef.length > MAX_HELD_BYTES)
      throw new InvalidSubmissionError(`${txid} is not final yet: submit it when a block can hold it`)
    await this.exclusively(() => held.hold({ txid, lock, beef }, { maxCount: MAX_HELD }))
    return Object.fromEntries(topics.map((topic) => [topic, { outputsToAdmit: [], coinsToRetain: [] }]))
  }

  private requireSubmittable(beef: BeefContents, topics: string[]): void {
    for (const topic of topics) if (!Object.hasOwn(this.managers, topic)) throw new UnknownTopicError(topic)
    requireWithinLimits(beef, this.options.limits)
    const unsound = unsoundness(beef)
    if (unsound !== undefined) throw new InvalidSubmissionError(`no block can hold this: ${unsound}`)
  }

  private async takeTurn(
    { contents, topics, requestId }: Omit<Verified, 'sources'>,
    transactions: TransactionRecord[],
    before: () => Promise<void> = async () => {},
  ): Promise<STEAK> {
    const { graph, onRefusal } = this.options
    const { txid } = contents.subject
    // Where the turn is free, nobody is to go first.
    const behind = this.turn.isLocked()
      ? await graph.spendsBehind({ txids: contents.txids, limit: MAX_BEHIND })
      : 0
    return await this.exclusively(
      async () => {
        const refusals = new Map<string, Refusal>()
        this.current = { txid, refusals }
        try {
          await before()
          await this.record(transactions, contents, { subject: txid })
          for (const refusal of refusals.values())
            if (topics.includes(refusal.topic)) onRefusal?.(refusal, requestId)
          return await this.steakOf(contents, topics)
        } catch (cause) {
          if (cause instanceof LostConflictError) throw new ConflictError(cause)
          throw cause
        } finally {
          this.current = undefined
        }
      },
      submissionPriority(contents.length + behind * BYTES_A_SPEND),
    )
  }

  /** Writes transactions of a BEEF with what follows from them, and reports what is admitted by that. */
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
    const own = await graph.admissionsOfTransaction(subject.txid)
    const spent = await graph.admissionsAmong(subject.inputs.map(({ txid, vout }) => ({ txid, vout })))
    const holders = new Set(spent.map(({ topic, outpoint }) => `${topic} ${formatOutpoint(outpoint)}`))
    return Object.fromEntries(
      topics.map((topic): [string, AdmittanceInstructions] => [
        topic,
        {
          outputsToAdmit: own.filter((each) => each.topic === topic).map(({ outpoint }) => outpoint.vout),
          // History is the product: every spent coin stays.
          coinsToRetain: subject.inputs.flatMap((input, index) =>
            holders.has(`${topic} ${formatOutpoint(input)}`) ? [index] : [],
          ),
        },
      ]),
    )
  }
}

/**
 * What others wait for takes longer to write than its own bytes: as if so many more of them had come for each outpoint that
 * these spend, of which so many are counted.
 */
const BYTES_A_SPEND = 64
const MAX_BEHIND = 20_000

/**
 * A submission that brings less is written sooner: it waits for the write that is under way, and not for all the larger
 * ones that came before it. By powers of two, so that of about equals the first to come goes first.
 *
 * @param bytes Of its BEEF, and of what is looked at again because it comes.
 */
export function submissionPriority(bytes: number): number {
  return -Math.ceil(Math.log2(1 + bytes / 1024))
}

type Metadata = Awaited<ReturnType<TopicManager['getMetaData']>>

async function metadataOf(
  described: Record<string, Pick<TopicManager, 'getMetaData'>>,
): Promise<Record<string, Metadata>> {
  const entries = Object.entries(described).map(
    async ([name, each]) => [name, await each.getMetaData()] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

/** What a write admitted, by topic. */
function newlyAdmitted(admissions: AdmissionRecord[]): STEAK {
  const steak: Record<string, AdmittanceInstructions> = {}
  for (const { topic, outpoint } of admissions) {
    steak[topic] ??= { outputsToAdmit: [], coinsToRetain: [] }
    steak[topic].outputsToAdmit.push(outpoint.vout)
  }
  return steak
}

async function verifying<Result>(verify: () => Promise<Result>): Promise<Result> {
  try {
    return await verify()
  } catch (cause) {
    if (cause instanceof AnswerError) throw cause
    throw new InvalidSubmissionError(`the transaction could not be verified: ${reasonOf(cause)}`, { cause })
  }
}

/**
 * Bytes in the type that topic managers declare. They take both; an array of numbers would be a copy of everything, in a
 * wider type.
 */
export function engineBeef(bytes: Uint8Array): number[] {
  return bytes as unknown as number[]
}

/** What the verifier says, without the state of its stacks, and cut short: it may quote what it was given. */
function reasonOf(cause: unknown): string {
  const [reason = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
  return reason.length > 300 ? `${reason.slice(0, 300)}…` : reason
}
