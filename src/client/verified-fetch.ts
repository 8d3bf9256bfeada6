import { percentDecoded } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { readInscription } from '../../backend/src/protocol/inscription.js'
import { isName, mineNodeIn } from '../../backend/src/protocol/mine-node.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import {
  type ContentReference,
  formatOutpoint,
  isSameOutpoint,
  type Outpoint,
  PointerError,
  parseContentReference,
} from '../../backend/src/protocol/outpoint.js'
import {
  baseOf,
  checkPatches,
  PATCH_TYPE,
  PatchError,
  patched,
  patchPart,
} from '../../backend/src/protocol/patch.js'
import { deploymentOf, PROFILES, type ProfileName } from '../../backend/src/protocol/profile.js'
import { quoted, withQuery } from '../../backend/src/protocol/redirects.js'
import type { TransactionView } from '../../backend/src/protocol/transaction.js'
import { heeding, requireArgument, requireDeployment, requireHeaders, serverUrl } from './arguments.js'
import { DEFAULT_TIMEOUT, FetchBudget } from './bounded-fetch.js'
import { DEFAULT_MAX_BYTES } from './bundle.js'
import { HeadersError, ProofError } from './errors.js'
import { type Answered, type Gateway, Gateways, type ProofQuestion, unproven } from './gateways.js'
import { HttpNameSource } from './name-source.js'
import { ResolutionError, type ResolvedName, type ResolveOptions, resolveName } from './resolve.js'
import { MemorySegmentStore } from './segment-store.js'
import { Segments } from './segments.js'
import { ThreadShare } from './thread-share.js'
import { copied, OutputCache, RecentTips } from './verified-cache.js'
import { type VerificationStep, VerifiedFetchError } from './verified-error.js'
import { findFile, type VerifiedFile } from './verified-path.js'
import {
  fileResponse,
  missingResponse,
  movedResponse,
  type Question,
  type StreamEnd,
  streamResponse,
  type TipAgreement,
  type Verification,
  type VerifiedResponse,
} from './verified-response.js'
import { NAME_VOUT, verifyNameProof } from './verify-name.js'
import {
  stepOf,
  TIP_SEQUENCE,
  type VerifiedOrdinal,
  type VerifiedOutput,
  verifyNextOutput,
  verifyOrdinal,
  verifyOutput,
} from './verify-output.js'
import type { Trust } from './verify-transactions.js'

/** How many of the gateways have to show the same tip. */
export type TipPolicy = 'any' | 'majority' | 'all'

/** A gateway: its URL, or with other path prefixes than `/svc/gateway` and `/svc/names`. */
export type GatewayAddress = string | URL | (Pick<Gateway, 'url'> & Partial<Gateway>)

export interface VerifiedFetchOptions extends Omit<Trust, 'signal'> {
  /** Where proofs are fetched from; not trusted. */
  gateways: readonly GatewayAddress[]
  /** The profile whose tree and content types are meant; `mainnet` by default. */
  profile?: ProfileName
  /** The tree of names; that of the profile by default. */
  deployment?: Deployment
  /** Whether gateways are asked for proofs one after another until one is valid, or all at once; `in order` by default. */
  order?: 'in order' | 'in parallel'
  /** How many gateways have to agree on a tip; `any` by default, which takes the furthest that one of them proves. */
  tipPolicy?: TipPolicy
  /** How long the tip of a name or an ordinal is used before gateways are asked again, in milliseconds; 10,000 by default. */
  tipMaxAge?: number
  /** Time for one fetch, in milliseconds; 20,000 by default. A stream gets as much for each chunk. */
  timeout?: number
  /**
   * The limit on what is read from all gateways for one fetch, in bytes; 64 MiB by default. A stream gets as much for each chunk.
   */
  maxBytes?: number
  /** The limit on all directories of one path together, in bytes; 1 MiB by default. */
  maxDirectoryBytes?: number
  /** How many bytes of verified outputs are kept in memory; 16 MiB by default, and 0 for none. */
  cacheBytes?: number
  /** Replaces the platform's `fetch`. */
  fetch?: typeof globalThis.fetch
  /** Further options for resolving names, such as segments in a lasting store; by default they are in memory. */
  resolve?: Partial<ResolveOptions>
}

