import { DEFAULT_TIMEOUT, LONGEST_TIMER, unlessAborted } from './bounded-fetch.js'
import { CheckWorkerError, checkInWorker } from './check-in-worker.js'
import { type CheckedEvidence, checkEvidence } from './evidence.js'
import type { VerifiedHistory } from './name-history.js'
import type { AskBounds, Evidence, IndexReply, NameSource } from './name-source.js'
import { HeadersError, ProofError } from './proof-error.js'
import type { IndexReport, ResolveOptions } from './resolve.js'
import { SourceError } from './source-error.js'

/** What an index shows, where it holds. */
export interface Held {
  index: string
  shown: VerifiedHistory
  spent: boolean | undefined
}

export function isHeld(judged: Held | IndexReport): judged is Held {
  return 'shown' in judged
}

type Judged = Held | IndexReport

const DEFAULT_TOTAL_BYTES = 128 * 1024 * 1024
const DEFAULT_AT_ONCE = 32
/** Indexes that one source may have, and replies of one index: what a source says of itself is a proposal, too. */
const MAX_INDEXES = 64
const MAX_REPLIES = 16

/**
 * Asks all sources about a name and checks what each of their indexes shows, as many at once as the options say. Each
 * index has the same share of the bytes, and the same time: all of it where they fit in at once.
 *
 * @returns What came of each index, in the order of the sources; no later than after `timeout`, but for what a step of a
 * check takes.
 */
export async function judgeSources(
  sources: readonly NameSource[],
  options: ResolveOptions,
): Promise<Judged[]> {
  const { timeout = DEFAULT_TIMEOUT, maxTotalBytes = DEFAULT_TOTAL_BYTES } = options
  const { maxAtOnce = DEFAULT_AT_ONCE } = options
  const end = performance.now() + timeout
  const most = sources.reduce((sum, source) => sum + indexesOf(source), 0)
  const maxBytes = Math.floor(maxTotalBytes / Math.min(maxAtOnce, Math.max(1, most)))
  const share = timeout / Math.max(1, Math.ceil(most / maxAtOnce))
  const slots = new Slots(maxAtOnce)

  const judgeIndex = async (source: NameSource, index: string): Promise<Judged[]> =>
    await slots.run(async () => {
      const left = Math.min(share, end - performance.now())
      return await within(left, index, async (bounds) => {
        const asking = answered(index, () => source.ask(options.name, { ...bounds, maxBytes }))
        const replies = await unlessAborted(asking, bounds.signal)
        return await Promise.all(
          replies.slice(0, MAX_REPLIES).map((reply) => judge(reply, options, bounds.signal)),
        )
      })
    })
  const judgeSource = async (source: NameSource, at: number): Promise<Judged[]> => {
    const { index = `source ${at + 1}` } = source
    if (source.find === undefined) return await judgeIndex(source, index)
    // Finding takes no slot: while one source looks for its indexes, others are asked.
    const found: NameSource[] = []
    const failed = await within(timeout, index, async (bounds) => {
      const finding = answered(index, async () => (await source.find?.(bounds)) ?? [])
      found.push(...(await unlessAborted(finding, bounds.signal)))
      return []
    })
    const judged = found.slice(0, indexesOf(source)).map((each) => judgeIndex(each, each.index ?? index))
    return [...failed, ...(await Promise.all(judged)).flat()]
  }
  return (await Promise.all(sources.map(judgeSource))).flat()
}

function indexesOf({ maxIndexes = 1 }: NameSource): number {
  return Math.min(MAX_INDEXES, Math.max(1, Math.floor(maxIndexes) || 1))
}

/** What a source answers, if it is a list; whatever else it does is its own fault. */
async function answered<Item>(index: string, ask: () => Promise<Item[]>): Promise<Item[]> {
  let answer: unknown
  try {
    answer = await ask()
  } catch (cause) {
    if (cause instanceof SourceError) throw cause
    throw new SourceError('BAD_ANSWER', `${index} fails: ${messageOf(cause)}`, { cause })
  }
  if (Array.isArray(answer)) return answer
  throw new SourceError('BAD_ANSWER', `${index} answers no list of replies`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Has an index reported as failed that gives no answer, or none in time. */
async function within(
  milliseconds: number,
  index: string,
  work: (bounds: AskBounds & { timeout: number; signal: AbortSignal }) => Promise<Judged[]>,
): Promise<Judged[]> {
  const stop = new AbortController()
  const late = (): void =>
    stop.abort(new SourceError('TIMEOUT', `${index} took longer than ${Math.round(milliseconds)} ms`))
  const timer = setTimeout(late, Math.min(Math.max(0, milliseconds), LONGEST_TIMER))
  try {
    return await work({ timeout: Math.max(0, milliseconds), signal: stop.signal })
  } catch (error) {
    if (error instanceof SourceError) return [failedReport(index, error)]
    throw error
  } finally {
    clearTimeout(timer)
    // Whatever still goes on for it ends.
    stop.abort(new SourceError('TIMEOUT', `nobody waits for ${index} any more`))
  }
}

function failedReport(index: string, error: SourceError): IndexReport {
  return { index, verdict: 'failed', message: error.message, error }
}

async function judge(reply: IndexReply, options: ResolveOptions, signal: AbortSignal): Promise<Judged> {
  const { index } = reply
  if (reply.kind === 'not-claimed')
    return { index, verdict: 'denies', message: 'it says that the name is not claimed' }
  try {
    if (reply.kind === 'failed') return failedReport(index, reply.error)
    const { history: shown, isOfTip } = await check(reply.evidence, options, signal)
    return { index, shown, spent: isOfTip ? reply.spent : undefined }
  } catch (error) {
    const { message } = error as Error
    if (error instanceof ProofError) return { index, verdict: 'refuted', message, error }
    // A chain tracker may fail over one height that an index makes up, and not over what the others show.
    if (error instanceof HeadersError) return { index, verdict: 'unchecked', message, error }
    if (error instanceof SourceError) return failedReport(index, error)
    if (error instanceof CheckWorkerError) throw error
    // Evidence of a shape that no source of ours gives.
    const cause = new SourceError('BAD_ANSWER', `${index} shows no evidence: ${message}`, { cause: error })
    return failedReport(index, cause)
  }
}

async function check(
  evidence: Evidence,
  options: ResolveOptions,
  signal: AbortSignal,
): Promise<CheckedEvidence> {
  const { workerUrl, workers = workerUrl !== undefined } = options
  const task = { ...options, evidence, signal }
  return workers ? await checkInWorker(task, workerUrl) : await checkEvidence(task)
}

/** Lets so many jobs go on at once; the others wait, first come first served. */
class Slots {
  private readonly waiting: (() => void)[] = []

  constructor(private free: number) {}

  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    if (this.free > 0) this.free--
    else await new Promise<void>((resume) => this.waiting.push(resume))
    try {
      return await job()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.free++
      else next()
    }
  }
}
