import { GeneralError, messageOf } from '../../backend/src/protocol/coded-error.js'
import { confusablesAmong } from '../../backend/src/protocol/confusable-names.js'
import { isName } from '../../backend/src/protocol/mine-node.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { heeding, requireArgument, requireTree, serverUrl } from './arguments.js'
import { DEFAULT_TIMEOUT, unlessAborted, withTimeLimit } from './bounded-fetch.js'
import { CheckWorkerError, checkInWorker } from './check-in-worker.js'
import { compareHistories, leadingHistories, provenHeights, withHeights } from './compare-histories.js'
import { HeadersError, ProofError, SourceError } from './errors.js'
import { type KnownName, placesIn } from './known-name.js'
import { type AskBounds, HttpNameSource, type IndexReply, type NameSource } from './name-source.js'
import type { NameMemory, Segments } from './segments.js'
import { Slots } from './slots.js'
import { type IdentityBinding, verifyBinding } from './verify-binding.js'
import { checkEvidence, knownHistory, type VerifiedHistory, type VerifiedTip } from './verify-history.js'
import type { NameTrust, VerifiedName } from './verify-name.js'

export type ResolutionErrorCode =
  /** Not a name: names are 1 to 255 characters of `a-z 0-9 -`. */
  | 'BAD_NAME'
  /** Every index that answered says that the name is not claimed. */
  | 'NOT_CLAIMED'
  /** No index showed anything valid. */
  | 'NO_PROOF'
  /** Indexes show histories that exclude each other, and nothing verified says which is right. */
  | 'DISAGREEMENT'

/** A name that was not resolved, with the report of each index. */
export class ResolutionError extends GeneralError<ResolutionErrorCode> {
  override readonly name = 'ResolutionError'

  constructor(
    code: ResolutionErrorCode,
    message: string,
    readonly reports: IndexReport[] = [],
    /** How many discovered indexes were not asked. */
    readonly notAsked = 0,
  ) {
    super(code, message)
  }
}

/** How an index's answer compares with the result. */
export type IndexReport = { index: string } & (
  | { verdict: 'agrees' }
  /** It shows an earlier place of the ordinal: its answer is out of date, or it withholds later steps. */
  | { verdict: 'stale'; message: string }
  /** Its proof is valid, but a confirmed one overrules it; or another valid one contradicts it on equal terms. */
  | { verdict: 'overruled' | 'disagrees'; message: string }
  /** It says that the name is not claimed. */
  | { verdict: 'denies'; message: string }
  /** Its proof is invalid. */
  | { verdict: 'refuted'; message: string; error: ProofError }
  /** It gave nothing that could be checked. */
  | { verdict: 'failed'; message: string; error: SourceError }
  /** The chain tracker did not answer, so its proof was neither confirmed nor refuted. */
  | { verdict: 'unchecked'; message: string; error: HeadersError }
)

/**
 * Whether the tip is unspent, according to the indexes that show this tip: no proof can show it (BRC-174 section 6).
 * `disputed`: they contradict each other. `unknown`: none of them says.
 */
export type SpendStatus = 'unspent' | 'spent' | 'disputed' | 'unknown'

/** A resolved name; all of it is verified except the spend status, and what a profile says. */
export interface ResolvedName {
  name: string
  origin: VerifiedName
  tip: VerifiedTip
  /** The key that the name resolves to, if it is bound to one. */
  identity: IdentityBinding
  /**
   * The key that the caller knew, if the name is now bound to another one, or to none: warn before anything of value is sent
   * (BRC-174 section 7).
   */
  previousIdentityKey?: string
  /** The names known to the caller that look like this one (BRC-169 section 2.3). */
  confusables: string[]
  /** Whether every mint and every step to the tip is in a block that the chain tracker knows. */
  proven: boolean
  spendStatus: SpendStatus
  /** When the indexes were asked, in milliseconds since 1970: use a result only while it is fresh (BRC-174 6). */
  checkedAt: number
  freshness: Freshness
  /** One report per index that was asked, in the order of the sources. */
  reports: IndexReport[]
  /** How many discovered indexes were not asked. */
  notAsked: number
}

/** Whether a result may be acted on; see {@link isFresh}. */
export interface Freshness {
  /** When the result is too old to send anything of value, in milliseconds since 1970. */
  until: number
  /** How many indexes agree with it, and how many were asked. */
  agreeing: number
  asked: number
}

/** Whether a result is recent enough to send something of value, and no index says that the tip is spent. */
export function isFresh(
  { freshness, spendStatus }: Pick<ResolvedName, 'freshness' | 'spendStatus'>,
  now = Date.now(),
): boolean {
  const end = ends.get(freshness) ?? Number.POSITIVE_INFINITY
  return now < freshness.until && monotonic() < end && spendStatus === 'unspent'
}

