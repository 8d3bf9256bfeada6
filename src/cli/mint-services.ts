import {
  ARC,
  type Broadcaster,
  defaultBroadcaster,
  HTTPWalletJSON,
  type HttpClient,
  isBroadcastFailure,
  PrivateKey,
  type Transaction,
  WalletClient,
} from '@bsv/sdk'
import * as z from 'zod'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { boundedHttpClient, type FetchOptions, fetchBounded } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import type { BindingWallet } from '../identity/move-name.js'
import { type NameWallet, sendWithWallet, WalletSendError } from '../mining/fund-with-wallet.js'
import { MiningError } from '../mining/mining-error.js'
import type { Config } from '../server/config/config.js'
import { CommandError } from './command.js'
import { readSecretFile } from './user-files.js'

// The services that pay for mints and send them: a wallet, a key, ARC. Their answers are read within limits.

/** How a wallet names this program to its user. */
const ORIGINATOR = 'minetree'
/** In milliseconds: the wallet may have to ask its user first. */
const WALLET_TIMEOUT = 10 * 60_000
/** In milliseconds: giving coins back needs no user, and a command that was stopped waits for it. */
const ABORT_TIMEOUT = 10_000
/** In milliseconds: how long a command that was stopped waits for the reference of a draft, to have the wallet forget that. */
const DRAFT_TIMEOUT = 3_000
/** For transactions as JSON, one number per byte. Parsed objects take twenty times as much memory. */
const MAX_WALLET_BYTES = 8 * 1024 * 1024
/** In bytes: that of a signature in DER is 72. */
const MAX_SIGNATURE = 80

/** A wallet (BRC-100) with a JSON API. @throws CommandError if the URL is invalid. */
export function walletAt(url: string, signal: AbortSignal): BindingWallet {
  if (!URL.canParse(url))
    throw new CommandError(`not the URL of a wallet: ${JSON.stringify(url)}`, { exit: 'usage' })
  const client = clientOf(url, { timeout: WALLET_TIMEOUT, maxBytes: MAX_WALLET_BYTES, signal })
  const drafting = clientOf(url, {
    ...{ timeout: WALLET_TIMEOUT, maxBytes: MAX_WALLET_BYTES },
    signal: after(signal, DRAFT_TIMEOUT),
  })
  // Also once the command is stopped: a wallet keeps coins and names for a transaction that it signed, until it is aborted.
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

/** Aborted so long after another signal. */
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
  return new WalletClient(
    new HTTPWalletJSON(ORIGINATOR, url.replace(/\/+$/, ''), fetchFromWallet),
    ORIGINATOR,
  )
}

/** A `fetch` without limits of its own: that of Node gives up after five minutes, while the user may still be reading. */
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
      // Says which of its transactions the network rejects.
      reviewActionResults !== undefined && { reviewActionResults },
    )
  }
}

const wrapped = z.object({ call: z.string(), message: z.string() })

/** What the wallet said. The SDK's message is JSON that repeats all that was asked, whole transactions included. */
function reasonOf(cause: unknown): string {
  const text = String((cause as { message?: unknown } | undefined)?.message ?? cause)
  try {
    return wrapped.parse(JSON.parse(text)).message
  } catch {
    return text
  }
}

const ARC_BOUNDS = { timeout: 30_000, maxBytes: 1024 * 1024 }

/** The broadcaster for mints of the live network; a local network has no miners. */
export function arcFor({
  arc,
  arcApiKey,
  config,
  signal,
}: {
  /** The URL of an ARC service; by default, the one of the SDK. */
  arc?: string
  arcApiKey?: string
  config: Pick<Config, 'profile' | 'network'>
  signal: AbortSignal
}): Broadcaster | undefined {
  const client = boundedHttpClient(ARC_BOUNDS)
  const options = {
    httpClient: { request: (url, request) => client.request(url, { ...request, signal }) } as HttpClient,
    ...(arcApiKey !== undefined && { apiKey: arcApiKey }),
  }
  if (arc !== undefined) return new ARC(arc.replace(/\/+$/, ''), options)
  return config.profile.name === 'local' ? undefined : defaultBroadcaster(config.network === 'test', options)
}

/**
 * Reads a key as WIF, of a file or a pipe.
 *
 * @throws CommandError, which does not quote the key; the reason of the signal.
 */
