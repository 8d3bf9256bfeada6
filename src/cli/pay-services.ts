import { ARC, defaultBroadcaster, HTTPWalletJSON, type HttpClient, PrivateKey, WalletClient } from '@bsv/sdk'
import * as z from 'zod'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { boundedHttpClient, type FetchOptions, fetchBounded } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import type { BindingWallet } from '../identity/move-name.js'
import { MiningError } from '../mining/mining-error.js'
import { sendThroughArc } from '../payments/arc.js'
import type { Payer } from '../payments/draft.js'
import type { Config } from '../server/config/config.js'
import { usageError } from './command.js'
import { serverUrl } from './overlay-server.js'
import { readSecretFile } from './user-files.js'

// The services that pay for transactions and send them: a wallet, a key, ARC. Their answers are read within limits.

/** The name by which a wallet's user knows this program. */
const ORIGINATOR = 'minetree'
/** In milliseconds: the wallet may have to ask its user. */
const WALLET_TIMEOUT = 10 * 60_000
/** In milliseconds: giving coins back needs no user, and a stopped command waits for it. */
const ABORT_TIMEOUT = 10_000
/** In milliseconds: how long a stopped command waits for the reference of a draft, to make the wallet abort it. */
const DRAFT_TIMEOUT = 3_000
/** The longest transaction in an answer, in bytes. */
export const MAX_WALLET_TRANSACTION = 2 * 1024 * 1024
/** In JSON, a byte takes up to 14 characters: its place and its value. */
const MAX_WALLET_BYTES = 14 * MAX_WALLET_TRANSACTION
/** In bytes: a signature in DER has up to 72. */
const MAX_SIGNATURE = 80

/** A wallet (BRC-100) with a JSON API. @throws CommandError if the URL is invalid. */
export function walletAt(text: string, signal: AbortSignal): BindingWallet {
  const url = serverUrl(text, 'a wallet')
  const client = clientOf(url, { timeout: WALLET_TIMEOUT, maxBytes: MAX_WALLET_BYTES, signal })
  const drafting = clientOf(url, {
    ...{ timeout: WALLET_TIMEOUT, maxBytes: MAX_WALLET_BYTES },
    signal: after(signal, DRAFT_TIMEOUT),
  })
  // Works even after the command is stopped: a wallet reserves coins and names for a signed transaction until it is aborted.
  const unstopped = clientOf(url, { timeout: ABORT_TIMEOUT, maxBytes: MAX_WALLET_BYTES })
  return {
    createAction: (args) => said((signal.aborted ? client : drafting).createAction(args), z.looseObject({})),
    signAction: (args) => said(client.signAction(args), z.looseObject({})),
    abortAction: (args) => said(unstopped.abortAction(args), z.looseObject({})),
    getPublicKey: (args) => said(client.getPublicKey(args), z.looseObject({ publicKey: z.string() })),
    createSignature: (args) =>
      said(
        client.createSignature(args),
        z.looseObject({ signature: z.array(z.number()).max(MAX_SIGNATURE) }),
      ),
  }
}

/** A signal that is aborted this long after another one. */
function after(signal: AbortSignal, milliseconds: number): AbortSignal {
  const late = new AbortController()
  const wait = (): void => void setTimeout(() => late.abort(signal.reason), milliseconds).unref()
  signal.addEventListener('abort', wait, { once: true })
  return late.signal
}

function clientOf(url: string, bounds: FetchOptions): WalletClient {
  let patient: Promise<typeof fetch> | undefined
  const fetchFromWallet: typeof fetch = async (input, init) => {
    patient ??= patientFetch()
    const { status, body } = await fetchBounded(String(input), init ?? {}, {
      ...bounds,
      fetch: await patient,
    })
    return new Response(new Uint8Array(body), { status })
  }
  return new WalletClient(new HTTPWalletJSON(ORIGINATOR, url, fetchFromWallet), ORIGINATOR)
}

/** A `fetch` without limits of its own: Node's gives up after five minutes, while the user may still be reading. */
async function patientFetch(): Promise<typeof fetch> {
  const { Agent, fetch: fetchWith } = await import('undici')
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  const patient = (url: string, init: object) => fetchWith(url, { ...init, dispatcher })
  return patient as unknown as typeof fetch
}

/** @throws MiningError `NO_ANSWER` or `BAD_WALLET` for any error of the wallet's client. */
async function said<Answer>(asked: Promise<Answer>, shape: z.ZodType): Promise<Answer> {
  try {
    const answer = await asked
    if (shape.safeParse(answer).success) return answer
    throw new Error('its answer has the wrong form')
  } catch (cause) {
    const isAway = cause instanceof SourceError && cause.code !== 'TOO_LARGE'
    const { reviewActionResults } = (cause ?? {}) as { reviewActionResults?: unknown }
    throw Object.assign(
      new MiningError(isAway ? 'NO_ANSWER' : 'BAD_WALLET', `the wallet failed: ${reasonOf(cause)}`, {
        cause,
      }),
      // Says which of the transactions the network rejects.
      reviewActionResults !== undefined && { reviewActionResults },
    )
  }
}

const wrapped = z.object({ call: z.string(), message: z.string() })

/** The wallet's own message. The SDK's message is JSON that repeats the whole question, transactions included. */
function reasonOf(cause: unknown): string {
  const text = String((cause as { message?: unknown } | undefined)?.message ?? cause)
  try {
    return wrapped.parse(JSON.parse(text)).message
  } catch {
    return text
  }
}

const ARC_BOUNDS = { timeout: 30_000, maxBytes: 1024 * 1024 }

/** Sends through ARC to the live network; a local network has no miners. */
export function arcFor(options: {
  /** The URL of an ARC service; by default, the one of the SDK. */
  arc?: string
  arcApiKey?: string
  config: Pick<Config, 'profile' | 'network'>
  signal: AbortSignal
}): Payer['send'] {
  const { arc, arcApiKey, config, signal } = options
  if (arc === undefined && config.profile.name === 'local') return undefined
  const client = boundedHttpClient(ARC_BOUNDS)
  const httpClient: HttpClient = {
    async request(url, request) {
      const answer = await client.request(url, { ...request, signal })
      // Arcade accepts the same at `/tx`, where the wallets of BRC-100 send it.
      return answer.status === 404
        ? await client.request(url.replace(/\/v1\/tx$/, '/tx'), { ...request, signal })
        : answer
    },
  }
  const given = { httpClient, ...(arcApiKey !== undefined && { apiKey: arcApiKey }) }
  return sendThroughArc(
    arc === undefined
      ? defaultBroadcaster(config.network === 'test', given)
      : new ARC(serverUrl(arc, 'an ARC service'), given),
  )
}

/**
 * Reads a key as WIF from a file or a pipe.
 *
 * @throws CommandError, which does not quote the key; the reason of the signal.
 */
export async function readKey(path: string, signal: AbortSignal): Promise<PrivateKey> {
  let text: string
  try {
    text = await readSecretFile(path, signal)
  } catch (cause) {
    signal.throwIfAborted()
    throw usageError(`cannot read ${path}: ${messageOf(cause)}`, cause)
  }
  try {
    return PrivateKey.fromWif(text.trim())
  } catch {
    // The SDK's message may quote the key.
    throw usageError(`${path} does not hold a key as WIF`)
  }
}
