import type { LookupService, TopicManager } from '@bsv/overlay'
import type { AdmittanceInstructions, STEAK, TaggedBEEF } from '@bsv/sdk'
import { Mutex } from 'async-mutex'
import { encodeBeef } from '../../../backend/src/graph/assemble-beef.js'
import { LostConflictError } from '../../../backend/src/graph/conflict-error.js'
import { type ChainPosition, isOver, lockOf } from '../../../backend/src/graph/finality.js'
import type { GraphStore, RecordOptions } from '../../../backend/src/graph/graph-store.js'
import type { HeldSubmissions } from '../../../backend/src/graph/held-submissions.js'
import { UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'
import { type BeefContents, readBeef } from '../../../backend/src/graph/read-beef.js'
import {
  type AdmissionRecord,
  graphRecords,
  type TransactionRecord,
} from '../../../backend/src/graph/records.js'
import { unsoundness } from '../../../backend/src/graph/soundness.js'
import { knownTransactions, spendsOf } from '../../../backend/src/graph/transaction-records.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { countParts, readTransaction } from '../../../backend/src/protocol/transaction.js'
import type { Refusal } from '../../../backend/src/topic-managers/refusal.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { ProofVerifier } from '../chain/proof-verifier.js'
import { notStrictError, spendsNodeNonStrictly } from './node-spends.js'
import { provenSources } from './proven-sources.js'
import { runScriptsHere, type ScriptRunner } from './script-runner.js'
import {
  ConflictError,
  InvalidSubmissionError,
  SubmissionError,
  UnknownTopicError,
} from './submission-errors.js'
import { requireWithinLimits, type SubmissionLimits } from './submission-limits.js'
import { type SubmissionTracker, verifySubmission } from './verify-submission.js'

export interface OverlayEngineOptions {
  managers: Record<string, TopicManager>
  lookupServices: Record<string, LookupService>
  graph: GraphStore
  /** Against which chain proofs are checked. */
  proofs: ProofVerifier
  limits: SubmissionLimits
  /** The tree that is followed; without one, none is. */
  deployment?: Deployment | undefined
  /** Where submissions wait that no block can hold yet; without it, they are refused. */
  held?: HeldSubmissions | undefined
  /** Called with what was admitted of a submission, of its subject and of others that it was news for. */
  onAdmitted?: (steak: STEAK) => void
  /** Called with why a topic admits nothing of a subject, or not one of its outputs. */
  onRefusal?: (refusal: Refusal, requestId: string | undefined) => void
}

/** From how many inputs on it is looked up first whether a submission brings any news: each takes some 0.1 ms to write. */
const MANY_INPUTS = 1000
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
  /** How many submissions of the same client are under way already. */
  ahead?: number | undefined
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
  assertIndexComplete: () => void = () => {}
  /** Called after every write. */
  onWritten: () => void = () => {}
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
    ahead,
  }: Pick<TaggedBEEF, 'topics'> &
    Pick<Verified, 'requestId' | 'ahead'> & { beef: Uint8Array | number[] }): Promise<STEAK> {
    const contents = readBeef(beef)
    const sources = await this.verify(contents, topics, this.options.proofs.openTracker())
    return await this.admit({ contents, topics, sources, requestId, ahead })
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
    this.requireSubmittable(contents, { topics, checksPaths: tracker !== undefined })
    const { limits, deployment, graph } = this.options
    return await verifying(async () => {
      await verifySubmission({
        ...{ beef: contents, tracker, deployment, ...limits, runScripts: this.runScripts },
        isProven: async (txid) => (await graph.transactions.heightOf(txid)) !== undefined,
      })
      return await provenSources({ contents, tracker })
    })
  }

  /**
   * Stores what a verified transaction brings; returns when all that follows from it is stored.
   *
   * @throws ConflictError: an admitted transaction spends one of its inputs already.
   */
  async admit({ contents, topics, sources, requestId, ahead }: Verified): Promise<STEAK> {
    const { proofs, graph } = this.options
    const proven = new Map(sources.map((source) => [source.txid, source]))
    const transactions = knownTransactions(contents).map(
      (transaction) => proven.get(transaction.txid) ?? transaction,
    )
    if (countParts(contents.subject).inputs > MANY_INPUTS && (await this.hasAll(transactions)))
      return await this.steakOf(contents, topics)
    const mined = transactions.filter(isProven)
    const spends = spendsOf(mined, contents)
    const lock = await lockOf(contents, graph.transactions)
    if (lock !== undefined && !isOver(lock, await this.position())) {
      // What a block holds waits for nobody.
      if (mined.length > 0)
        await this.exclusively(
          async () => {
            await proofs.disproveConflicts(spends)
            await this.record(mined, contents)
          },
          submissionPriority({ bytes: contents.length, ahead }),
        )
      return await this.hold({ contents, topics, lock })
    }
    return await this.takeTurn({ contents, topics, requestId, ahead }, transactions, () =>
      proofs.disproveConflicts(spends),
    )
  }

  /**
   * Whether the store has transactions with the very proofs that they bring, and topics hold something of the first, which is
   * proven: so that it gets its answer whether it counts or not.
   */
  private async hasAll(transactions: TransactionRecord[]): Promise<boolean> {
    const { graph } = this.options
    const [subject] = transactions
    if (subject === undefined || (await graph.admissions.ofTransaction(subject.txid)).length === 0)
      return false
    for (const { txid, proof } of transactions) {
      const held = await graph.transactions.raw(txid)
      if (held === undefined || held.proof?.height !== (proof ?? held.proof)?.height) return false
      if (held.proof?.root !== (proof ?? held.proof)?.root) return false
    }
    return true
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
   * unproven. So a mint has to be strict (`limits/node-spends.ts`): any other comes with its proof.
   */
  async submitTrusted(raw: Uint8Array, topics: string[]): Promise<STEAK> {
    const { txid } = readTransaction(raw)
    const contents: BeefContents = { ...readBeef(encodeBeef([{ raw }])), proof: () => undefined }
    this.requireSubmittable(contents, { topics, checksPaths: false })
    const { deployment } = this.options
    if (deployment !== undefined && spendsNodeNonStrictly(contents.subject, { deployment }))
      throw notStrictError(txid)
    return await this.takeTurn({ contents, topics }, [{ txid, raw }])
  }

  /**
   * Does something while no submission is under way, and lets none begin.
   *
   * @param priority Who goes first of those that wait; of equals, the first to come. By default before any submission.
   */
  async exclusively<Result>(work: () => Promise<Result>, priority = 0): Promise<Result> {
    try {
      return await this.turn.runExclusive(async () => {
        this.assertIndexComplete()
        return await work()
      }, priority)
    } finally {
      this.onWritten()
    }
  }

  /** As {@link exclusively}, for what is left to be done by writes, and what makes the index whole. */
  async completeIndex<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.turn.runExclusive(work)
  }

  /** Whether something is being written. */
  get isWriting(): boolean {
    return this.turn.isLocked()
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
    const height = (await proofs.headers?.currentHeight()) ?? (await graph.blocks.lastHeight())
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
      throw new InvalidSubmissionError(`${txid} is not final yet: submit it once its lock time is reached`)
    await this.exclusively(() => held.hold({ txid, lock, beef }, { maxCount: MAX_HELD }))
    return Object.fromEntries(topics.map((topic) => [topic, { outputsToAdmit: [], coinsToRetain: [] }]))
  }

  private requireSubmittable(
    beef: BeefContents,
    { topics, checksPaths }: { topics: string[]; checksPaths: boolean },
  ): void {
    for (const topic of topics) if (!Object.hasOwn(this.managers, topic)) throw new UnknownTopicError(topic)
    requireWithinLimits(beef, { limits: this.options.limits, checksPaths })
    const unsound = unsoundness(beef)
    if (unsound !== undefined) throw new InvalidSubmissionError(`the transaction is invalid: ${unsound}`)
  }

  private async takeTurn(
    { contents, topics, requestId, ahead }: Omit<Verified, 'sources'>,
    transactions: TransactionRecord[],
    before: () => Promise<void> = async () => {},
  ): Promise<STEAK> {
    const { onRefusal } = this.options
    const { txid } = contents.subject
    // Where the turn is free, nobody is to go first.
    const behind = this.turn.isLocked() ? await this.workBehind(contents) : 0
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
          // What it is built on is known from now on, and what follows from that is done by the next try.
          if (cause instanceof UnstableReadError)
            await this.record(
              transactions.filter((each) => each.txid !== txid),
              contents,
            )
          throw cause
        } finally {
          this.current = undefined
        }
      },
      submissionPriority({ bytes: contents.length, behind, ahead }),
    )
  }

  /** About how much is looked at again when a submission comes, in spends. */
  private async workBehind({ txids, subject }: BeefContents): Promise<number> {
    const { graph } = this.options
    const waiting = await graph.backlog.workBehind({ txids, limit: MAX_BEHIND })
    for (const { txid, vout } of subject.inputs.slice(0, INPUTS_LOOKED_AT)) {
      const spender = await graph.transactions.spenderOf({ txid, vout })
      if (spender !== undefined && spender !== subject.txid) return waiting + A_CONFLICT
    }
    return waiting
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
    const own = await graph.admissions.ofTransaction(subject.txid)
    const spent = await graph.admissions.among(subject.inputs.map(({ txid, vout }) => ({ txid, vout })))
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

/** How much that is looked at again is counted. */
const MAX_BEHIND = 20_000
/** A conflict may have a whole branch decided anew; how many inputs of a submission are looked at for one. */
const A_CONFLICT = 1000
const INPUTS_LOOKED_AT = 20
/** What others wait for takes as long to write as if so many more bytes had come for each outpoint that these spend. */
const BYTES_A_SPEND = 64
/** And one of a client that has others under way waits as if it were so much longer for each: clients take turns. */
const BYTES_A_SUBMISSION = 16 * 1024

/**
 * A submission that brings less is written sooner: it waits for the write that is under way, and not for all the larger
 * ones that came before it. By powers of two, so that of about equals the first to come goes first.
 *
 * @param submitted.bytes Of its BEEF.
 * @param submitted.behind How many spends are looked at again because it comes.
 * @param submitted.ahead How many submissions of the same client are under way.
 */
export function submissionPriority({
  bytes,
  behind = 0,
  ahead = 0,
}: {
  bytes: number
  behind?: number
  ahead?: number | undefined
}): number {
  const weight = bytes + behind * BYTES_A_SPEND + ahead * BYTES_A_SUBMISSION
  return -Math.ceil(Math.log2(1 + weight / 1024))
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

function isProven({ proof }: TransactionRecord): boolean {
  return proof !== undefined
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