/** When results of this process expire on the monotonic clock: the time of day may be set back. */
const ends = new WeakMap<Freshness, number>()

/** The names that the caller knows, as in an address book: a Map of names to identity keys, or a store. */
export interface KnownIdentities {
  /** The identity key in hex that the caller last accepted for a name. Nothing changes it but the caller. */
  get(name: string): string | undefined | Promise<string | undefined>
  /** The names that the caller knows. */
  keys(): Iterable<string> | Promise<Iterable<string>>
}

export interface ResolveOptions extends NameTrust {
  name: string
  /** The sources to ask, or URLs of servers. With several, a stale answer shows as a contradiction. */
  sources: readonly (NameSource | string | URL)[]
  /**
   * Time for each index, in milliseconds: to ask it and to check its answer, chain tracker included. 20,000 by default.
   * The whole resolution takes no longer, however many indexes there are.
   */
  timeout?: number
  /** The limit on what is read from all indexes together, in bytes; 128 MiB by default. Each gets an equal share. */
  maxTotalBytes?: number
  /** How many indexes are asked at once; 32 by default. If there are more, each gets a share of the time. */
  maxAtOnce?: number
  /**
   * A store for verified parts of the tree: only missing parts are fetched and verified. By default nothing is kept. Ignored with
   * `'scripts only'`, which proves nothing.
   */
  segments?: Segments
  /** Whether each answer is checked in a worker that is terminated at the deadline; by default only if `workerUrl` is set. */
  workers?: boolean
  /** What the caller knows: a changed identity key and confusable names are reported. */
  known?: KnownIdentities
  /** How old a result may be to send something of value, in milliseconds: 60,000 by default (BRC-174 section 6). */
  maxAge?: number
  /** The worker module, `check-worker.js`, if a bundler has moved it away from this one. */
  workerUrl?: URL | string
}

/**
 * Resolves a name by BRC-174 section 4: asks every index, checks each answer, follows the best one, and verifies the identity
 * binding in the name's output.
 *
 * Invalid answers are set aside and reported. Of the valid ones, a confirmed origin or step wins over an unconfirmed one, and
 * otherwise the tip that is furthest along. A name that one index proves, or that was proven earlier, is claimed, even if others
 * deny it. If two tips or two origins contradict each other on equal terms, nothing is chosen.
 *
 * All indexes are asked and checked at once, each within its own limits of time and bytes. An index that is slow, endless or
 * costly to check uses up only its own limits, and is reported.
 *
 * @throws TypeError for a wrong argument; the reason of the signal, at once; ResolutionError with the report of every index;
 * HeadersError if nothing was valid and the chain tracker did not answer; CheckWorkerError if workers are requested and cannot be
 * started.
 */
export async function resolveName(options: ResolveOptions): Promise<ResolvedName> {
  const { name, sources, signal } = options
  requireTree(options)
  requireArgument(typeof name === 'string', 'name', 'a string')
  requireArgument(Array.isArray(sources) && sources.length > 0, 'sources', 'a list of at least one')
  if (!isName(name)) throw new ResolutionError('BAD_NAME', 'a name must be 1 to 255 characters of a-z 0-9 -')
  const asked = sources.map(nameSource)
  return await heeding(signal, () => resolveBy(asked, options))
}

