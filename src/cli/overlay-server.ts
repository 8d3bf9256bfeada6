import { z } from 'zod'
import { isHostLabel, outpointLabel } from '../../backend/src/protocol/host-label.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import { fetchBounded, fetchFailure, readJson } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import {
  type Admitted,
  admittedBy,
  refusalOf,
  type Submission,
  submitRequest,
} from '../mining/server-answers.js'
import type { Destination, Submitted } from '../payments/payments.js'
import { CommandError, usageError } from './command.js'

/** Time for an answer, in milliseconds: submissions are queued. */
const PATIENCE = 50_000

/** The longest `/deployment.json` that is read, in bytes: many times the size of ours. */
const MAX_DEPLOYMENT_BYTES = 64 * 1024
/** The longest answer to a submission, in bytes, without the indexes of the admitted outputs. */
const MAX_ANSWER_BYTES = 64 * 1024
/** An index of 32 bits in JSON, with its comma. */
const MAX_INDEX_BYTES = 11
/** The longest BEEF that is read, in bytes. */
export const MAX_BEEF_BYTES = 64 * 1024 * 1024

const deployment = z.object({
  profile: z.literal(Object.keys(PROFILES)),
  network: z.string(),
  genesis: z.string().optional(),
  sites: z.object({ name: z.string(), outpoint: z.string() }).optional(),
  contentTypes: z.array(z.string()).optional(),
  advertisedAs: z.object({ identityKey: z.string(), url: z.string() }).optional(),
})
const spends = z.array(z.object({ spendTxid: z.string().nullable() }).nullable())

interface CalledSubmission extends Submission {
  /** The number of its outputs; by default, no more than fit into an answer of 64 KiB. */
  outputs?: number
  called: string
}

/**
 * The URL of a site; undefined if this server has no host for it.
 *
 * @param site.name The name of the site; without a name that can be a label of a host, it is the content of the outpoint.
 */
export type AddressOf = (site: { outpoint?: Outpoint; name?: string }) => string | undefined

/** The URL of a server without a slash at the end. @param what Describes it in errors. @throws CommandError (`usage`) */
export function serverUrl(text: string, what = 'a server'): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const refused = (why: string): CommandError =>
    usageError(`not the URL of ${what}${why}: ${JSON.stringify(text)}`)
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw refused('')
  const { username, password, search, hash, origin, pathname } = url
  if (username + password + search + hash !== '') throw refused(', as it has a user, a query or a fragment')
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

/** A server that the command line asks, and submits transactions to. */
export class OverlayServer {
  /** Without a slash at the end. */
  readonly url: string
  private described: z.output<typeof deployment> | undefined

  /** @throws CommandError (`usage`) */
  constructor(
    text: string,
    private readonly signal?: AbortSignal,
  ) {
    this.url = serverUrl(text)
  }

  /**
   * Checks, by the profile in its `/deployment.json`, that the server is on a local network: a server that follows the live
   * network and does not check proofs would accept fake transactions as real.
   *
   * @throws CommandError
   */
  async requireLocal(): Promise<void> {
    if ((await this.deployment()).profile !== PROFILES.local.name)
      throw new CommandError(
        `${this.url} follows the live network: publish to a server of a local network, which accepts fake funding`,
      )
  }

  /**
   * The addresses of sites: on hosts of their own, if the server has these and the name can be one.
   *
   * @throws CommandError
   */
  async sites(): Promise<AddressOf> {
    const { sites } = await this.deployment()
    return ({ outpoint, name }) => {
      const isNamed = name !== undefined && isHostLabel(name)
      const address = isNamed
        ? sites?.name.replace('{name}', name)
        : outpoint && sites?.outpoint.replace('{label}', outpointLabel(outpoint))
      const read = address !== undefined && URL.canParse(address) ? new URL(address) : undefined
      return read !== undefined && /^https?:$/.test(read.protocol) ? read.href : undefined
    }
  }

  /** The server's description of itself. @throws CommandError */
  async deployment(): Promise<z.output<typeof deployment>> {
    if (this.described !== undefined) return this.described
    const { body } = await this.askPatiently('/deployment.json', { maxBytes: MAX_DEPLOYMENT_BYTES })
    const described = deployment.safeParse(readJson(body))
    if (!described.success)
      throw new CommandError(`${this.url} is not a minetree server`, { exit: 'notFound' })
    this.described = described.data
    return this.described
  }

