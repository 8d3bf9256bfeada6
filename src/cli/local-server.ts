import { z } from 'zod'
import { PROFILES, TOPICS } from '../../backend/src/protocol/profile.js'
import { parseJson } from '../mining/ask-json.js'
import { CommandError } from './command-error.js'
import type { MadeUpTransaction } from './made-up-money.js'

/** How long an answer may take, in milliseconds: a submission waits for those before it. */
const PATIENCE = 60_000

const openapi = z.object({
  info: z.object({ title: z.literal('minetree') }),
  paths: z.record(z.string(), z.unknown()),
})
const refusal = z.object({ error: z.string(), code: z.string() })
const steak = z.object({ [TOPICS.ordinals]: z.object({ outputsToAdmit: z.array(z.number()) }) })

/** Prefixes that only a server which follows the live network has. */
const LIVE_PREFIXES = [...PROFILES.mainnet.gatewayPrefixes, ...PROFILES.mainnet.namesPrefixes].filter(
  (prefix) => ![...PROFILES.local.gatewayPrefixes, ...PROFILES.local.namesPrefixes].includes(prefix),
)

/** A server of a local network. */
export class LocalServer {
  private constructor(
    /** Without a slash at the end. */
    readonly url: string,
  ) {}

  /**
   * Makes sure that a server of a local network listens at a URL, by what its `/openapi.json` describes: one that follows
   * the live network, and does not check proofs, would take made-up transactions for real.
   *
   * @throws CommandError
   */
  static async at(text: string): Promise<LocalServer> {
    const parsed = URL.canParse(text) ? new URL(text) : undefined
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
      throw new CommandError(`not the URL of a server: ${JSON.stringify(text)}`, { exit: 'usage' })
    const url = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '')
    const { body } = await ask(url, '/openapi.json')
    const described = openapi.safeParse(body)
    if (!described.success) throw new CommandError(`${url} is not a minetree server`)
    const paths = Object.keys(described.data.paths)
    if (LIVE_PREFIXES.some((prefix) => paths.some((path) => path.startsWith(`${prefix}/`))))
      throw new CommandError(`${url} follows the live network: made-up transactions are for a local one`)
    return new LocalServer(url)
  }

  /**
   * Submits a transaction.
   *
   * @param about.outputs How many it has.
   * @param about.called What it is to whoever reads an error.
   * @throws CommandError where the server does not take it, or not all of it.
   */
  async submit(
    { beef }: MadeUpTransaction,
    { outputs, called }: { outputs: number; called: string },
  ): Promise<void> {
    const headers = {
      'Content-Type': 'application/octet-stream',
      'X-Topics': JSON.stringify([TOPICS.ordinals]),
    }
    const { status, body } = await ask(this.url, '/submit', { method: 'POST', headers, body: beef })
    const refused = refusal.safeParse(body)
    if (refused.success) {
      const { code, error } = refused.data
      throw new CommandError(`${this.url} refuses ${called} (${status} ${code}): ${error}`, {
        exit: status === 503 ? 'unavailable' : 'refused',
      })
    }
    const taken = steak.safeParse(body)
    if (!taken.success) throw new CommandError(`${this.url} answers ${status}, and not as minetree does`)
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

async function ask(url: string, path: string, init?: Request): Promise<{ status: number; body: unknown }> {
  try {
    const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE) })
    return { status: response.status, body: parseJson(await response.text()) }
  } catch (cause) {
    const { reason, hungUp } = failureOf(cause)
    // A server that refuses a body by its length may do so before all of it is sent, and its answer be lost.
    const told =
      init && hungUp ? `hung up on ${init.body.length} bytes, which may be too many` : 'does not answer'
    throw new CommandError(`${url} ${told}: ${reason}`, { cause, exit: 'unavailable' })
  }
}

const HUNG_UP = ['EPIPE', 'ECONNRESET', 'UND_ERR_SOCKET']

/** What `fetch` knows of a failure stands in its cause, and there in the code where several addresses were tried. */
function failureOf(error: unknown): { reason: string; hungUp: boolean } {
  const inner: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (!(inner instanceof Error)) return { reason: String(inner), hungUp: false }
  const code = 'code' in inner ? String(inner.code) : ''
  return { reason: inner.message || code, hungUp: HUNG_UP.includes(code) }
}
