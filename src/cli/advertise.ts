import {
  DEFAULT_SLAP_TRACKERS,
  DEFAULT_TESTNET_SLAP_TRACKERS,
  type PrivateKey,
  type Transaction,
} from '@bsv/sdk'
import { z } from 'zod'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBeefTransaction, writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { readJson } from '../client/bounded-fetch.js'
import type { Draft, Paid } from '../payments/draft.js'
import type { Purpose } from '../payments/journal.js'
import type { Coin } from '../payments/key.js'
import type { Destination, Payments } from '../payments/payments.js'
import type { Config } from '../server/config/config.js'
import {
  ADVERTISEMENTS,
  type Advertisement,
  AdvertisementReader,
  APPROVAL_HEADER,
  advertisedHost,
  advertisementLock,
  advertisementUnlock,
  approvalOf,
} from '../server/discovery/advertisement.js'
import { wantedAdvertisements } from '../server/discovery/discovery.js'
import { CommandError, usageError } from './command.js'
import { type CommandOutput, grouped } from './output.js'
import { OverlayServer, serverUrl } from './overlay-server.js'
import { openOwnHeaders } from './own-headers.js'
import {
  confirmPayment,
  feeRateText,
  holderOf,
  openPayments,
  type PaymentOptions,
  payAndSubmit,
  reportFollowed,
} from './payment.js'

export interface AdvertiseOptions extends PaymentOptions {
  /** The URL at which this host answers the command. */
  url: string
  /** Revokes everything instead. */
  revoke: boolean
  /** Pays again for what the server does not show. */
  again: boolean
  /** The highest fee, in satoshis. */
  maxFee: number
  /** The URLs of the trackers to tell; by default those of the SDK, for the live network. */
  tracker?: string[]
  config: Config
}

/** An unspent token, as far as the host and the journal know. */
interface LiveToken extends Coin, Advertisement {}

const TOPICS = [ADVERTISEMENTS.SHIP.topic, ADVERTISEMENTS.SLAP.topic]
/** The longest answer to a lookup: tokens with their ancestors, as JSON with a number for each byte. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
const TOKEN_VALUE = 1

/**
 * Publishes the missing advertisements of this host, and revokes those that it no longer makes, in one transaction. Pays nothing
 * if there is nothing to change. Each later run submits earlier payments again, and does not pay again while they may count,
 * whatever the server shows.
 *
 * @throws CommandError; MiningError; GeneralError `JOURNAL`; the reason of the signal.
 */
export async function runAdvertise(options: AdvertiseOptions): Promise<void> {
  const { config, output, maxFee } = options
  const trackers = trackersOf(options)
  const host = advertisedHost(config)
  if (host === undefined) throw usageError('set SERVER_PRIVATE_KEY and HOSTING_URL, as for the server')
  const { key, url } = host
  if (config.profile.name !== 'local') requireAdvertisable(url)
  const server = new AdvertisedServer(options, key)
  const followsTree = await server.followsTree({ profile: config.profile.name, url })
  const wanted = options.revoke ? [] : wantedAdvertisements({ url, followsTree })
  const payments = await openPayments(await holderOf(options), options)
  try {
    const purpose: Purpose = { kind: 'advertise', subject: url, place: server.identityKey }
    const live = await liveTokens(options, { payments, server })
    const kept = wanted.flatMap((each) => live.find((token) => isSame(token, each)) ?? [])
    const missing = wanted.filter((each) => !live.some((token) => isSame(token, each)))
    const revoked = live.filter((token) => !kept.includes(token))
    let paid: Paid | undefined
    if (missing.length + revoked.length > 0) {
      const locks = await Promise.all(missing.map((each) => advertisementLock(key, each)))
      const draft: Draft = {
        what: 'the advertisements',
        description: 'Advertise this overlay host',
        inputs: revoked.map(({ transaction, vout, protocol }) => ({
          ...{ source: transaction, vout, description: `A ${protocol} token that is revoked` },
          unlock: advertisementUnlock(key, protocol),
        })),
        outputs: locks.map((lock) => ({
          satoshis: TOKEN_VALUE,
          lockingScript: Uint8Array.from(lock.toUint8Array()),
          description: 'A token that advertises this host',
        })),
        maxFee,
      }
      options.signal.throwIfAborted()
      if (payments !== undefined) await approve(options, { missing, revoked, url })
      paid = await payAndSubmit(payments, { draft, purpose, to: server.destination })
    }
    await requireShown(wanted, server)
    const sources = new Map(
      [...kept.map(({ transaction }) => transaction), ...(paid ? [paid.transaction] : [])].map((each) => [
        each.id('hex'),
        each,
      ]),
    )
    for (const tracker of trackers) await tell(tracker, [...sources.values()], options)
    report(output, { kept, missing, revoked, paid })
  } finally {
    payments?.journal.close()
  }
}

