import { AsyncLocalStorage } from 'node:async_hooks'
import type { GraphStore, GraphWriter } from '../../backend/src/graph/graph-store.js'
import type { BeefContents } from '../../backend/src/graph/read-beef.js'
import { type GraphRecords, mergeRecords } from '../../backend/src/graph/records.js'
import type { SubmissionSource } from '../../backend/src/lookup-services/admission.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'

/** How long after a submission nothing of it is under way any more, in milliseconds. */
const IDLE = 1000

interface Submission {
  beef: BeefContents
  requestId: string | undefined
  gathered: GraphRecords[]
  failures: unknown[]
  state: 'open' | 'written' | 'failed'
}

/**
 * The submission that a piece of work belongs to. What the engine and the lookup services record meanwhile is
 * gathered, and written in one step when the engine is done: a crash leaves all of a submission or none of it.
 *
 * The engine does not wait for all it starts. What comes late is told from what belongs to the next submission by the
 * asynchronous context it runs in.
 */
export class CurrentSubmission implements SubmissionSource, GraphWriter {
  private readonly context = new AsyncLocalStorage<Submission>()
  private idle: NodeJS.Timeout | undefined

  constructor(private readonly store: GraphStore) {}

  /**
   * Runs the engine's part of a submission, then writes what it gathered. Where the engine throws, or somebody
   * called {@link fail}, nothing is written, now or later.
   *
   * @throws LostConflictError where what is submitted does not count; nothing is written then, either.
   */
  async run<Result>(beef: BeefContents, work: () => Promise<Result>, requestId?: string): Promise<Result> {
    const submission: Submission = { beef, requestId, gathered: [], failures: [], state: 'open' }
    clearTimeout(this.idle)
    try {
      const result = await this.context.run(submission, work)
      if (submission.failures.length > 0) throw submission.failures[0]
      submission.state = 'written'
      // Where nothing was gathered, too: what is known here already may have lost to another one since.
      await this.store.record(mergeRecords(submission.gathered), { subject: beef.subject.txid })
      this.restWhenIdle()
      return result
    } catch (error) {
      submission.state = 'failed'
      throw error
    }
  }

  /**
   * While a context is in use, Node (before 24) makes every promise of the process slower, those of readers too. What
   * comes this late of a submission that was written is true, and needs no context; after one that failed, it stays.
   */
  private restWhenIdle(): void {
    this.idle = setTimeout(() => this.context.disable(), IDLE).unref()
  }

  /** Of the request that the submission under way came with; undefined where it came with none. */
  get requestId(): string | undefined {
    return this.context.getStore()?.requestId
  }

  /** Makes the submission under way fail with an error that the engine would swallow. */
  fail(error: unknown): void {
    this.context.getStore()?.failures.push(error)
  }

  submitted(txid: string): BeefContents | undefined {
    const beef = this.context.getStore()?.beef
    return beef?.subject.txid === txid ? beef : undefined
  }

  get open(): boolean {
    return this.context.getStore()?.state === 'open'
  }

  async record(records: GraphRecords): Promise<void> {
    const submission = this.context.getStore()
    if (submission?.state === 'open') submission.gathered.push(records)
    // Too late for the one step, but true; of a submission that failed, nothing is.
    else if (submission?.state !== 'failed') await this.store.record(records)
  }

  async evict(outpoint: Outpoint): Promise<void> {
    await this.store.evict(outpoint)
  }
}