/** The options of `fetch` that make sense for content that cannot be changed. */
export interface VerifiedFetchInit {
  method?: 'GET' | 'HEAD'
  /** Only `Range`, `If-Range` and `If-None-Match` are used. */
  headers?: ConstructorParameters<typeof Headers>[0]
  signal?: AbortSignal | null
  /** The whole stream that starts in the output, instead of its first chunk. Ranges are ignored. */
  stream?: boolean
  /**
   * Follows paths as on the host of the name or outpoint, with its redirects and its pages for missing paths, instead of as below
   * `/content/`.
   */
  site?: boolean
}

/**
 * Fetches what a name or an outpoint shows, verified.
 *
 * @param resource `alice/path` or `<outpoint>[:seq]/path`, percent-encoded as in a URL; `?raw` for a directory as inscribed. 64
 * hex characters are a txid, even if there is a name like that.
 * @returns Status 200, 206, 304, 404 or 416; for a site also those of its rules, with a `Location` that is not followed. 404 only
 * if verified directories lack the path: if gateways merely do not have it, that is an error.
 * @throws VerifiedFetchError with the step that failed; the reason of the signal.
 */
export type VerifiedFetch = (resource: string, init?: VerifiedFetchInit) => Promise<VerifiedResponse>

/** As {@link createVerifiedFetch}, for a single use: remembers nothing. */
export async function verifiedFetch(
  resource: string,
  options: VerifiedFetchOptions & VerifiedFetchInit,
): Promise<VerifiedResponse> {
  const { method, headers, signal, stream, site, ...rest } = options
  return await createVerifiedFetch(rest)(resource, { method, headers, signal, stream, site })
}

/** Makes a `fetch` whose bytes are proven, whatever the gateways do. @throws TypeError for a wrong argument. */
export function createVerifiedFetch(options: VerifiedFetchOptions): VerifiedFetch {
  const fetcher = new VerifiedFetcher(options)
  return (resource, init) => fetcher.fetch(resource, init)
}

const DEFAULT_TIP_MAX_AGE = 10_000
/** The share of a fetch's time in which gateways may say where a name is. */
const TIP_SHARE = 0.5
const DEFAULT_CACHE_BYTES = 16 * 1024 * 1024
const DEFAULT_DIRECTORY_BYTES = 1024 * 1024
/** How many verified parts of the tree are kept in memory, each of some kilobytes. */
const MAX_SEGMENTS = 2000

const CACHE = {
  immutable: 'public, max-age=31536000, immutable',
  unproven: 'public, max-age=60',
  revalidate: 'no-cache',
}

/** A requested resource: a name or a reference, the path after it, and whether a directory comes as inscribed. */
interface Resource {
  root: string | ContentReference
  segments: string[]
  raw: boolean
  /** Includes the question mark; empty for none. */
  query: string
}

/** The start of a path. */
interface Root {
  file: VerifiedFile
  isProven: boolean
  cache: string
  verification: Pick<Verification, 'name' | 'ordinal' | 'tip'>
}

class VerifiedFetcher {
  private readonly gateways: Gateways
  private readonly deployment: Deployment | undefined
  private readonly directoryTypes: ReadonlySet<string>
  private readonly chunkTypes: ReadonlySet<string>
  private readonly outputs: OutputCache
  private readonly segments = new Segments({ store: new MemorySegmentStore({ maxSegments: MAX_SEGMENTS }) })
  private readonly tips: RecentTips
  private readonly trust: Trust & { maxBytes: number }

