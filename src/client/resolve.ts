import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { isName } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { DEFAULT_TIMEOUT, LONGEST_TIMER, unlessAborted } from './bounded-fetch.js'
import { CheckWorkerError, checkInWorker } from './check-in-worker.js'
import { compare, leadingHistories, provenHeights, withHeights } from './compare-histories.js'
import { HeadersError, ProofError, SourceError } from './errors.js'
import {
  type AskBounds,
  type Evidence,
  HttpNameSource,
  type IndexReply,
  type NameSource,
} from './name-source.js'
import {
  type CheckedEvidence,
  checkEvidence,
  type VerifiedHistory,
  type VerifiedTip,
} from './verify-history.js'
import type { NameTrust, VerifiedName } from './verify-name.js'

/** Why a name was not resolved. */
export type ResolutionErrorCode =
  /** It is none: 1 to 255 characters of `a-z 0-9 -`. */
  | 'BAD_NAME'
  /** A source is neither one nor the URL of a server. */
  | 'BAD_SOURCE'
  /** Every index that answered says that it is not claimed. */
  | 'NOT_CLAIMED'
  /** No index showed anything that held. */
  | 'NO_PROOF'
  /** Indexes show what cannot all be true, and nothing that was checked says which is. */
  | 'DISAGREEMENT'

/** A name that was not resolved, with what each index said. */
export class ResolutionError extends CodedError<ResolutionErrorCode> {
  override readonly name = 'ResolutionError'

  constructor(
    code: ResolutionErrorCode,
    message: string,
    readonly reports: IndexReport[] = [],
  ) {
    super(code, message)
  }
}

/** How an index stands to what was found. */
export type IndexReport = { index: string } & (
  | { verdict: 'agrees' }
  /** It shows the ordinal where it was before: its answer is stale, or it withholds the rest. */
  | { verdict: 'stale'; message: string }
  /** What it shows holds by itself, and is overruled by what is in a block; or nothing says which of them is true. */
  | { verdict: 'overruled' | 'disagrees'; message: string }
  /** It says that the name is not claimed. */
  | { verdict: 'denies'; message: string }
  /** What it shows does not hold: it lies, or it is broken. */
  | { verdict: 'refuted'; message: string; error: ProofError }
  /** It gave nothing that could be checked. */
  | { verdict: 'failed'; message: string; error: SourceError }
  /** The chain tracker did not answer to what it shows: nobody can say whether it holds. */
  | { verdict: 'unchecked'; message: string; error: HeadersError }
)

/**
 * Whether the tip is unspent: on the word of the indexes that show this tip, for no proof can show it (BRC-174 section 6).
 * `disputed`: they do not agree. `unknown`: none of them says.
 */
export type SpendStatus = 'unspent' | 'spent' | 'disputed' | 'unknown'

/** A name that was resolved: all of it checked, but for the spend status. */
export interface ResolvedName {
  name: string
  origin: VerifiedName
  tip: VerifiedTip
  /** Whether all of it is in blocks that the chain tracker knows: the mints, and every step to the tip. */
  proven: boolean
  spendStatus: SpendStatus
  /** When the indexes were asked, in milliseconds since 1970: a result is to be used while it is fresh (BRC-174 6). */
  checkedAt: number
  /** What each index said, in the order of the sources. */
  reports: IndexReport[]
}

export interface ResolveOptions extends NameTrust {
  name: string
  /** Where to ask: sources, or URLs of servers to ask over HTTP. Several of them can contradict each other, which is how a stale answer shows. */
  sources: readonly (NameSource | string | URL)[]
  /**
   * For each index, in milliseconds: to ask it, and to check what it shows, with all that the chain tracker is asked for
   * that; 20,000 unless set. The answer takes no longer, however many indexes there are.
   */
  timeout?: number
  /** What is read of all indexes together, in bytes; 128 MiB unless set. Each has an equal share. */
  maxTotalBytes?: number
  /** How many indexes are asked at once; 16 unless set. Where there are more, each has a share of the time. */
  maxAtOnce?: number
  /** Checks what each index shows in a worker of its own, which is ended at the deadline. Unset: where `workerUrl` is set. */
  workers?: boolean
  /** The module that workers run, where it does not stand beside this one, as in a bundle: `check-worker.js`. */
  workerUrl?: URL | string
}

/**
 * Resolves a name by BRC-174 section 4, steps 1 to 4: asks every index, checks what each shows, and follows the one that
 * shows most. What does not hold is set aside and reported. Of what holds, a proven origin or step counts against one
 * that is in no block, and otherwise the tip that is furthest on; a name that one index proves is claimed, whoever denies
 * it. Nothing is chosen where two tips, or two origins, stand against each other on equal terms.
 *
 * All indexes are asked and checked at once, each within a time and a number of bytes. One that is slow, endless or costly
 * to check delays the answer by no more than its time, takes nothing of the others', and is reported.
 *
 * @throws ResolutionError with the report of every index; HeadersError where nothing was found to hold and the chain
 * tracker did not answer; CheckWorkerError where workers are asked for and cannot be started.
 */