async function resolveBy(sources: readonly NameSource[], options: ResolveOptions): Promise<ResolvedName> {
  const { name } = options
  const [checkedAt, askedAt] = [Date.now(), monotonic()]
  const memory = options.segments?.recall(options)
  const { outcomes, notAsked } = await askSources(sources, { ...options, memory })

  const shown = outcomes.filter(isChecked).map(({ history }) => history)
  // Earlier results count against an index that is behind, and against one that denies the name.
  const isAnswered = outcomes.some((each) => isChecked(each) || each.verdict === 'denies')
  const own = isAnswered && memory ? knownHistory(options, await memory.lately()) : undefined
  const heights = provenHeights(own ? [...shown, own] : shown)
  const merged = outcomes.map((each) =>
    isChecked(each) ? { ...each, history: withHeights(each.history, heights) } : each,
  )
  const checked = merged.filter(isChecked)
  const histories = checked.map(({ history }) => history)
  const leading = leadingHistories(own ? [...histories, own] : histories)
  const reports = merged.map((each) => (isChecked(each) ? reportOn(each, leading) : each))
  const [best, ...others] = leading
  if (best === undefined) throw memory?.failure ?? unresolved(name, { reports, notAsked })
  if (others.length > 0) {
    const tips = leading.map(({ tip }) => formatOutpoint(tip.tip)).join(' and ')
    throw new ResolutionError(
      'DISAGREEMENT',
      `the indexes disagree about ${name}: ${tips}`,
      reports,
      notAsked,
    )
  }
  const { tip } = best
  const status = spendStatus(checked, best)
  // A binding ends with its output (BRC-174 section 7).
  const identity: IdentityBinding =
    status === 'spent'
      ? { state: 'unbound' }
      : verifyBinding({ lockingScript: tip.lockingScript, spent: tip.bindingInputs })
  const maxAge = options.maxAge ?? DEFAULT_MAX_AGE
  const freshness: Freshness = {
    until: checkedAt + maxAge,
    agreeing: reports.filter(({ verdict }) => verdict === 'agrees').length,
    asked: reports.length,
  }
  ends.set(freshness, askedAt + maxAge)
  return {
    name,
    origin: best.name,
    tip,
    identity,
    ...(await comparedWithKnown({ name, identity, known: options.known })),
    proven: best.name.proven && tip.proven,
    spendStatus: status,
    checkedAt,
    freshness,
    reports,
    notAsked,
  }
}

async function comparedWithKnown(
  options: Pick<ResolvedName, 'name' | 'identity'> & { known: KnownIdentities | undefined },
): Promise<Pick<ResolvedName, 'previousIdentityKey' | 'confusables'>> {
  const { name, identity, known = new Map() } = options
  const before = await known.get(name)
  const now = identity.state === 'bound' ? identity.identityKey : undefined
  return {
    ...(before !== undefined && before !== now && { previousIdentityKey: before }),
    confusables: confusablesAmong(name, await known.keys()),
  }
}

function nameSource(source: NameSource | string | URL, at: number): NameSource {
  if (typeof source === 'object' && 'ask' in source && typeof source.ask === 'function') return source
  return new HttpNameSource({ url: serverUrl(source, `sources[${at}]`) })
}

/** @param leading The histories that lose to no other; several if they contradict each other. */
function reportOn({ index, history }: CheckedReply, leading: readonly VerifiedHistory[]): IndexReport {
  const tip = formatOutpoint(history.tip.tip)
  if (leading.some((each) => compareHistories(history, each) === 'same')) {
    if (leading.length === 1) return { index, verdict: 'agrees' }
    return { index, verdict: 'disagrees', message: `it shows the name at ${tip}` }
  }
  const isBehind = leading.some(({ tip: { path } }) =>
    path.some(({ outpoint }) => formatOutpoint(outpoint) === tip),
  )
  return isBehind
    ? { index, verdict: 'stale', message: `it shows the name at ${tip}, which it has left since` }
    : { index, verdict: 'overruled', message: `it shows the name at ${tip}, by transactions in no block` }
}

/** For how many indexes a message gives the reason: trackers may name hundreds. The reports have all of them. */
const REASONS_SHOWN = 5

function unresolved(
  name: string,
  { reports, notAsked }: { reports: IndexReport[]; notAsked: number },
): ResolutionError | HeadersError {
  const unchecked = reports.find((report) => report.verdict === 'unchecked')
  if (unchecked !== undefined) return unchecked.error
  const others = notAsked > 0 ? `; ${notAsked} more were not asked` : ''
  // An index with an invalid proof is left out, like one that fails: it does not affect what the others say.
  if (reports.some(({ verdict }) => verdict === 'denies'))
    return new ResolutionError(
      'NOT_CLAIMED',
      `${name} is not claimed, according to the indexes${others}`,
      reports,
      notAsked,
    )
  const reasons = reports
    .slice(0, REASONS_SHOWN)
    .map((report) => `${report.index}: ${'message' in report ? report.message : ''}`)
  const notShown = reports.length - reasons.length
  if (notShown > 0) reasons.push(`${notShown} more proved nothing either`)
  const shown = reasons.length > 0 ? reasons.join('; ') : 'no index was asked'
  return new ResolutionError('NO_PROOF', `no index proved ${name}: ${shown}${others}`, reports, notAsked)
}

function spendStatus(checked: readonly CheckedReply[], best: VerifiedHistory): SpendStatus {
  const claims = checked
    .filter(({ history }) => compareHistories(history, best) === 'same')
    .flatMap(({ spent }) => (spent === undefined ? [] : [spent]))
  if (claims.length === 0) return 'unknown'
  if (claims.every((spent) => spent)) return 'spent'
  return claims.some((spent) => spent) ? 'disputed' : 'unspent'
}