/**
 * Sends earlier payments again, and finds the unspent tokens of this host, in the journal and on the server. A paid one counts
 * even if the server denies it, unless the user says that it was revoked elsewhere.
 *
 * @throws CommandError if an earlier payment may or may not count.
 */
async function liveTokens(
  { again, output }: AdvertiseOptions,
  { payments, server }: { payments: Payments | undefined; server: AdvertisedServer },
): Promise<LiveToken[]> {
  const found = new Map<string, LiveToken>()
  const add = (token: LiveToken | undefined): void => {
    if (token !== undefined && !payments?.journal.isReserved(outpointOf(token)))
      found.set(outpointOf(token), token)
  }
  const of = { kinds: ['advertise'] as const, place: server.identityKey }
  const followed = (await payments?.followUp(of, server.destination, { again: true })) ?? []
  const stuck = followed.find(({ outcome }) => outcome === 'undecided')
  if (stuck !== undefined)
    throw new CommandError(
      `no new payment: the earlier payment ${stuck.payment.txid} may still count: ${stuck.why}; run the same command again later`,
      { exit: 'unavailable' },
    )
  reportFollowed(followed, output)
  for (const { payment, outcome } of again ? [] : followed) {
    if (outcome === 'lost') continue
    const { transaction } = payment
    for (const vout of transaction.outputs.keys()) add(server.tokenAt({ transaction, vout }))
  }
  for (const each of await server.tokens()) add(each)
  return [...found.values()]
}

/** @throws CommandError if no client of a live network would use the URL (BRC-101), or it is more than an origin. */
function requireAdvertisable(text: string): void {
  const { protocol, hostname, origin } = new URL(text)
  if (protocol === 'https:' && hostname !== 'localhost' && text === origin) return
  throw usageError(
    `HOSTING_URL cannot be advertised: it must be https:// with a public host name and nothing else, such as https://names.example, not ${text}`,
  )
}

/** @throws CommandError if the server does not show what was paid for: it has lost or blocked it, or denies it. */
async function requireShown(wanted: Advertisement[], server: AdvertisedServer): Promise<void> {
  const shown = await server.tokens()
  const denied = wanted.filter((each) => !shown.some((token) => isSame(token, each)))
  if (denied.length === 0) return
  const names = denied.map(({ topicOrService }) => topicOrService).join(', ')
  throw new CommandError(
    `${server.url} does not show ${names}, although paid for and submitted: see its log. If another machine has revoked them, use --again to pay again`,
  )
}

function outpointOf({ transaction, vout }: Coin): string {
  return formatOutpoint({ txid: transaction.id('hex'), vout })
}

function isSame(one: Advertisement, other: Advertisement): boolean {
  return (
    one.protocol === other.protocol && one.url === other.url && one.topicOrService === other.topicOrService
  )
}

/** Shows what will be published and its highest cost, and asks for confirmation. */
async function approve(
  options: AdvertiseOptions,
  { missing, revoked, url }: { missing: Advertisement[]; revoked: LiveToken[]; url: string },
): Promise<void> {
  const namesOf = (each: Advertisement[]): string =>
    each.map(({ topicOrService }) => topicOrService).join(', ')
  await confirmPayment(
    [
      ...(missing.length > 0 ? [`advertises ${namesOf(missing)} at ${url}, a satoshi each`] : []),
      ...(revoked.length > 0 ? [`revokes ${revoked.length} advertisements: ${namesOf(revoked)}`] : []),
      `the fee is paid ${feeRateText(options)}: at most ${grouped(options.maxFee)} satoshis`,
    ],
    options,
  )
}

function trackersOf({ tracker, config }: AdvertiseOptions): string[] {
  if (tracker !== undefined) return tracker.map((url) => serverUrl(url, 'a tracker'))
  if (config.profile.name === 'local') return []
  return config.network === 'test' ? DEFAULT_TESTNET_SLAP_TRACKERS : DEFAULT_SLAP_TRACKERS
}

/** A tracker that does not answer is no failure: the next run tells it again. */
async function tell(
  url: string,
  transactions: Transaction[],
  { output, signal }: AdvertiseOptions,
): Promise<void> {
  try {
    const tracker = new OverlayServer(url, signal)
    for (const each of transactions)
      await tracker.submit({ beef: writeBeef(each), topics: TOPICS, called: 'the advertisements' })
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    output.warn(
      `${url} did not take the advertisements: ${messageOf(error)}; run the same command again later`,
    )
  }
}

