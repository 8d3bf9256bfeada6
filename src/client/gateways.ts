import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { FetchBudget, shownCode, withTimeLimit } from './bounded-fetch.js'
import { HeadersError, ProofError, SourceError } from './errors.js'
import {
  type GatewayReport,
  type VerificationStep,
  VerifiedFetchError,
  type VerifiedFetchErrorCode,
} from './verified-error.js'

/** A gateway that is asked for proofs. Its answers are not trusted. */
export interface Gateway {
  /** Without a slash at the end. */
  url: string
  gatewayPrefix: string
  namesPrefix: string
}

type Share = ReturnType<FetchBudget['share']>

/** A question to gateways: a path below one of their prefixes, and the check of an answer. */
export interface ProofQuestion<Proven> {
  step: VerificationStep
  path: (gateway: Gateway) => string
  /**
   * @param signal Ends the check when the gateway's share of the time is over.
   * @throws ProofError; HeadersError; the reason of the signal.
   */
  check: (proof: Uint8Array, signal: AbortSignal) => Promise<Proven>
}

export type Answered<Proven> =
  | { kind: 'proven'; gateway: string; value: Proven }
  | { kind: Failure; gateway: string; error: Error }

/**
 * Failures, the most informative first. An invalid proof does not affect the other answers: beside an honest denial, the result
 * is a denial.
 */
const FAILURES = ['no headers', 'absent', 'blocked', 'refuted', 'failed'] as const
type Failure = (typeof FAILURES)[number]

const CODES: Record<Failure, VerifiedFetchErrorCode> = {
  refuted: 'NOT_PROVEN',
  'no headers': 'NO_HEADERS',
  blocked: 'BLOCKED',
  absent: 'NOT_FOUND',
  failed: 'NO_ANSWER',
}

/** Asks gateways for proofs, and checks each before it counts. */
export class Gateways {
  private readonly past = new GatewayHistory()

  constructor(
    readonly all: readonly Gateway[],
    private readonly options: {
      order: 'in order' | 'in parallel'
      fetch?: typeof globalThis.fetch
    },
  ) {}

  /**
   * The first valid answer, from the gateways in their order, or from all at once.
   *
   * @throws VerifiedFetchError with what each did; the reason of the signal.
   */
  async first<Proven>(question: ProofQuestion<Proven>, limits: FetchBudget): Promise<Proven> {
    const { all } = this
    const failed: Exclude<Answered<Proven>, { kind: 'proven' }>[] = []
    if (this.options.order === 'in order') {
      for (const [index, gateway] of this.past.bestFirst(all).entries()) {
        // A slow or endless gateway leaves the others their share.
        const answer = await this.ask(gateway, question, { limits, share: limits.share(all.length - index) })
        if (answer.kind === 'proven') return answer.value
        failed.push(answer)
      }
      throw unproven(question.step, failed)
    }
    const others = new AbortController()
    try {
      return await Promise.any(
        all.map(async (gateway) => {
          const answer = await this.ask(gateway, question, {
            ...{ limits, share: inParallel(limits, all), others: others.signal },
          })
          if (answer.kind === 'proven') return answer.value
          failed.push(answer)
          throw answer.error
        }),
      )
    } catch {
      limits.signal?.throwIfAborted()
      throw unproven(question.step, failed)
    } finally {
      others.abort()
    }
  }

  /**
   * The answers of all gateways, asked at once, in their order. They get half of the time, so that one that does not answer
   * leaves the rest for later questions.
   *
   * @throws the reason of the signal.
   */
  async every<Proven>(question: ProofQuestion<Proven>, limits: FetchBudget): Promise<Answered<Proven>[]> {
    const { all } = this
    const share = { ...inParallel(limits, all), timeout: limits.share(2).timeout }
    return await Promise.all(all.map((gateway) => this.ask(gateway, question, { limits, share })))
  }

  private async ask<Proven>(
    gateway: Gateway,
    question: ProofQuestion<Proven>,
    { limits, share, others }: Asking,
  ): Promise<Answered<Proven>> {
    const { timeout: milliseconds } = share
    const late = (): Error => new SourceError('TIMEOUT', `${gateway.url} took longer than ${milliseconds} ms`)
    const cancel = AbortSignal.any([limits.signal, others].filter((each) => each !== undefined))
    const { fetch } = this.options
    const began = monotonic()
    return await withTimeLimit({ milliseconds, late, signal: cancel }, async (signal) => {
      const budget = new FetchBudget({ ...share, signal, ...(fetch && { fetch }) })
      let answer = await attempt(gateway, question, { budget, limits, signal })
      // A cached merkle path may lead to a block that a reorganisation has replaced.
      if (answer.kind === 'refuted' && (answer.error as ProofError).code === 'BAD_PATH')
        answer = await attempt(gateway, question, { budget, limits, signal, cache: 'reload' })
      limits.signal?.throwIfAborted()
      const isProven = answer.kind === 'proven'
      if (isProven || COUNTED.includes(answer.kind))
        this.past.add(gateway, { isProven, took: monotonic() - began })
      return answer
    })
  }
}