/** An index's reply with valid evidence. */
interface CheckedReply {
  index: string
  history: VerifiedHistory
  spent: boolean | undefined
}

type Outcome = CheckedReply | IndexReport

/** What is known after a part of the way to a name was checked. */
interface CheckedPartReply {
  index: string
  known: KnownName | undefined
}

function isPart(reply: Outcome | CheckedPartReply): reply is CheckedPartReply {
  return 'known' in reply
}

const NOTHING_KNOWN: KnownName = { code: '', line: [], steps: [] }

/** Whether more of the way is known than before. Mints in no block are not kept; then the whole way has to be shown at once. */
function isLonger(known: KnownName | undefined, before: KnownName | undefined): known is KnownName {
  return known !== undefined && known.line.length > (before?.line.length ?? 0)
}

function isChecked(outcome: Outcome): outcome is CheckedReply {
  return 'history' in outcome
}

const DEFAULT_MAX_AGE = 60_000
const DEFAULT_TOTAL_BYTES = 128 * 1024 * 1024
const DEFAULT_AT_ONCE = 32
/** How much of the way to a name an index should show at once, in bytes. */
const PART_BYTES = 8 * 1024 * 1024
/** Limits on how many indexes of one source are asked, and how many replies of one index count, whatever a source claims. */
const MAX_INDEXES = 64
const MAX_REPLIES = 16
/** The share of an index's time for which a resolution waits while others fetch from that index what it needs, too. */
const PATIENCE = 0.5

/**
 * Asks all sources about a name and checks each index's answer. Each index gets an equal share of the bytes, and all of the time
 * if all indexes can be asked at once.
 *
 * A source says how many of its indexes are asked at once (`maxIndexes`). The next ones are asked until one has shown the name:
 * anybody can list an index that denies it.
 *
 * @returns The outcome of each index that was asked, in the order of the sources, after `timeout` at the latest (plus one step of
 * a check).
 */
async function askSources(
  sources: readonly NameSource[],
  options: ResolveOptions & { memory: NameMemory | undefined },
): Promise<{ outcomes: Outcome[]; notAsked: number }> {
  const { name, deployment, memory, signal: cancel } = options
  const { timeout = DEFAULT_TIMEOUT, maxTotalBytes = DEFAULT_TOTAL_BYTES } = options
  const { maxAtOnce = DEFAULT_AT_ONCE } = options
  const end = monotonic() + timeout
  const most = sources.reduce((sum, source) => sum + maxIndexesOf(source), 0)
  const maxBytes = Math.floor(maxTotalBytes / Math.min(maxAtOnce, Math.max(1, most)))
  const share = timeout / Math.max(1, Math.ceil(most / maxAtOnce))
  const slots = new Slots(maxAtOnce)
  const hasHeaders = options.chainTracker !== 'scripts only'

  let notAsked = 0

  const askIndex = async (
    source: NameSource,
    { index, time = share, bytes = maxBytes }: { index: string; time?: number; bytes?: number },
  ): Promise<Outcome[]> =>
    await slots.run(async () => {
      const left = Math.min(time, share, end - monotonic())
      return await withDeadline(left, { index, cancel }, async (bounds) => {
        const { signal } = bounds
        const ask = async (before?: KnownName): Promise<Outcome[]> => {
          // With headers, each part of a long way continues where the last one ended.
          const partBytes = hasHeaders ? PART_BYTES : undefined
          let known = before ?? (hasHeaders ? NOTHING_KNOWN : undefined)
          for (;;) {
            const places = known && known !== NOTHING_KNOWN && placesIn(known, { name, deployment })
            const asked = { ...bounds, maxBytes: bytes, partBytes, ...(places && { known: places }) }
            const replies = await unlessAborted(
              listFrom(index, () => source.ask(name, asked)),
              signal,
            )
            const check = { ...options, earlier: known, signal }
            const checked = await Promise.all(
              replies.slice(0, MAX_REPLIES).map((reply) => checkReply(reply, check)),
            )
            const part = checked.find(isPart)
            if (part === undefined) return checked.filter((each): each is Outcome => !isPart(each))
            if (!isLonger(part.known, known))
              throw new SourceError('TOO_LARGE', `${index} shows a way to ${name} that is too long to read`)
            known = part.known
          }
        }
        return memory === undefined
          ? await ask()
          : await memory.share(index, { signal, patience: left * PATIENCE }, ask)
      })
    })
  const askSource = async (source: NameSource, at: number): Promise<Outcome[]> => {
    const { index = `source ${at + 1}` } = source
    if (source.find === undefined) return await askIndex(source, { index })
    // Discovery takes no slot: while one source looks for its indexes, others are asked.
    const found: NameSource[] = []
    const failed = await withDeadline(timeout, { index, cancel }, async (bounds) => {
      const finding = listFrom(index, async () => (await source.find?.(bounds)) ?? [])
      found.push(...(await unlessAborted(finding, bounds.signal)))
      return []
    })
    const outcomes = [...failed]
    const atOnce = maxIndexesOf(source)
    const candidates = found.slice(0, MAX_INDEXES)
    const bytes = Math.floor(maxBytes * Math.min(1, atOnce / Math.max(1, candidates.length)))
    let asked = 0
    while (asked < candidates.length && !outcomes.some(isChecked) && monotonic() < end) {
      // Slow ones leave time for those asked after them.
      const time = (end - monotonic()) / Math.ceil((candidates.length - asked) / atOnce)
      const next = candidates.slice(asked, asked + atOnce)
      asked += next.length
      const replies = next.map((each) => askIndex(each, { index: each.index ?? index, time, bytes }))
      outcomes.push(...(await Promise.all(replies)).flat())
    }
    notAsked += found.length - asked
    return outcomes
  }
  const outcomes = (await Promise.all(sources.map(askSource))).flat()
  return { outcomes, notAsked }
}