  constructor(private readonly options: VerifiedFetchOptions) {
    const { profile: name = 'mainnet', gateways, order = 'in order', fetch, chainTracker } = options
    const profile = PROFILES[name]
    requireArgument(profile !== undefined, 'profile', `one of ${Object.keys(PROFILES).join(', ')}`)
    requireHeaders(chainTracker)
    requireArgument(Array.isArray(gateways) && gateways.length > 0, 'gateways', 'a list of at least one')
    if (options.deployment !== undefined) requireDeployment(options.deployment)
    this.gateways = new Gateways(gateways.map(gatewayOf), { order, ...(fetch && { fetch }) })
    this.deployment = options.deployment ?? deploymentOf(profile)
    this.directoryTypes = new Set(profile.directoryContentTypes)
    this.chunkTypes = new Set(profile.streamChunkContentTypes)
    const { cacheBytes = DEFAULT_CACHE_BYTES, tipMaxAge = DEFAULT_TIP_MAX_AGE } = options
    this.outputs = new OutputCache(cacheBytes, tipMaxAge)
    this.tips = new RecentTips(tipMaxAge)
    const { requireProofs, maxScriptWork, scriptTimeout, maxBytes = DEFAULT_MAX_BYTES } = options
    this.trust = { chainTracker, requireProofs, maxScriptWork, scriptTimeout, maxBytes }
  }

  async fetch(resource: string, init: VerifiedFetchInit = {}): Promise<VerifiedResponse> {
    const signal = init.signal ?? undefined
    signal?.throwIfAborted()
    requireArgument(typeof resource === 'string', 'resource', 'a string')
    const asked = resourceOf(resource)
    return await heeding(signal, () => this.answer(asked, init, this.limits(signal)))
  }

  private async answer(
    { root: asked, segments, raw, query }: Resource,
    init: VerifiedFetchInit,
    limits: FetchBudget,
  ): Promise<VerifiedResponse> {
    const question: Question = { method: init.method ?? 'GET', headers: new Headers(init.headers) }
    const isPath = segments.length > 1 || (segments[0] ?? '') !== ''
    const step = isPath ? 'directory' : 'content'
    const root =
      typeof asked === 'string'
        ? await this.nameRoot(asked, step, limits)
        : await this.referenceRoot(asked, step, limits)
    const isSite = init.site === true
    // Streams come as inscribed, too.
    const isInscribed = raw || init.stream === true
    const shown = async (file: VerifiedFile, isLast: boolean): Promise<VerifiedFile> =>
      isInscribed && isLast ? file : await this.shown(file, limits)
    const rootFile = await shown(root.file, !isPath)
    const found = await findFile({
      ...{ root: rootFile, segments, raw, isSite, directoryTypes: this.directoryTypes },
      maxDirectoryBytes: this.options.maxDirectoryBytes ?? DEFAULT_DIRECTORY_BYTES,
      load: async (pointer, isLast) =>
        await shown(await this.file(pointer, isLast ? 'content' : 'directory', limits), isLast),
    })
    const isFile = found.kind === 'file'
    const file = isFile ? found.file : rootFile
    const path = [...found.directories, ...(isFile ? [file] : [])]
    const bases = path.flatMap((each) => each.bases ?? [])
    const isProven = root.isProven && [...path, ...bases].every(({ height }) => height !== undefined)
    const verification: Verification = {
      verified: isProven ? 'headers' : 'unproven',
      outpoint: file.outpoint,
      path: path.map(({ outpoint, height }) => stepOf(outpoint, height)),
      ...(bases.length > 0 && { bases }),
      ...root.verification,
    }
    const { cache } = root
    if (found.kind === 'missing') return missingResponse(found.reason, verification)
    if (found.kind === 'moved')
      return movedResponse({ ...found, location: withQuery(found.location, query), cache }, verification)
    if (init.stream === true) return this.stream(file, { question, verification, signal: limits.signal })
    const { maxBytes } = this.trust
    const { status } = found
    return await fileResponse(file.content, { question, verification, cache, isSite, status, maxBytes })
  }

  private limits(signal: AbortSignal | undefined): FetchBudget {
    return new FetchBudget({ timeout: this.options.timeout, maxBytes: this.trust.maxBytes, signal })
  }

  private async file(
    pointer: ContentReference['pointer'],
    step: VerificationStep,
    limits: FetchBudget,
  ): Promise<VerifiedFile> {
    const key = pointer.kind === 'outpoint' ? formatOutpoint(pointer.outpoint) : pointer.txid
    const known = this.outputs.get(key)
    const output =
      known ??
      (await this.gateways.first(
        {
          step,
          path: ({ gatewayPrefix }) => `${gatewayPrefix}/proof/${key}`,
          check: (proof, signal) => verifyOutput({ ...this.trust, signal, proof, pointer }),
        },
        limits,
      ))
    if (known === undefined) this.outputs.add(key, output)
    return withContent(output, step)
  }

