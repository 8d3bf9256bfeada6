import { z } from 'zod'
import { PROFILES, TOPICS } from '../../backend/src/protocol/profile.js'
import { fetchBounded, readJson } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import { CommandError } from './command.js'
import type { FakeTransaction } from './fake-transactions.js'

/** Time for an answer, in milliseconds: submissions are queued. */
const PATIENCE = 50_000

/** The longest `/deployment.json` that is read, in bytes: many times the size of ours. */
const MAX_DEPLOYMENT_BYTES = 64 * 1024
/** The longest answer to a submission, in bytes, without the indexes of the admitted outputs. */
const MAX_ANSWER_BYTES = 64 * 1024
/** An index of 32 bits in JSON, with its comma. */
const MAX_INDEX_BYTES = 11

const deployment = z.object({ profile: z.literal(Object.keys(PROFILES)), network: z.string() })
const refusal = z.object({ error: z.string(), code: z.string() })
const steak = z.object({ [TOPICS.ordinals]: z.object({ outputsToAdmit: z.array(z.number()) }) })

/** A server of a local network. */
export class LocalServer {
  private constructor(
    /** Without a slash at the end. */
    readonly url: string,
  ) {}

  /**
   * Checks, by the profile in its `/deployment.json`, that a server at a URL is on a local network: one that follows the
   * live network and does not check proofs would accept fake transactions as real.
   *
   * @throws CommandError
   */
  static async at(text: string): Promise<LocalServer> {
    const parsed = URL.canParse(text) ? new URL(text) : undefined
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
      throw new CommandError(`not the URL of a server: ${JSON.stringify(text)}`, { exit: 'usage' })
    const url = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '')
    const { body } = await ask(url, '/deployment.json', { maxBytes: MAX_DEPLOYMENT_BYTES })
    const described = deployment.safeParse(body)
    if (!described.success) throw new CommandError(`${url} is not a minetree server`)
    if (described.data.profile !== PROFILES.local.name)
      throw new CommandError(
        `${url} follows the live network: publish to a server of a local network, which accepts fake funding`,
      )
    return new LocalServer(url)
  }

  /**
   * Submits a transaction.
   *
   * @param about.outputs The number of its outputs.
   * @param about.called What error messages call it.
   * @throws CommandError if the server does not admit all of it.
   */
  async submit(
    { beef }: FakeTransaction,
    { outputs, called }: { outputs: number; called: string },
  ): Promise<void> {
    const headers = {
      'Content-Type': 'application/octet-stream',
      'X-Topics': JSON.stringify([TOPICS.ordinals]),
    }
    const maxBytes = MAX_ANSWER_BYTES + outputs * MAX_INDEX_BYTES
    const { status, body } = await ask(this.url, '/submit', { method: 'POST', headers, body: beef, maxBytes })
    const refused = refusal.safeParse(body)
    if (refused.success) {
      const { code, error } = refused.data
      throw new CommandError(`${this.url} refuses ${called} (${status} ${code}): ${error}`, {
        exit: status === 503 ? 'unavailable' : 'refused',
      })
    }
    const taken = steak.safeParse(body)
    if (!taken.success)
      throw new CommandError(`${this.url} answered ${status}, which is not a minetree answer`)
    const left = outputs - taken.data[TOPICS.ordinals].outputsToAdmit.length
    if (left > 0) {
      throw new CommandError(
        `${this.url} refuses ${left} of ${outputs} outputs of ${called}: its log says why`,
        { exit: 'refused' },
      )
    }
  }
}

interface Request {
  method: 'POST'
  headers: Record<string, string>
  body: Uint8Array
}

/**
 * Requests JSON, and reads a limited part of the answer.
 *
 * @param init.maxBytes The longest answer that is read.
 * @returns The status and the parsed body; undefined if that is not JSON.
 */
async function ask(
  url: string,
  path: string,
  { maxBytes, ...init }: Partial<Request> & { maxBytes: number },
): Promise<{ status: number; body: unknown }> {
  try {
    const { status, body } = await fetchBounded(`${url}${path}`, init as RequestInit, {
      timeout: PATIENCE,
      maxBytes,
    })
    return { status, body: readJson(body) }
  } catch (cause) {
    if (!(cause instanceof SourceError)) throw cause
    throw new CommandError(reasonOf(url, cause, init.body?.length), { cause, exit: 'unavailable' })
  }
}

const HUNG_UP = ['EPIPE', 'ECONNRESET', 'UND_ERR_SOCKET']

/** Why there is no answer, in one line; `sent` is the length of the request's body. */
function reasonOf(url: string, error: SourceError, sent: number | undefined): string {
  if (error.code !== 'UNREACHABLE') return error.message
  const { reason, hungUp } = failureOf(error.cause)
  // A server that rejects a body by its length may close the connection early, and its answer is lost.
  if (sent !== undefined && hungUp) return `${url} hung up on ${sent} bytes, which may be too many: ${reason}`
  return `${url} does not answer: ${reason}`
}

/** The reason of a failed `fetch`: it is in the error's cause, and in its code if several addresses were tried. */
function failureOf(error: unknown): { reason: string; hungUp: boolean } {
  const inner: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (!(inner instanceof Error)) return { reason: String(inner), hungUp: false }
  const code = 'code' in inner ? String(inner.code) : ''
  return { reason: inner.message || code, hungUp: HUNG_UP.includes(code) }
}