async function attempt<Proven>(
  gateway: Gateway,
  question: ProofQuestion<Proven>,
  { budget, limits, signal, cache }: Attempt,
): Promise<Answered<Proven>> {
  const url = gateway.url + question.path(gateway)
  const failed = (kind: Failure, error: Error): Answered<Proven> => ({ kind, gateway: gateway.url, error })
  try {
    const init: RequestInit & { cache?: 'reload' } = {
      headers: { Accept: 'application/octet-stream' },
      ...(cache && { cache }),
    }
    const answer = await budget.fetch(url, init)
    const { status, body } = answer
    limits.take(body.length)
    if (status === 404 || status === 451) {
      const kind = status === 404 ? 'absent' : 'blocked'
      return failed(kind, new SourceError('NO_PROOF', `${url} answers ${status}${shownCode(answer)}`))
    }
    if (status !== 200)
      return failed('failed', new SourceError('BAD_ANSWER', `${url} answers ${status}${shownCode(answer)}`))
    return { kind: 'proven', gateway: gateway.url, value: await question.check(body, signal) }
  } catch (error) {
    if (error instanceof ProofError) return failed('refuted', error)
    if (error instanceof HeadersError) return failed('no headers', error)
    if (error instanceof SourceError || error instanceof VerifiedFetchError) return failed('failed', error)
    if (signal.aborted) return failed('failed', new SourceError('UNREACHABLE', messageOf(signal.reason)))
    throw error
  }
}

interface Asking {
  limits: FetchBudget
  share: Share
  /** Aborted once another gateway has answered. */
  others?: AbortSignal
}

/** One request to a gateway, and the check of its answer. */
interface Attempt {
  /** The limits on the gateway, for all attempts. */
  budget: FetchBudget
  limits: FetchBudget
  signal: AbortSignal
  cache?: 'reload'
}

/** Failures that count against a gateway. */
const COUNTED: readonly Answered<unknown>['kind'][] = ['failed', 'refuted']
/** How long the record of a gateway counts, in milliseconds. */
const MEMORY = 60_000
/**
 * Gateways that answer in less than this time, in milliseconds, are equally good, and so are those that were not asked lately.
 */
const FAST = 500
/** The time is averaged over about this many answers. */
const AVERAGED = 8

/**
 * The recent record of gateways: the time that each took for a valid answer, failures included. A page may have a hundred files,
 * each of which would wait for a gateway that fails or is slow.
 */
class GatewayHistory {
  private readonly past = new WeakMap<Gateway, { took: number; proven: number; until: number }>()

  add(gateway: Gateway, { isProven, took }: { isProven: boolean; took: number }): void {
    const now = monotonic()
    const known = this.past.get(gateway)
    const before = known !== undefined && known.until > now ? known : { took: 0, proven: 0 }
    const kept = 1 - 1 / AVERAGED
    this.past.set(gateway, {
      took: before.took * kept + took,
      proven: before.proven * kept + Number(isProven),
      until: now + MEMORY,
    })
  }

  /** In their order, but slower ones after faster ones by powers of two, and those that only failed last. */
  bestFirst(all: readonly Gateway[]): Gateway[] {
    return all
      .map((gateway) => ({ gateway, level: this.level(gateway) }))
      .sort((one, other) => (one.level === other.level ? 0 : one.level - other.level))
      .map(({ gateway }) => gateway)
  }

  private level(gateway: Gateway): number {
    const known = this.past.get(gateway)
    if (known === undefined || known.until <= monotonic()) return 0
    if (known.proven === 0) return Number.POSITIVE_INFINITY
    return Math.max(0, Math.ceil(Math.log2(known.took / known.proven / FAST)))
  }
}

/** Each gets the whole time, and an equal share of the bytes. */
function inParallel(limits: FetchBudget, gateways: readonly Gateway[]): Share {
  return { ...limits.share(Math.max(1, gateways.length)), timeout: limits.share(1).timeout }
}

/** The error for a step that no gateway has proven, by the most informative failure. */
export function unproven(
  step: VerificationStep,
  failed: readonly { kind: Failure; gateway: string; error: Error }[],
): VerifiedFetchError {
  const reports = failed.map(
    ({ kind, gateway, error }): GatewayReport => ({
      ...{ gateway, message: error.message, error },
      ...(kind === 'absent' && { isAbsent: true }),
    }),
  )
  const [kind = 'failed'] = FAILURES.filter((each) => failed.some((answer) => answer.kind === each))
  const worst = failed.find((answer) => answer.kind === kind)
  const reason = worst === undefined ? 'no gateway was asked' : `${worst.gateway}: ${worst.error.message}`
  const at = kind === 'no headers' ? 'headers' : step
  return new VerifiedFetchError(CODES[kind], `no gateway proves the ${step}: ${reason}`, {
    ...{ step: at, reports },
    cause: worst?.error,
  })
}