  /** The content of an output; for a patch, its result, made of verified outputs. */
  private async shown(file: VerifiedFile, limits: FetchBudget): Promise<VerifiedFile> {
    if (file.content.contentType !== PATCH_TYPE) return file
    const chain = [file]
    try {
      for (let [at] = chain; at?.content.contentType === PATCH_TYPE; [at] = chain) {
        checkPatches(chain.length)
        const outpoint = baseOf(at.content.body)
        chain.unshift(await this.file({ kind: 'outpoint', outpoint }, 'content', limits))
      }
      const parts = chain.map(({ outpoint, content }) => patchPart(outpoint, content.body))
      const steps = patched(parts, this.trust.maxBytes)
      const thread = new ThreadShare()
      let step = steps.next()
      for (; !step.done; step = steps.next()) {
        if (!thread.isOver) continue
        await thread.yield()
        limits.signal?.throwIfAborted()
      }
      const { contentType } = chain[0]?.content ?? file.content
      return {
        ...file,
        content: { contentType, body: step.value },
        bases: chain.slice(0, -1).map(({ outpoint, height }) => stepOf(outpoint, height)),
      }
    } catch (cause) {
      if (!(cause instanceof PatchError)) throw cause
      throw new VerifiedFetchError('BAD_PATCH', cause.message, { step: 'content', cause })
    }
  }

  private async nameRoot(name: string, step: VerificationStep, limits: FetchBudget): Promise<Root> {
    const resolved = await this.tips.get(name, () => this.resolve(name), limits.signal)
    const { origin, tip, proven, reports, checkedAt } = resolved
    const agreement = {
      agreedBy: reports.filter(({ verdict }) => verdict === 'agrees').length,
      of: reports.length,
      at: checkedAt,
    }
    this.requireAgreement(agreement, { what: `where ${name} is`, step: 'tip' })
    return {
      file: await this.shownAt(resolved, step, limits),
      isProven: proven,
      cache: CACHE.revalidate,
      verification: {
        name,
        ordinal: { origin: origin.origin, sequence: tip.sequence, outpoint: tip.tip },
        tip: agreement,
      },
    }
  }

  /** The latest content of a name's ordinal up to its tip: in the tip's own script, or else in that of an earlier step. */
  private async shownAt(
    { origin, tip: { tip, sequence, path, lockingScript } }: ResolvedName,
    step: VerificationStep,
    limits: FetchBudget,
  ): Promise<VerifiedFile> {
    const { content } = readInscription(lockingScript)
    const height = sequence === 0 ? origin.height : path.at(-1)?.height
    if (content !== undefined)
      return { outpoint: tip, satoshis: 1, ...(height !== undefined && { height }), content }
    const key = `${formatOutpoint(tip)}:${sequence}`
    const known = this.outputs.get(key)
    if (known !== undefined) return withContent(known, step)
    const ordinal = await this.gateways.first(
      {
        step: 'provenance',
        path: ({ gatewayPrefix }) => `${gatewayPrefix}/proof/${key}`,
        check: (proof, signal) =>
          verifyOrdinal({
            ...this.trust,
            signal,
            ...{ proof, asked: tip, sequence },
            isMintOf: async (outpoint) => isSameOutpoint(outpoint, origin.origin),
          }),
      },
      limits,
    )
    this.outputs.add(key, ordinal.content)
    return withContent(ordinal.content, step)
  }

  private async resolve(name: string): Promise<ResolvedName> {
    const { deployment, options } = this
    // The profile of local networks has no tree.
    requireDeployment(deployment)
    const { timeout = DEFAULT_TIMEOUT, fetch } = options
    try {
      return await resolveName({
        ...{ ...this.trust, deployment, name },
        // All gateways are waited for, and one that does not answer must leave time for the content.
        timeout: timeout * TIP_SHARE,
        maxTotalBytes: this.trust.maxBytes,
        segments: this.segments,
        sources: this.gateways.all.map(
          (gateway) => new HttpNameSource({ ...gateway, ...(fetch && { fetch }) }),
        ),
        ...options.resolve,
      })
    } catch (error) {
      throw resolutionError(name, error)
    }
  }

