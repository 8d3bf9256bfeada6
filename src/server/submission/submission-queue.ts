import { setTimeout as sleep } from 'node:timers/promises'
import type { STEAK } from '@bsv/sdk'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { Limits } from '../config/limits.js'
import type { WriteLock } from '../store/write-lock.js'
import { ClientQueueFullError, QueueFullError } from './errors.js'

/** A submitted transaction. Can be posted to another thread as it is. */
export interface Submission {
  /** A `Uint8Array` with a buffer of its own: not a view into a pool. */
  beef: Uint8Array
  topics: string[]
  /** Of the HTTP request, for log lines about it. */
  requestId?: string
  /** Who sends it; without one, no client's share is used up. */
  client?: string
  /** How many submissions of the same client are already in the queue. */
  ahead?: number
}

export type Submit = (submission: Submission) => Promise<STEAK>

/**
 * Limits how many submissions are in progress or waiting, in all and per client, and how many bytes of memory their bodies
 * hold. A submission that comes alone is accepted however large it is.
 *
 * Each starts in a turn of the event loop of its own: reading a BEEF is one piece of work, and many may arrive at once.
 */
export function queueSubmissions(
  submit: Submit,
  limits: Pick<Limits, 'maxSubmissions' | 'maxClientSubmissions' | 'maxSubmissionBytes'>,
): Submit {
  const { maxSubmissions, maxClientSubmissions, maxSubmissionBytes } = limits
  const countByClient = new Map<string, number>()
  let count = 0
  let bytes = 0
  const leave = (client: string): void => {
    const left = (countByClient.get(client) ?? 1) - 1
    if (left > 0) countByClient.set(client, left)
    else countByClient.delete(client)
  }
  return async (submission) => {
    const { client } = submission
    const { length } = submission.beef
    const ahead = client === undefined ? 0 : (countByClient.get(client) ?? 0)
    if (ahead >= maxClientSubmissions) throw new ClientQueueFullError(ahead)
    if (count >= maxSubmissions || (count > 0 && bytes + length > maxSubmissionBytes))
      throw new QueueFullError(count)
    count++
    bytes += length
    if (client !== undefined) countByClient.set(client, ahead + 1)
    try {
      await yieldToEventLoop('submitting')
      return await submit({ ...submission, ahead })
    } finally {
      count--
      bytes -= length
      if (client !== undefined) leave(client)
    }
  }
}

/** How many units share a write at most, and how much they weigh together: all others wait for that write. */
const MAX_UNITS = 64
const MAX_WEIGHT = 1024 * 1024

/** From how many reads a second on writes wait, and how long passes between two of them then, in milliseconds. */
const MANY_READS = 500
const APART = 200
/** Over how long reads are counted, in milliseconds. */
const WINDOW = 1000

/**
 * While this host answers many reads, its writes come some time apart, so that those between share one: a write takes reads
 * several times as long as a further submission in it. Without such load each write starts at once.
 */
export class WritePace {
  private startedAt = Number.NEGATIVE_INFINITY
  private window = { since: Number.NEGATIVE_INFINITY, reads: 0 }
  private isBusy = false

  /** @param countReads How many reads were answered so far. Submissions are none. */
  constructor(private readonly countReads: () => number) {}

  /** How long the next write is to wait, in milliseconds. */
  wait(): number {
    this.count()
    return this.isBusy ? Math.max(0, this.startedAt + APART - monotonic()) : 0
  }

  /** A write starts. */
  start(): void {
    this.startedAt = monotonic()
  }

  private count(): void {
    const [now, reads] = [monotonic(), this.countReads()]
    const lasted = now - this.window.since
    if (lasted < WINDOW) return
    // A longer window is that of a host which nobody wrote to: it says nothing of the last second.
    this.isBusy = lasted < 2 * WINDOW && ((reads - this.window.reads) * 1000) / lasted > MANY_READS
    this.window = { since: now, reads }
  }
}

interface WriteGroupsOptions<Unit, Result> {
  lock: WriteLock
  pace?: WritePace
  /** Writes units in one database transaction: all of them, or none if it throws. Returns their results, in order. */
  write: (units: Unit[]) => Promise<Result[]>
  /** Those of the candidates that a unit can share its write with, the first ones first; by default, all. */
  compatible?: (first: Unit, candidates: Unit[]) => Unit[]
}

/** Where a unit waits. */
interface Place {
  /** At the {@link WriteLock}. */
  priority: number
  /** About how much there is to write, in bytes; a heavy one has a write of its own. */
  weight: number
}

