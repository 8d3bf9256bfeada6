import { readFile } from 'node:fs/promises'
import {
  ARC,
  type Broadcaster,
  defaultBroadcaster,
  HTTPWalletJSON,
  type HttpClient,
  PrivateKey,
  WalletClient,
} from '@bsv/sdk'
import * as z from 'zod'
import { boundedHttpClient, fetchBounded } from '../client/bounded-fetch.js'
import { SourceError } from '../client/source-error.js'
import { MiningError } from '../mining/mining-error.js'
import type { NameWallet } from '../mining/pay-with-wallet.js'
import type { Config } from '../server/config/config.js'
import { CommandError } from './command-error.js'

// What pays for mints and sends them, on this machine or elsewhere: a wallet, a key, ARC. Their answers are read within bounds.

/** Where a wallet asks who wants something of it. */
const ORIGINATOR = 'minetree'
/** In milliseconds: a person may have to look at the wallet first. */
const WALLET_TIMEOUT = 10 * 60_000
/** Transactions as JSON, a number for each byte. Objects take twenty times what they take as JSON. */
const MAX_WALLET_BYTES = 8 * 1024 * 1024

/** A wallet (BRC-100) behind HTTP and JSON. @throws CommandError where the URL is none. */
export function walletAt(url: string, signal: AbortSignal): NameWallet {
  if (!URL.canParse(url))
    throw new CommandError(`not the URL of a wallet: ${JSON.stringify(url)}`, { exit: 'usage' })
  const fetchFromWallet: typeof fetch = async (input, init) => {
    const bounds = { timeout: WALLET_TIMEOUT, maxBytes: MAX_WALLET_BYTES, signal }
    const { status, body } = await fetchBounded(String(input), init ?? {}, bounds)
    return new Response(new Uint8Array(body), { status })
  }
  const substrate = new HTTPWalletJSON(ORIGINATOR, url.replace(/\/+$/, ''), fetchFromWallet)
  const client = new WalletClient(substrate, ORIGINATOR)
  return {
    createAction: (args) => said(client.createAction(args), z.looseObject({})),
    signAction: (args) => said(client.signAction(args), z.looseObject({})),
    abortAction: (args) => said(client.abortAction(args), z.looseObject({})),
    getPublicKey: (args) => said(client.getPublicKey(args), z.looseObject({ publicKey: z.string() })),
  }
}

/** @throws MiningError `NO_ANSWER`, `BAD_WALLET`, for whatever the client of a wallet throws. */
async function said<Answer>(asked: Promise<Answer>, shape: z.ZodType): Promise<Answer> {
  try {
    const answer = await asked
    if (shape.safeParse(answer).success) return answer
    throw new Error('it answers something else')
  } catch (cause) {
    const isAway = cause instanceof SourceError && cause.code !== 'TOO_LARGE'
    const reason = (cause as { message?: unknown } | undefined)?.message ?? cause
    const { reviewActionResults } = (cause ?? {}) as { reviewActionResults?: unknown }
    throw Object.assign(
      new MiningError(isAway ? 'NO_ANSWER' : 'BAD_WALLET', `the wallet fails: ${String(reason)}`, { cause }),
      // Which of its transactions the network refuses.
      reviewActionResults !== undefined && { reviewActionResults },
    )
  }
}

const ARC_BOUNDS = { timeout: 30_000, maxBytes: 1024 * 1024 }

/** Mints of the live network go to its miners; those of a local one have none. */
export function arcFor({
  arc,
  arcApiKey,
  config,
  signal,
}: {
  /** The URL of an ARC service; unset, the one of the SDK. */
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

/** Reads a key as WIF. @throws CommandError, which does not quote the key. */
export async function readKey(path: string): Promise<PrivateKey> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw new CommandError(`cannot read ${path}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
      exit: 'usage',
    })
  }
  try {
    return PrivateKey.fromWif(text.trim())
  } catch {
    // What the SDK says may quote the key.
    throw new CommandError(`${path} holds no key as WIF`, { exit: 'usage' })
  }
}