  private async referenceRoot(
    { pointer, sequence }: ContentReference,
    step: VerificationStep,
    limits: FetchBudget,
  ): Promise<Root> {
    if (sequence === undefined) {
      const file = await this.file(pointer, step, limits)
      return { file, isProven: file.height !== undefined, cache: CACHE.immutable, verification: {} }
    }
    const asked =
      pointer.kind === 'outpoint' ? pointer.outpoint : (await this.file(pointer, step, limits)).outpoint
    const shown = formatOutpoint(asked)
    const { ordinal, tip } =
      sequence === TIP_SEQUENCE
        ? await this.tips.get(shown, () => this.ordinalTip(asked), limits.signal)
        : { ordinal: await this.gateways.first(this.ordinalAt(asked, sequence, limits), limits) }
    if (tip !== undefined) this.requireAgreement(tip, { what: `where ${shown} is`, step: 'tip' })
    const { origin, sequence: reached, output, content, proven } = ordinal
    const fixed = proven ? CACHE.immutable : CACHE.unproven
    return {
      file: withContent(content, step),
      isProven: proven,
      cache: tip === undefined ? fixed : CACHE.revalidate,
      verification: {
        ordinal: { origin, sequence: reached, outpoint: output.outpoint },
        ...(tip && { tip }),
      },
    }
  }

  private ordinalAt(asked: Outpoint, sequence: number, limits: FetchBudget): ProofQuestion<VerifiedOrdinal> {
    return {
      step: 'provenance',
      path: ({ gatewayPrefix }) => `${gatewayPrefix}/proof/${formatOutpoint(asked)}:${sequence}`,
      check: (proof, signal) =>
        verifyOrdinal({
          ...this.trust,
          signal,
          ...{ proof, asked, sequence },
          isMintOf: (outpoint, transaction) => this.isMintOf(outpoint, transaction, limits),
        }),
    }
  }

  private async ordinalTip(
    asked: Outpoint,
  ): Promise<{ ordinal: VerifiedOrdinal; tip: TipAgreement; checkedAt: number }> {
    const limits = this.limits(undefined)
    const checkedAt = Date.now()
    const answers = await this.gateways.every(this.ordinalAt(asked, TIP_SEQUENCE, limits), limits)
    const ordinal = furthest(answers)
    const tip = agreementOn(ordinal.output.outpoint, answers, checkedAt)
    return { ordinal: { ...ordinal, content: copied(ordinal.content) }, tip, checkedAt }
  }

  /**
   * Whether a genuine mint created an output. An output that looks like one of a mint in the tree, but is not shown to be one, is
   * refused: its origin depends on whether a lineage starts there.
   */
  private async isMintOf(
    outpoint: Outpoint,
    { outputs }: TransactionView,
    limits: FetchBudget,
  ): Promise<boolean> {
    const { deployment } = this
    const node = outputs[1]
    if (deployment === undefined || outpoint.vout !== NAME_VOUT || node === undefined) return false
    const name = domainIn(node.lockingScript, deployment)
    if (name === undefined) return false
    return await this.gateways.first(
      {
        step: 'provenance',
        path: ({ namesPrefix }) => `${namesPrefix}/proof/${name}`,
        check: async (proof, signal) => {
          const { trust } = this
          const { origin, proven } = await verifyNameProof({ ...trust, signal, proof, name, deployment })
          if (isSameOutpoint(origin, outpoint)) return true
          // A mint in no block does not rule out another mint of the same name.
          if (!proven && trust.chainTracker !== 'scripts only')
            throw new ProofError(
              'UNPROVEN',
              `another mint of ${name} is in no block, so that ${formatOutpoint(outpoint)} may be genuine`,
            )
          return false
        },
      },
      limits,
    )
  }