  /**
   * Submits a transaction.
   *
   * @returns The outputs that each topic admits, or that another transaction counts.
   * @throws CommandError if the server rejects it for any other reason.
   */
  async submit(
    options: CalledSubmission,
  ): Promise<{ kind: 'taken'; admitted: Admitted } | (Submitted & { kind: 'conflict' })> {
    const { outputs = 0, called, ...submission } = options
    const maxBytes = MAX_ANSWER_BYTES + outputs * MAX_INDEX_BYTES
    const { status, body } = await this.ask('/submit', { ...submitRequest(submission), maxBytes })
    const json = readJson(body)
    const refused = refusalOf(json)
    if (status === 409 && refused !== undefined)
      return { kind: 'conflict', why: `${this.url} refuses ${called}: ${refused.error}`, by: refused.txid }
    const admitted = admittedBy({ status, body: json })
    if (admitted !== undefined) return { kind: 'taken', admitted }
    throw new CommandError(
      refused === undefined
        ? `${this.url} answered ${status}, which is not a minetree answer`
        : `${this.url} refuses ${called} (${status} ${refused.code}): ${refused.error}`,
      { exit: isPassing(status) ? 'unavailable' : 'refused' },
    )
  }

  /** The server as a destination of payments. */
  destination(rest: Pick<Destination, 'chainTracker' | 'submit'>): Destination {
    return {
      ...rest,
      beefOf: (txid) => this.beefOf(txid),
      spendersOf: (outpoints) => this.spendersOf(outpoints),
    }
  }

  /** A transaction with its merkle path or its ancestors; undefined if the server does not show it. */
  async beefOf(txid: string): Promise<Uint8Array | undefined> {
    const { status, body } = await this.ask(`/svc/beef/${txid}`, { maxBytes: MAX_BEEF_BYTES })
    return status === 200 ? body : undefined
  }

  /** The transactions that spend outputs, if topics of the server hold these outputs. */
  async spendersOf(outpoints: readonly string[]): Promise<string[]> {
    const found: string[] = []
    for (let at = 0; at < outpoints.length; at += MAX_SPENDS) {
      const asked = outpoints.slice(at, at + MAX_SPENDS)
      const { body } = await this.ask('/svc/txo/spends', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(asked),
        maxBytes: MAX_ANSWER_BYTES * 2,
      })
      const said = spends.safeParse(readJson(body)).data ?? []
      found.push(...said.slice(0, asked.length).flatMap((each) => each?.spendTxid ?? []))
    }
    return found
  }

  /** As {@link ask}. @throws CommandError (`unavailable`) also for an answer that may be temporary. */
  async askPatiently(...question: Parameters<OverlayServer['ask']>): ReturnType<OverlayServer['ask']> {
    const answer = await this.ask(...question)
    if (!isPassing(answer.status)) return answer
    throw new CommandError(`${this.url}${question[0]} answers HTTP ${answer.status}: try again later`, {
      exit: 'unavailable',
    })
  }

  /**
   * Makes a request, and reads a limited part of the answer.
   *
   * @param init.maxBytes The longest answer that is read.
   * @throws CommandError (`unavailable`) without an answer.
   */
  async ask(
    path: string,
    {
      maxBytes,
      ...init
    }: {
      method?: 'POST'
      headers?: Record<string, string>
      body?: Uint8Array | string
      maxBytes: number
    },
  ): Promise<{ status: number; body: Uint8Array }> {
    const { url, signal } = this
    try {
      return await fetchBounded(url + path, init as RequestInit, { timeout: PATIENCE, maxBytes, signal })
    } catch (cause) {
      if (!(cause instanceof SourceError)) throw cause
      throw new CommandError(reasonOf(url, cause, init.body?.length), { cause, exit: 'unavailable' })
    }
  }
}

/** How many spends a server is asked for at once. */
const MAX_SPENDS = 1000

/** Whether a status may be temporary: the server starts or is busy, or a proxy in front of it answers. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 429
}

const HUNG_UP = ['EPIPE', 'ECONNRESET', 'UND_ERR_SOCKET']

/** Why there is no answer, in one line; `sent` is the length of the request's body. */
function reasonOf(url: string, error: SourceError, sent: number | undefined): string {
  if (error.code !== 'UNREACHABLE') return error.message
  const reason = fetchFailure(error.cause)
  const { cause } = (error.cause ?? {}) as { cause?: { code?: string } }
  // A server that rejects a body by its length may close the connection early, and its answer is lost.
  if (sent !== undefined && HUNG_UP.includes(cause?.code ?? ''))
    return `${url} hung up on ${sent} bytes, which may be too many: ${reason}`
  return `${url} does not answer: ${reason}`
}
