import { isName } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { compare, provenHeights, unbeaten, withHeights } from './agreement.js'
import { HttpNameSource } from './http-source.js'
import { type Held, isHeld, judgeSources } from './judge-sources.js'
import type { VerifiedHistory } from './name-history.js'
import type { NameTrust, VerifiedName } from './name-proof.js'
import type { NameSource } from './name-source.js'
import type { HeadersError, ProofError } from './proof-error.js'
import type { VerifiedTip } from './provenance.js'
import { ResolutionError } from './resolution-error.js'
import type { SourceError } from './source-error.js'

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
  const judged = await judgeSources(sources, options)

  const heights = provenHeights(judged.filter(isHeld).map(({ shown }) => shown))
  const known = judged.map((each) =>
    isHeld(each) ? { ...each, shown: withHeights(each.shown, heights) } : each,
  )
  const held = known.filter(isHeld)
  const leading = unbeaten(held.map(({ shown }) => shown))
  const reports = known.map((each) => (isHeld(each) ? statusOf(each, leading) : each))
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
function statusOf({ index, shown }: Held, leading: readonly VerifiedHistory[]): IndexReport {
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

function spendStatus(held: readonly Held[], best: VerifiedHistory): SpendStatus {
  const said = held
    .filter(({ shown }) => compare(shown, best) === 'same')
    .flatMap(({ spent }) => (spent === undefined ? [] : [spent]))
  if (said.length === 0) return 'unknown'
  if (said.every((spent) => spent)) return 'spent'
  return said.some((spent) => spent) ? 'disputed' : 'unspent'
}
