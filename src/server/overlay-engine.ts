import { Engine, type LookupService, type TopicManager } from '@bsv/overlay'
import { type ChainTracker, MerklePath, type STEAK, type TaggedBEEF } from '@bsv/sdk'
import { Mutex } from 'async-mutex'
import type { Logger } from 'pino'
import { encodeBeef } from '../../backend/src/graph/assemble-beef.js'
import { LostConflictError } from '../../backend/src/graph/conflict-error.js'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { type BeefContents, readBeef, readBeefAs } from '../../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { unsoundness } from '../../backend/src/graph/soundness.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { AnswerError } from '../gateway/error-response.js'
import { EngineStorage } from './engine-storage.js'
import { type LaterWordOptions, laterWord, provenSources, provenSpends } from './later-word.js'
import { runScriptsHere, type ScriptRunner } from './limits/script-runner.js'
import { requireWithinLimits, type SubmissionLimits } from './limits/submission-limits.js'
import { verifySubmission } from './limits/verify-submission.js'
import { ConflictError, InvalidSubmissionError, UnknownTopicError } from './overlay-errors.js'
import type { ProofCheck } from './proof-check.js'
import type { CurrentSubmission } from './submission.js'

export interface OverlayEngineOptions {
  managers: Record<string, TopicManager>
  lookupServices: Record<string, LookupService>
  graph: GraphStore
  submission: CurrentSubmission
  /** Against which chain proofs are checked. */
  proofs: ProofCheck
  limits: SubmissionLimits
  hostingURL?: string
  /** Called with what was admitted, once it is stored. */
  onAdmitted?: (steak: STEAK) => void
  logger: Logger
}

type Mode = 'historical-tx' | 'current-tx'
type OnSteak = ((steak: STEAK) => void) | undefined

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
 * The engine, with what it leaves to its host (`spec/overlay.md`): submissions one at a time, each written in
 * one step, one spender an outpoint, and errors that say whose fault they are.
 */
export class OverlayEngine extends Engine {
  private readonly turn = new Mutex()
  private readonly graph: GraphStore
  private readonly coins: EngineStorage
  private readonly submission: CurrentSubmission
  private readonly untracked: Engine
  private readonly proofs: ProofCheck
  private readonly limits: SubmissionLimits
  private readonly onAdmitted: (steak: STEAK) => void
  /** Throws where nothing may be written now, however long it has waited for its turn. */
  requireWhole: () => void = () => {}
  /** Where scripts are run that submissions bring. */
  runScripts: ScriptRunner = runScriptsHere

  constructor(options: OverlayEngineOptions) {
    const { managers, lookupServices, graph, submission, proofs, hostingURL, logger } = options
    const storage = new EngineStorage(graph, submission)
    // The engine's constructor is a list of positions; the names are those of its own declaration.
    const engineLogger = engineConsole(logger, submission)
    const reporting = Object.fromEntries(
      Object.entries(managers).map(([topic, manager]) => [topic, reportFailures(manager, submission)]),
    )
    super(
      reporting,
      lookupServices,
      storage,
      proofs.headers ?? 'scripts only',
      hostingURL,
      undefined /* shipTrackers */,
      undefined /* slapTrackers */,
      undefined /* broadcaster */,
      undefined /* advertiser */,
      Object.fromEntries(Object.keys(managers).map((topic) => [topic, false])) /* syncConfiguration */,
      false /* logTime */,
      '' /* logPrefix */,
      false /* throwOnBroadcastFailure */,
      undefined /* overlayBroadcastFacilitator */,
      engineLogger,
    )
    this.untracked = new Engine(reporting, lookupServices, storage, 'scripts only')
    this.untracked.logger = engineLogger
    this.graph = graph
    this.coins = storage
    this.limits = options.limits
    this.submission = submission
    this.proofs = proofs
    this.onAdmitted = options.onAdmitted ?? (() => {})
  }

  /**
   * Verifies a transaction and gives it to its topics; returns when all it changed is stored.
   *
   * @throws UnknownTopicError, InvalidSubmissionError, SubmissionTooLargeError, BeefError: nothing is stored, and the same bytes will fail again.
   * @throws ConflictError: an admitted transaction spends one of its inputs already.
   * @throws ChainTrackerError: no block headers to be had; try again.
   */
  override async submit(
    taggedBEEF: TaggedBEEF & { requestId?: string },
    onSteakReady?: OnSteak,
    mode?: Mode,
    offChainValues?: number[],
  ): Promise<STEAK> {
    const contents = readBeef(taggedBEEF.beef)
    const { topics, requestId } = taggedBEEF
    const sources = await this.verify(contents, topics, this.proofs.openTracker())
    const verified = { contents, topics, sources, requestId }
    return await this.admit(verified, { onSteakReady, mode, offChainValues })
  }

  /**
   * Verifies what is to be given to topics, while others have their turn: scripts may take long to run, and a chain tracker
   * to answer.
   *
   * @param tracker Without one, merkle paths are believed.
   * @returns What places its ordinals and is proven to.
   * @throws As {@link submit}.
   */
  async verify(
    contents: BeefContents,
    topics: string[],
    tracker: ChainTracker | undefined,
  ): Promise<TransactionRecord[]> {
    this.requireSubmittable(contents, topics)
    let sources: TransactionRecord[] = []
    await verifying(async () => {
      await verifySubmission({ beef: contents, tracker, ...this.limits, runScripts: this.runScripts })
      if (topics.includes(TOPICS.ordinals)) sources = await provenSources({ contents, tracker })
    })
    return sources
  }