function maxIndexesOf({ maxIndexes = 1 }: NameSource): number {
  return Math.min(MAX_INDEXES, Math.max(1, Math.floor(maxIndexes) || 1))
}

/** The list that a source answers with. @throws SourceError for any other answer. */
async function listFrom<Item>(index: string, ask: () => Promise<Item[]>): Promise<Item[]> {
  let answer: unknown
  try {
    answer = await ask()
  } catch (cause) {
    if (cause instanceof SourceError) throw cause
    throw new SourceError('BAD_ANSWER', `${index} failed: ${messageOf(cause)}`, { cause })
  }
  if (Array.isArray(answer)) return answer
  throw new SourceError('BAD_ANSWER', `${index} did not answer with a list of replies`)
}

/** Reports an index as failed if it gives no answer in time, or a bad one. */
async function withDeadline(
  milliseconds: number,
  { index, cancel }: { index: string; cancel: AbortSignal | undefined },
  work: (bounds: AskBounds & { timeout: number; signal: AbortSignal }) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const late = (): Error =>
    new SourceError('TIMEOUT', `${index} took longer than ${Math.round(milliseconds)} ms`)
  try {
    return await withTimeLimit({ milliseconds, late, signal: cancel }, async (signal) => {
      signal.throwIfAborted()
      return await work({ timeout: Math.max(0, milliseconds), signal })
    })
  } catch (error) {
    cancel?.throwIfAborted()
    if (error instanceof SourceError) return [failedReport(index, error)]
    throw error
  }
}

function failedReport(index: string, error: SourceError): IndexReport {
  return { index, verdict: 'failed', message: error.message, error }
}

async function checkReply(
  reply: IndexReply,
  options: ResolveOptions & {
    memory: NameMemory | undefined
    earlier: KnownName | undefined
    signal: AbortSignal
  },
): Promise<Outcome | CheckedPartReply> {
  const { index } = reply
  const { memory, earlier, signal } = options
  if (reply.kind === 'not-claimed')
    return { index, verdict: 'denies', message: 'it says that the name is not claimed' }
  const { workerUrl, workers = workerUrl !== undefined } = options
  try {
    if (reply.kind === 'failed') return failedReport(index, reply.error)
    const check = { ...options, evidence: reply.evidence }
    const checked = await (workers ? checkInWorker(check, workerUrl) : checkEvidence(check))
    if (memory !== undefined && checked.known !== undefined)
      await unlessAborted(memory.keep(checked.known, earlier), signal)
    if (checked.history === undefined) return { index, known: checked.known }
    const { history, isOfTip } = checked
    return { index, history, spent: isOfTip ? reply.spent : undefined }
  } catch (error) {
    const message = messageOf(error)
    if (error instanceof ProofError) return { index, verdict: 'refuted', message, error }
    // An index can make a chain tracker fail with an invented height; that says nothing about the other indexes.
    if (error instanceof HeadersError) return { index, verdict: 'unchecked', message, error }
    if (error instanceof SourceError) return failedReport(index, error)
    if (error instanceof CheckWorkerError) throw error
    // Malformed evidence, which our own sources never give.
    return failedReport(
      index,
      new SourceError('BAD_ANSWER', `${index} gave malformed evidence: ${message}`, { cause: error }),
    )
  }
}