  private stream(
    first: VerifiedFile,
    {
      question,
      verification,
      signal,
    }: { question: Question; verification: Verification; signal?: AbortSignal },
  ): VerifiedResponse {
    if (question.method === 'HEAD')
      return streamResponse(first.content.contentType, { question, verification, chunks: noChunks() })
    let [ended, failed] = [(_: StreamEnd): void => {}, (_: unknown): void => {}]
    const end = new Promise<StreamEnd>((resolve, reject) => {
      ;[ended, failed] = [resolve, reject]
    })
    // Readers of the body get the error there.
    end.catch(() => {})
    const next = (from: VerifiedFile) => this.nextChunk(from, signal)
    let { verified } = verification
    async function* chunks(): AsyncGenerator<Uint8Array> {
      try {
        yield first.content.body
        for (let at: VerifiedFile = first; ; ) {
          const chunk = await next(at)
          if ('agreedBy' in chunk) return ended({ ...chunk, verified })
          if (chunk.height === undefined) verified = 'unproven'
          yield chunk.content.body
          at = chunk
        }
      } catch (error) {
        failed(error)
        throw error
      }
    }
    return streamResponse(first.content.contentType, {
      ...{ question, chunks: chunks() },
      onCancel: () => failed(new DOMException('the stream was not read to its end', 'AbortError')),
      verification: { ...verification, end },
    })
  }

  /** The chunk after an output, or how many gateways agree that there is none. */
  private async nextChunk(
    { outpoint: from, satoshis }: VerifiedFile,
    signal: AbortSignal | undefined,
  ): Promise<VerifiedFile | TipAgreement> {
    const at = Date.now()
    const of = this.gateways.all.length
    // Only coins of 1 satoshi are ordinals, which have further chunks: about any other coin, all would have to agree.
    if (satoshis !== 1) return { agreedBy: of, of, at }
    try {
      const output = await this.gateways.first(
        {
          step: 'stream',
          path: ({ gatewayPrefix }) => `${gatewayPrefix}/proof/${formatOutpoint(from)}?next`,
          check: (proof, signal) => verifyNextOutput({ ...this.trust, signal, proof, from }),
        },
        this.limits(signal),
      )
      const { content } = output
      if (content !== undefined && this.chunkTypes.has(content.contentType)) return { ...output, content }
      // This is proven, so all would have to agree.
      return { agreedBy: of, of, at }
    } catch (error) {
      const isEnd = error instanceof VerifiedFetchError && error.code === 'NOT_FOUND'
      if (!isEnd) throw error
      const agreement = { agreedBy: error.reports.filter(({ isAbsent }) => isAbsent).length, of, at }
      this.requireAgreement(agreement, { what: 'where the stream ends', step: 'stream' })
      return agreement
    }
  }

  private requireAgreement(
    { agreedBy, of }: TipAgreement,
    { what, step }: { what: string; step: VerificationStep },
  ): void {
    const { tipPolicy = 'any' } = this.options
    const isEnough = { any: agreedBy > 0, majority: agreedBy * 2 > of, all: agreedBy === of }[tipPolicy]
    if (isEnough) return
    const message = `${agreedBy} of ${of} gateways agree on ${what}, but the policy is ${tipPolicy}`
    throw new VerifiedFetchError('NO_AGREEMENT', message, { step })
  }
}

function agreementOn(tip: Outpoint, answers: readonly Answered<VerifiedOrdinal>[], at: number): TipAgreement {
  const agreeing = answers.filter(
    (answer) => answer.kind === 'proven' && isSameOutpoint(answer.value.output.outpoint, tip),
  )
  return { agreedBy: agreeing.length, of: answers.length, at }
}

/** The ordinal that is shown furthest along; where two paths exclude each other, the one that is in a block there. */
function furthest(answers: readonly Answered<VerifiedOrdinal>[]): VerifiedOrdinal {
  const shown = answers.flatMap((answer) => (answer.kind === 'proven' ? [answer.value] : []))
  const [first, ...others] = shown
  if (first === undefined)
    throw unproven(
      'provenance',
      answers.filter((answer) => answer.kind !== 'proven'),
    )
  return others.reduce(further, first)
}