interface Waiting<Unit, Result> extends Place {
  unit: Unit
  isAlone: boolean
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Group commit: units of work that wait for the write lock share a database transaction, and so its statements and its sync.
 * The one that gets the lock takes along others that wait. If that write fails, for whatever reason, nothing of it is
 * written, and each is written alone in its own turn: so none fails because of another, and results are the same as without
 * groups.
 */
export class WriteGroups<Unit, Result> {
  private readonly waiting = new Set<Waiting<Unit, Result>>()

  constructor(private readonly options: WriteGroupsOptions<Unit, Result>) {}

  /** Writes a unit when its turn comes. Resolves once it is committed. */
  run(unit: Unit, { priority, weight }: Place): Promise<Result> {
    return new Promise((resolve, reject) => {
      const isAlone = weight > MAX_WEIGHT / 2
      const own: Waiting<Unit, Result> = { unit, priority, weight, isAlone, resolve, reject }
      this.waiting.add(own)
      this.startInTurn(own).catch((error) => {
        this.waiting.delete(own)
        reject(error)
      })
    })
  }

  private async startInTurn(own: Waiting<Unit, Result>): Promise<void> {
    const { lock, pace } = this.options
    const wait = this.waiting.size < MAX_UNITS ? (pace?.wait() ?? 0) : 0
    if (wait > 0) await sleep(wait, undefined, { ref: false })
    const isNeeded = (): boolean => this.waiting.has(own)
    await lock.runIfNeeded(() => this.writeNow(own), { priority: own.priority, isNeeded })
  }

  private async writeNow(own: Waiting<Unit, Result>): Promise<void> {
    const { write, pace } = this.options
    pace?.start()
    const others = this.takeAlong(own)
    const group = [own, ...others]
    for (const each of group) this.waiting.delete(each)
    try {
      const results = await write(group.map(({ unit }) => unit))
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result)
    } catch (error) {
      if (others.length === 0) return own.reject(error)
      for (const other of others) this.waiting.add(Object.assign(other, { isAlone: true }))
      await write([own.unit]).then(([result]) => own.resolve(result as Result), own.reject)
    }
  }

  /** Those that share the write of a unit, by priority. */
  private takeAlong(own: Waiting<Unit, Result>): Waiting<Unit, Result>[] {
    if (own.isAlone || this.waiting.size === 1) return []
    const candidates = [...this.waiting].filter((each) => each !== own && !each.isAlone)
    candidates.sort((one, other) => other.priority - one.priority)
    const { compatible = (_first, units) => units } = this.options
    const byUnit = new Map(candidates.map((each) => [each.unit, each]))
    const taken: Waiting<Unit, Result>[] = []
    let { weight } = own
    for (const unit of compatible(
      own.unit,
      candidates.slice(0, MAX_UNITS - 1).map((each) => each.unit),
    )) {
      const each = byUnit.get(unit)
      if (each === undefined || weight + each.weight > MAX_WEIGHT) continue
      weight += each.weight
      taken.push(each)
    }
    return taken
  }
}

/** What is re-evaluated takes as long to write as if so many more bytes had come for each outpoint that it spends. */
const BYTES_PER_SPEND = 64
/** A client with other submissions in the queue waits as if this one were so much longer for each: clients take turns. */
const BYTES_PER_SUBMISSION = 16 * 1024

/** How much later a submission is due for each doubling of its weight, in milliseconds. */
const DELAY = 1000

/**
 * The priority of a submission that comes now at the {@link WriteLock}: what is due first goes first, and a heavy one is due
 * later. So a light one waits for the write in progress, but not for all the heavier ones that came shortly before it; and no
 * flood of light ones holds a heavy one up for longer than some twenty seconds.
 *
 * @param submitted.bytes Length of the BEEF.
 * @param submitted.behind How many spends are re-evaluated because it comes.
 * @param submitted.ahead How many submissions of the same client are in the queue.
 */
export function submissionPriority(submitted: {
  bytes: number
  behind?: number
  ahead?: number | undefined
}): number {
  const { ahead = 0 } = submitted
  const weight = submissionWeight(submitted) + ahead * BYTES_PER_SUBMISSION
  return -(monotonic() + DELAY * Math.log2(1 + weight / 1024))
}

/** About how much there is to write for a submission, in bytes. See {@link submissionPriority}. */
export function submissionWeight({ bytes, behind = 0 }: { bytes: number; behind?: number }): number {
  return bytes + behind * BYTES_PER_SPEND
}