function report(
  output: CommandOutput,
  done: { kept: LiveToken[]; missing: Advertisement[]; revoked: LiveToken[]; paid: Paid | undefined },
): void {
  const { kept, missing, revoked, paid } = done
  const txid = paid?.transaction.id('hex')
  const recordOf = ({ protocol, topicOrService, url }: Advertisement, outpoint: string) => ({
    ...{ protocol, topicOrService, url, outpoint },
  })
  const advertised = [
    ...kept.map((token) => recordOf(token, outpointOf(token))),
    ...missing.map((each, vout) => recordOf(each, `${txid}_${vout}`)),
  ]
  output.result(
    {
      advertised,
      revoked: revoked.map((token) => recordOf(token, outpointOf(token))),
      ...(paid && { txid, fee: paid.fee }),
    },
    ...advertised.map(
      ({ protocol, topicOrService, outpoint }) => `${protocol} ${topicOrService} ${outpoint}`,
    ),
    ...revoked.map((token) => `revoked ${token.protocol} ${token.topicOrService} ${outpointOf(token)}`),
  )
  output.note(paid === undefined ? 'nothing was paid' : `paid ${grouped(paid.fee)} satoshis of fees`)
}

const outputsShape = z.object({
  outputs: z.array(z.object({ beef: z.array(z.int()), outputIndex: z.int().min(0) })),
})

class AdvertisedServer {
  readonly identityKey: string
  private readonly reader: AdvertisementReader
  /** Where advertisements are submitted. */
  readonly destination: Destination
  private readonly server: OverlayServer

  constructor(options: AdvertiseOptions, key: PrivateKey) {
    const { url, signal, config } = options
    this.server = new OverlayServer(url, signal)
    this.identityKey = key.toPublicKey().toString()
    this.reader = new AdvertisementReader(key.toPublicKey())
    this.destination = this.server.destination({
      chainTracker: openOwnHeaders(config, options),
      submit: async ({ transaction, beef }) => {
        const { txid, signature } = approvalOf(key, transaction.id('hex'))
        const headers = { [APPROVAL_HEADER]: `${txid}.${signature}` }
        const said = await this.server.submit({ beef, topics: TOPICS, headers, called: txid })
        return said.kind === 'conflict' ? said : { kind: 'admitted' }
      },
    })
  }

  get url(): string {
    return this.server.url
  }

  /**
   * Whether the server has `tm_names`.
   *
   * @throws CommandError if its settings differ: tokens that it does not find would be paid for in vain, and a server of the live
   * network must not get tokens with fake funding.
   */
  async followsTree({ profile, url }: { profile: string; url: string }): Promise<boolean> {
    const { genesis, advertisedAs, profile: others } = await this.server.deployment()
    if (advertisedAs === undefined)
      throw usageError(
        `${this.url} has no ls_ship: start it with the same SERVER_PRIVATE_KEY and HOSTING_URL`,
      )
    const differences: string[] = []
    if (others !== profile) differences.push(`PROFILE is ${profile}, and ${this.url} has ${others}`)
    if (advertisedAs.url !== url)
      differences.push(`HOSTING_URL is ${url}, and ${this.url} has ${advertisedAs.url}`)
    if (advertisedAs.identityKey !== this.identityKey)
      differences.push(`SERVER_PRIVATE_KEY is not the key of ${this.url}`)
    if (differences.length === 0) return genesis !== undefined
    throw usageError(
      `${differences.join('; ')}: use the settings of the server, and restart it after a change`,
    )
  }

  /** The advertisement in an output, if it is made with the host's key. */
  tokenAt({ transaction, vout }: Coin): LiveToken | undefined {
    const script = transaction.outputs[vout]?.lockingScript.toUint8Array() ?? []
    const token = this.reader.read(Uint8Array.from(script))
    return token && { ...token, transaction, vout }
  }

  /** The server's tokens with the host's key. */
  async tokens(): Promise<LiveToken[]> {
    const found: LiveToken[] = []
    for (const { service } of Object.values(ADVERTISEMENTS)) {
      const body = JSON.stringify({ service, query: { identityKey: this.identityKey } })
      const headers = { 'Content-Type': 'application/json' }
      const answer = await this.server.askPatiently('/lookup', {
        ...{ method: 'POST', headers, body, maxBytes: MAX_ANSWER_BYTES },
      })
      const parsed = outputsShape.safeParse(readJson(answer.body))
      if (answer.status !== 200 || !parsed.success)
        throw new CommandError(`${this.url} answers ${service} with HTTP ${answer.status} and no tokens`)
      const { outputs } = parsed.data
      found.push(
        ...outputs.flatMap(({ beef, outputIndex: vout }) => {
          return this.tokenAt({ transaction: read(beef), vout }) ?? []
        }),
      )
    }
    return found
  }
}

function read(beef: number[]): Transaction {
  try {
    return readBeefTransaction(Uint8Array.from(beef), { hash: nativeHash256 })
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new CommandError(`the server answered with an unreadable token: ${cause.message}`, { cause })
  }
}