function further(one: VerifiedOrdinal, other: VerifiedOrdinal): VerifiedOrdinal {
  for (const [at, step] of one.path.entries()) {
    const counterpart = other.path[at]
    if (counterpart === undefined) return one
    if (isSameOutpoint(step.outpoint, counterpart.outpoint)) continue
    const [isMined, isOtherMined] = [step.height !== undefined, counterpart.height !== undefined]
    if (isMined !== isOtherMined) return isMined ? one : other
    const places = [step, counterpart].map(({ outpoint }) => formatOutpoint(outpoint)).join(' and ')
    throw new VerifiedFetchError('NO_AGREEMENT', `gateways show conflicting steps: ${places}`, {
      step: 'tip',
    })
  }
  return other
}

/** The error for a name that could not be resolved, as one of our steps. */
function resolutionError(name: string, error: unknown): unknown {
  if (error instanceof HeadersError)
    return new VerifiedFetchError('NO_HEADERS', error.message, { step: 'headers', cause: error })
  if (!(error instanceof ResolutionError)) return error
  const { message, code } = error
  const reports = error.reports.map((report) => ({
    gateway: report.index,
    message: 'message' in report ? report.message : 'agrees',
    ...('error' in report && { error: report.error }),
  }))
  const details = { reports, cause: error }
  if (code === 'NOT_CLAIMED')
    return new VerifiedFetchError('NOT_CLAIMED', message, { ...details, step: 'name' })
  if (code === 'DISAGREEMENT')
    return new VerifiedFetchError('NO_AGREEMENT', message, { ...details, step: 'tip' })
  const refuted = reports.find((report) => report.error instanceof ProofError)?.error as
    | ProofError
    | undefined
  if (refuted === undefined) return new VerifiedFetchError('NO_ANSWER', message, { ...details, step: 'name' })
  const isOfProvenance = refuted.data?.part === 'provenance' || refuted.code === 'OTHER_TIP'
  return new VerifiedFetchError('NOT_PROVEN', `${name} is not proven: ${messageOf(refuted)}`, {
    ...details,
    step: isOfProvenance ? 'provenance' : 'name',
  })
}

function domainIn(lockingScript: Uint8Array, { genesis }: Deployment): string | undefined {
  const node = mineNodeIn(lockingScript)
  return node?.genesis && isSameOutpoint(node.genesis, genesis) && isName(node.domain)
    ? node.domain
    : undefined
}

function withContent(output: VerifiedOutput, step: VerificationStep): VerifiedFile {
  const { content, outpoint } = output
  if (content !== undefined) return { ...output, content }
  throw new VerifiedFetchError('NOT_FOUND', `${formatOutpoint(outpoint)} has no content`, { step })
}

/** The empty body of an answer to HEAD. */
async function* noChunks(): AsyncGenerator<Uint8Array> {}

/** Reads a name or a reference, and the path after it. */
function resourceOf(resource: string): Resource {
  const [, path = '', query = ''] = /^([^?#]*)(?:\?([^#]*))?/.exec(resource) ?? []
  const [written = '', ...below] = path.split('/')
  const bad = (message: string, cause?: unknown): VerifiedFetchError =>
    new VerifiedFetchError('BAD_RESOURCE', message, { step: 'resource', cause })
  const segments = below.map((segment) => {
    const decoded = percentDecoded(segment)
    if (decoded === undefined) throw bad(`the path of ${quoted(resource)} has an invalid percent-escape`)
    return decoded
  })
  const rest = { segments, raw: new URLSearchParams(query).has('raw'), query: query && `?${query}` }
  const text = percentDecoded(written) ?? written
  try {
    return { root: parseContentReference(text), ...rest }
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    if (error.code === 'BAD_OUTPOINT' && isName(text)) return { root: text, ...rest }
    throw bad(`${quoted(text)} is neither a name nor an outpoint: ${error.message}`, error)
  }
}

function gatewayOf(address: GatewayAddress, at: number): Gateway {
  const given = typeof address === 'string' || address instanceof URL ? { url: address } : address
  const url = serverUrl(given?.url, `gateways[${at}]`)
  const { gatewayPrefix = '/svc/gateway', namesPrefix = '/svc/names' } = given as Partial<Gateway>
  return { url, gatewayPrefix, namesPrefix }
}