export async function resolveName(options: ResolveOptions): Promise<ResolvedName> {
  const { name } = options
  if (!isName(name)) throw new ResolutionError('BAD_NAME', 'a name is 1 to 255 characters of a-z 0-9 -')
  const sources = options.sources.map(nameSource)
  const checkedAt = Date.now()
  const judged = await askSources(sources, options)

  const heights = provenHeights(judged.filter(isChecked).map(({ shown }) => shown))
  const known = judged.map((each) =>
    isChecked(each) ? { ...each, shown: withHeights(each.shown, heights) } : each,
  )
  const held = known.filter(isChecked)
  const leading = leadingHistories(held.map(({ shown }) => shown))
  const reports = known.map((each) => (isChecked(each) ? reportOn(each, leading) : each))
  const [best, ...rivals] = leading
  if (best === undefined) throw unresolved(name, reports)
  if (rivals.length > 0) {
    const said = leading.map(({ tip }) => formatOutpoint(tip.tip)).join(' and ')
    throw new ResolutionError('DISAGREEMENT', `the indexes disagree about ${name}: ${said}`, reports)
  }
  return {
    name,
    origin: best.name,
    tip: best.tip,
    proven: best.name.proven && best.tip.proven,
    spendStatus: spendStatus(held, best),
    checkedAt,
    reports,
  }
}

function nameSource(source: NameSource | string | URL): NameSource {
  if (typeof source === 'object' && 'ask' in source && typeof source.ask === 'function') return source
  const text = typeof source === 'string' || source instanceof URL ? String(source) : undefined
  if (text !== undefined && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))
    return new HttpNameSource({ url: text })
  const shown = text === undefined ? `a ${typeof source}` : JSON.stringify(text)
  throw new ResolutionError('BAD_SOURCE', `not a source or the URL of a server: ${shown}`)
}

/** @param leading Those that nothing beats; more than one where they contradict each other. */
function reportOn({ index, shown }: CheckedReply, leading: readonly VerifiedHistory[]): IndexReport {
  const tip = formatOutpoint(shown.tip.tip)
  if (leading.some((each) => compare(shown, each) === 'same')) {
    if (leading.length === 1) return { index, verdict: 'agrees' }
    return { index, verdict: 'disagrees', message: `it shows the name at ${tip}` }
  }
  const isBehind = leading.some(({ tip: { path } }) =>
    path.some(({ outpoint }) => formatOutpoint(outpoint) === tip),
  )
  return isBehind
    ? { index, verdict: 'stale', message: `it shows the name at ${tip}, from where it has moved on` }
    : { index, verdict: 'overruled', message: `it shows the name at ${tip}, by what is in no block` }
}

function unresolved(name: string, reports: IndexReport[]): ResolutionError | HeadersError {
  const unchecked = reports.find((report) => report.verdict === 'unchecked')
  if (unchecked !== undefined) return unchecked.error
  const isDenied = reports.some(({ verdict }) => verdict === 'denies')
  // Where one index showed something that does not hold, that another denies the name settles nothing.
  if (isDenied && reports.every(({ verdict }) => verdict !== 'refuted'))
    return new ResolutionError('NOT_CLAIMED', `${name} is not claimed, as far as the indexes say`, reports)
  const reasons = reports.map((report) => `${report.index}: ${'message' in report ? report.message : ''}`)
  const shown = reasons.length > 0 ? reasons.join('; ') : 'no index was asked'
  return new ResolutionError('NO_PROOF', `nothing was shown of ${name} that holds: ${shown}`, reports)
}

function spendStatus(held: readonly CheckedReply[], best: VerifiedHistory): SpendStatus {
  const said = held
    .filter(({ shown }) => compare(shown, best) === 'same')
    .flatMap(({ spent }) => (spent === undefined ? [] : [spent]))
  if (said.length === 0) return 'unknown'
  if (said.every((spent) => spent)) return 'spent'
  return said.some((spent) => spent) ? 'disputed' : 'unspent'
}

/** What an index shows, where it holds. */
export interface CheckedReply {
  index: string
  shown: VerifiedHistory
  spent: boolean | undefined
}

export function isChecked(judged: CheckedReply | IndexReport): judged is CheckedReply {
  return 'shown' in judged
}

type Judged = CheckedReply | IndexReport

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
export async function askSources(sources: readonly NameSource[], options: ResolveOptions): Promise<Judged[]> {
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