  /**
   * Gives a transaction to its topics that is verified; returns when all it changed is stored.
   *
   * @throws ConflictError: an admitted transaction spends one of its inputs already.
   */
  async admit(
    verified: Verified,
    told: { onSteakReady?: OnSteak; mode?: Mode | undefined; offChainValues?: number[] | undefined } = {},
  ): Promise<STEAK> {
    const { contents, topics, sources, requestId } = verified
    const beef = vouchedBeef(contents.subject)
    readBeefAs(beef, contents)
    const work = async (): Promise<STEAK> => {
      const vouched = { beef: engineBeef(beef), topics }
      const steak = await this.untracked.submit(vouched, told.onSteakReady, told.mode, told.offChainValues)
      await this.keepLaterWord({ contents, steak, sources })
      return steak
    }
    return await this.takeTurn(contents, work, requestId)
  }

  /** Keeps what the engine passes over of a submission that it has verified, and takes back what that shows to be out of date. */
  private async keepLaterWord(told: Omit<LaterWordOptions, 'graph'>): Promise<void> {
    for (const records of await laterWord({ ...told, graph: this.graph }))
      await this.submission.record(records)
    await this.proofs.takeBackRivals(provenSpends(told))
  }

  /**
   * Gives a raw transaction to its topics on the operator's word: neither its scripts nor any proof are checked,
   * and it is kept as unproven.
   */
  async submitTrusted(raw: Uint8Array, topics: string[]): Promise<STEAK> {
    const { txid } = readTransaction(raw)
    const beef = engineBeef(vouchedBeef({ txid, raw }))
    const unproven: BeefContents = { ...readBeef(beef), proof: () => undefined }
    this.requireSubmittable(unproven, topics)
    const work = (): Promise<STEAK> => this.untracked.submit({ beef, topics }, undefined, 'historical-tx')
    return await this.takeTurn(unproven, work)
  }

  /** Does something while no submission is under way, and lets none begin. */
  async exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.turn.runExclusive(async () => {
      this.requireWhole()
      return await work()
    })
  }

  /** As {@link exclusively}, for what makes the index whole. */
  async makeWhole(work: () => Promise<void>): Promise<void> {
    await this.turn.runExclusive(work)
  }

  private requireSubmittable(beef: BeefContents, topics: string[]): void {
    for (const topic of topics) if (!Object.hasOwn(this.managers, topic)) throw new UnknownTopicError(topic)
    requireWithinLimits(beef, this.limits)
    const unsound = unsoundness(beef)
    if (unsound !== undefined) throw new InvalidSubmissionError(`no block can hold this: ${unsound}`)
  }

  private async takeTurn(
    beef: BeefContents,
    work: () => Promise<STEAK>,
    requestId?: string | undefined,
  ): Promise<STEAK> {
    return await this.turn.runExclusive(async () => {
      this.requireWhole()
      try {
        const steak = await this.submission.run(beef, () => this.coins.during(work), requestId)
        this.onAdmitted(steak)
        return steak
      } catch (cause) {
        if (cause instanceof LostConflictError) throw new ConflictError(cause)
        throw cause
      }
    })
  }
}

/**
 * The engine takes a topic manager that throws for one that admits nothing, and forgets why. What is thrown here
 * is our fault, not the transaction's: the submission fails instead, and may be sent again.
 */
function reportFailures(manager: TopicManager, submission: CurrentSubmission): TopicManager {
  return {
    getDocumentation: () => manager.getDocumentation(),
    getMetaData: () => manager.getMetaData(),
    ...(manager.identifyNeededInputs && {
      identifyNeededInputs: (...told) => manager.identifyNeededInputs?.(...told) ?? Promise.resolve([]),
    }),
    identifyAdmissibleOutputs: async (...told) => {
      try {
        return await manager.identifyAdmissibleOutputs(...told)
      } catch (error) {
        submission.fail(error)
        throw error
      }
    },
  }
}

async function verifying(verify: () => Promise<void>): Promise<void> {
  try {
    await verify()
  } catch (cause) {
    if (cause instanceof AnswerError) throw cause
    throw new InvalidSubmissionError(`the transaction could not be verified: ${reasonOf(cause)}`, { cause })
  }
}

/**
 * A transaction alone, as the engine takes one for verified: with a merkle path, which is of no block and is not kept. The
 * engine parses and hashes all it is given, and goes through unproven ancestors by ways that a stranger could make
 * endless; the topic managers ask for them by txid.
 */
function vouchedBeef({ txid, raw }: { txid: string; raw: Uint8Array }): Uint8Array {
  const path = new MerklePath(0, [[{ offset: 0, hash: txid, txid: true }]])
  return encodeBeef([{ raw, proof: { merklePath: Uint8Array.from(path.toBinary()), height: 0, root: txid } }])
}

/**
 * Bytes in the type that the engine declares. It only hands them to the SDK's reader and to topic managers, which
 * take both; an array of numbers would be a copy of everything, in a wider type.
 */
export function engineBeef(bytes: Uint8Array): number[] {
  return bytes as unknown as number[]
}

/** What the verifier says, without the state of its stacks, and cut short: it may quote what it was given. */
function reasonOf(cause: unknown): string {
  const [reason = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
  return reason.length > 300 ? `${reason.slice(0, 300)}…` : reason
}

/** The engine logs to something with the face of `console`. */
function engineConsole(logger: Logger, submission: CurrentSubmission): typeof console {
  const say =
    (level: 'error' | 'warn' | 'info') =>
    (message: unknown, error?: unknown): void =>
      logger[level]({ requestId: submission.requestId, err: error }, String(message))
  return Object.assign(Object.create(console), {
    error: say('error'),
    warn: say('warn'),
    info: say('info'),
    log: say('info'),
  })
}