export async function readKey(path: string, signal: AbortSignal): Promise<PrivateKey> {
  let text: string
  try {
    text = await readSecretFile(path, signal)
  } catch (cause) {
    signal.throwIfAborted()
    throw new CommandError(`cannot read ${path}: ${messageOf(cause)}`, {
      cause,
      exit: 'usage',
    })
  }
  try {
    return PrivateKey.fromWif(text.trim())
  } catch {
    // The SDK's message may quote the key.
    throw new CommandError(`${path} does not hold a key as WIF`, { exit: 'usage' })
  }
}

/**
 * The network's response to a mint:
 *
 * - `accepted`: the network has it, or a service has accepted it and will send it;
 * - `refused`: it can never be in a block;
 * - `undecided`: unknown. Its coins stay reserved, and the next command sends it again.
 */
export interface SendOutcome {
  kind: 'accepted' | 'refused' | 'undecided'
  /** The reason, in one line. */
  why: string
}

/** Sends a mint to the network, any number of times. */
export type SendMint = (mint: { transaction: Transaction; name: string }) => Promise<SendOutcome>

/**
 * The statuses of ARC (`metamorph_api.Status`, and the HTTP codes of its errors). Any other is undecided: such an answer says
 * nothing about the mint.
 */
const ARC_OUTCOMES: Readonly<Record<string, SendOutcome['kind']>> = {
  QUEUED: 'accepted',
  RECEIVED: 'accepted',
  STORED: 'accepted',
  ANNOUNCED_TO_NETWORK: 'accepted',
  REQUESTED_BY_NETWORK: 'accepted',
  SENT_TO_NETWORK: 'accepted',
  ACCEPTED_BY_NETWORK: 'accepted',
  SEEN_ON_NETWORK: 'accepted',
  SEEN_MULTIPLE_NODES: 'accepted',
  MINED: 'accepted',
  // ARC does not know its inputs yet.
  SEEN_IN_ORPHAN_MEMPOOL: 'undecided',
  // A block will contain one of the two.
  DOUBLE_SPEND_ATTEMPTED: 'undecided',
  // Its block was reorganised away; it may be in the next one.
  MINED_IN_STALE_BLOCK: 'undecided',
  REJECTED: 'refused',
  INVALID: 'refused',
  MALFORMED: 'refused',
  // Unlocking scripts, inputs, form, outputs, fee.
  461: 'refused',
  462: 'refused',
  463: 'refused',
  464: 'refused',
  465: 'refused',
  // A conflicting transaction is known.
  466: 'undecided',
  // Coins frozen by policy and by consensus; cumulative fee; size.
  471: 'refused',
  472: 'refused',
  473: 'refused',
  474: 'refused',
}

/** Sends mints through ARC. */
export function sendThroughArc(arc: Broadcaster): SendMint {
  return async ({ transaction }) => {
    const answer = await arc.broadcast(transaction)
    const isFailure = isBroadcastFailure(answer)
    const status = isFailure ? answer.code : (answer.message.split(' ')[0] ?? '')
    const said = isFailure ? answer.description : answer.message
    const why = (said.startsWith(status) ? said : `${status} ${said}`).trim()
    const txid = transaction.id('hex')
    if (answer.txid !== undefined && answer.txid !== txid)
      return { kind: 'undecided', why: `ARC answered about ${answer.txid} instead: ${why}` }
    // Some versions of ARC mention an orphan only in the text.
    if (/ORPHAN/i.test(why)) return { kind: 'undecided', why }
    return { kind: ARC_OUTCOMES[status] ?? 'undecided', why }
  }
}

/**
 * Sends mints through the wallet that has signed them.
 *
 * @param describe What the user of the wallet reads; by default, that it is the mint of the name.
 */
export function sendThroughWallet(
  wallet: Pick<NameWallet, 'createAction'>,
  describe?: (name: string) => string,
): SendMint {
  return async ({ transaction, name }) => {
    try {
      await sendWithWallet(wallet, {
        txid: transaction.id('hex'),
        ...(describe === undefined ? { name } : { description: describe(name) }),
      })
      return { kind: 'accepted', why: 'the wallet has sent it' }
    } catch (error) {
      if (!(error instanceof WalletSendError)) throw error
      return { kind: error.isFinal ? 'refused' : 'undecided', why: error.message }
    }
  }
}
