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
import { fetchBounded, readJson } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import { feeOf } from '../mining/sign-with-wallet.js'
import type { Config } from '../server/config/config.js'
import { advertisedHost } from '../server/discovery/advertised-host.js'
import {
  ADVERTISEMENTS,
  type Advertisement,
  AdvertisementReader,
  APPROVAL_HEADER,
  advertisementLock,
  approvalOf,
} from '../server/discovery/advertisement.js'
import { wantedAdvertisements } from '../server/discovery/discovery.js'
import {
  type AdvertisementPayer,
  FAKE_ADVERTISEMENT_PAYER,
  payFromKey,
  payFromWallet,
  type Token,
} from './advertisement-payers.js'
import { CommandError } from './command.js'
import { MintFolder, type StoredMint } from './mint-folder.js'
import { coinsOf, readTransactions } from './mint-payers.js'
import { arcFor, readKey, sendThroughArc, walletAt } from './mint-services.js'
import { type CommandOutput, grouped } from './output.js'
import {
  confirmPayment,
  feeRateText,
  type PaymentOptions,
  recordOutcome,
  requireOnePayer,
} from './payment.js'

export interface AdvertiseOptions extends PaymentOptions {
  /** Where this host answers the command. */
  url: string
  /** Revoke everything instead. */
  revoke: boolean
  /** The highest fee, in satoshis. */
  maxFee: number
  /** The URLs of the trackers to tell; by default those of the SDK, for the live network. */
  tracker?: string[]
  config: Config
}

/** A token that is not spent, as far as the host and the folder know. */
interface LiveToken extends Token, Advertisement {}

const TOPICS = [ADVERTISEMENTS.SHIP.topic, ADVERTISEMENTS.SLAP.topic]
/** Of a lookup: tokens with their ancestors, a number for each byte. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
/** In milliseconds: submissions are queued. */
const PATIENCE = 50_000

/**
 * Publishes what this host advertises and is not published yet, and revokes what it no longer advertises, in one transaction.
 * Pays nothing if there is nothing to change. What was paid for is stored first, and submitted again by each later run.
 *
 * @throws CommandError; MiningError; ImportError; the reason of the signal.
 */
export async function runAdvertise(options: AdvertiseOptions): Promise<void> {
  const { config, output } = options
  const host = advertisedHost(config)
  if (host === undefined)
    throw new CommandError('set SERVER_PRIVATE_KEY and HOSTING_URL, as for the server', { exit: 'usage' })
  if (config.profile.name !== 'local') requireAdvertisable(host.url)
  const reader = new AdvertisementReader(host.key.toPublicKey())
  const server = new AdvertisedServer(options, host.key)
  const followsTree = await server.followsTree({ profile: config.profile.name, url: host.url })
  const wanted = options.revoke ? [] : wantedAdvertisements({ url: host.url, followsTree })
  const folder = await MintFolder.at(options.folder)
  try {
    const payer = await payerFor(options, folder)
    const { mints, damaged } = await folder.read()
    for (const file of damaged) output.warn(`${file} cannot be read and is ignored: restore it or remove it`)
    await sendAgain({ stored: mints, payer, folder, server, output })
    const live = await liveTokens({ stored: (await folder.read()).mints, server, reader })
    const kept = wanted.flatMap((each) => live.find((token) => isSame(token, each)) ?? [])
    const missing = wanted.filter((each) => !live.some((token) => isSame(token, each)))
    const revoked = live.filter((token) => !kept.includes(token))
    let paid: Transaction | undefined
    if (missing.length + revoked.length > 0) {
      await approve(options, { missing, revoked, url: host.url, payer })
      const locks = await Promise.all(missing.map((each) => advertisementLock(host.key, each)))
      const { maxFee } = options
      options.signal.throwIfAborted()
      await payer.pay({ key: host.key, locks, revoked, maxFee }, async (transaction) => {
        await folder.keep(transaction.id('hex'), writeBeef(transaction))
        paid = transaction
      })
      if (paid !== undefined) await send({ transaction: paid, payer, folder, server })
      await requireLive(wanted, { stored: (await folder.read()).mints, server, reader })
    }
    const sources = new Map(
      [...kept.map(({ transaction }) => transaction), ...(paid ? [paid] : [])].map((each) => [
        each.id('hex'),
        each,
      ]),
    )
    for (const tracker of trackersOf(options)) await tell(tracker, [...sources.values()], options)
    report(output, { kept, missing, revoked, paid })
  } finally {
    await folder.release()
  }
}

/** @throws CommandError if no client of a live network would use the URL (BRC-101), or it says more than where the host is. */
function requireAdvertisable(text: string): void {
  const { protocol, hostname, origin } = new URL(text)
  if (protocol === 'https:' && hostname !== 'localhost' && text === origin) return
  throw new CommandError(
    `HOSTING_URL cannot be advertised: it must be https:// with a public host name and nothing else, such as https://names.example, not ${text}`,
    { exit: 'usage' },
  )
}

async function payerFor(options: AdvertiseOptions, folder: MintFolder): Promise<AdvertisementPayer> {
  const { wallet, keyFile, feeRate, config, signal } = options
  requireOnePayer(options)
  if (wallet !== undefined) return payFromWallet(walletAt(wallet, signal))
  if (keyFile === undefined) {
    if (config.profile.name === 'local') return FAKE_ADVERTISEMENT_PAYER
    throw new CommandError('choose who pays: use --wallet, or --key-file with --coins', { exit: 'usage' })
  }
  const payer = await readKey(keyFile, signal)
  const coins = await readTransactions(options.coins)
  const arc = arcFor(options)
  const sendMint = arc && sendThroughArc(arc)
  return payFromKey({
    ...{ payer, feeRate },
    coins: async () => coinsOf(payer, { coins, ...(await folder.read()) }),
    send: sendMint && ((transaction) => sendMint({ transaction, name: '' })),
  })
}

/** Sends what was paid for earlier and may not have arrived, and tells the server of everything that is not lost. */
async function sendAgain(options: {
  stored: StoredMint[]
  payer: AdvertisementPayer
  folder: MintFolder
  server: AdvertisedServer
  output: CommandOutput
}): Promise<void> {
  const { stored, output, ...rest } = options
  // Revocations after what they revoke, or the server would not know what they spend.
  const left = stored.filter(({ state }) => state !== 'lost')
  for (const { transaction, state } of inOrder(left)) {
    try {
      await send({ transaction, state, ...rest })
    } catch (error) {
      if (!(error instanceof ReplacedError)) throw error
      output.warn(`${error.message}; it no longer counts`)
    }
  }
}

/** Another transaction counts instead of a paid one, whose coins can be spent again. */
class ReplacedError extends CommandError {}

function inOrder(stored: StoredMint[]): StoredMint[] {
  const ordered: StoredMint[] = []
  const add = (each: StoredMint): void => {
    if (ordered.includes(each)) return
    for (const { sourceTXID, sourceTransaction } of each.transaction.inputs) {
      const parent = stored.find(({ txid }) => txid === (sourceTXID ?? sourceTransaction?.id('hex')))
      if (parent !== undefined) add(parent)
    }
    ordered.push(each)
  }
  for (const each of stored) add(each)
  return ordered
}

/**
 * Sends a paid transaction to the network if that is not known to have it, and then to the server.
 *
 * @throws ReplacedError if it is lost; CommandError.
 */
async function send(options: {
  transaction: Transaction
  state?: StoredMint['state']
  payer: AdvertisementPayer
  folder: MintFolder
  server: AdvertisedServer
}): Promise<void> {
  const { transaction, state = 'pending', payer, folder, server } = options
  const txid = transaction.id('hex')
  if (state === 'pending' && payer.send !== undefined) {
    const later = 'it is stored: run the same command again to send it once more'
    await recordOutcome(folder, { txid, outcome: await payer.send(transaction), later })
  }
  const conflict = await server.submit(transaction)
  if (conflict === undefined) {
    await folder.setState(txid, 'known')
    return
  }
  // No server can overrule the network.
  const isLost =
    payer.send === undefined ? state !== 'sent' : (await payer.send(transaction)).kind === 'refused'
  if (!isLost) throw conflict
  await folder.setState(txid, 'lost')
  throw new ReplacedError(conflict.message, { exit: 'refused' })
}

/** The tokens of this host that nothing spends, of the server and of the folder. */
async function liveTokens(options: {
  stored: StoredMint[]
  server: AdvertisedServer
  reader: AdvertisementReader
}): Promise<LiveToken[]> {
  const { stored, server, reader } = options
  const own = stored.filter(({ state }) => state !== 'lost').map(({ transaction }) => transaction)
  const spent = new Set(
    own.flatMap(({ inputs }) =>
      inputs.map(
        (each) => `${each.sourceTXID ?? each.sourceTransaction?.id('hex')}_${each.sourceOutputIndex}`,
      ),
    ),
  )
  const found = new Map<string, LiveToken>()
  for (const { transaction, vout } of await server.tokens(reader.identityKey.toString())) {
    const script = transaction.outputs[vout]?.lockingScript.toUint8Array() ?? new Uint8Array()
    const token = reader.read(Uint8Array.from(script))
    const outpoint = `${transaction.id('hex')}_${vout}`
    if (token !== undefined && !spent.has(outpoint)) found.set(outpoint, { ...token, transaction, vout })
  }
  return [...found.values()]
}

/** @throws CommandError if the server does not find what was just published, as where it was revoked before. */
async function requireLive(
  wanted: Advertisement[],
  options: Parameters<typeof liveTokens>[0],
): Promise<void> {
  const live = await liveTokens(options)
  const dead = wanted.filter((each) => !live.some((token) => isSame(token, each)))
  if (dead.length === 0) return
  const names = dead.map(({ topicOrService }) => topicOrService).join(', ')
  throw new CommandError(
    `${names} is not advertised, although paid for: the tokens are spent already; run the command again with other coins`,
  )
}

function isSame(one: Advertisement, other: Advertisement): boolean {
  return (
    one.protocol === other.protocol && one.url === other.url && one.topicOrService === other.topicOrService
  )
}

/** Shows what will be published and what it may cost, and asks for confirmation. */
async function approve(
  options: AdvertiseOptions,
  plan: { missing: Advertisement[]; revoked: LiveToken[]; url: string; payer: AdvertisementPayer },
): Promise<void> {
  const { output, ask, yes, maxFee } = options
  const { missing, revoked, url, payer } = plan
  if (payer === FAKE_ADVERTISEMENT_PAYER) return
  const namesOf = (each: Advertisement[]): string =>
    each.map(({ topicOrService }) => topicOrService).join(', ')
  if (missing.length > 0) output.note(`advertises ${namesOf(missing)} at ${url}, a satoshi each`)
  if (revoked.length > 0) output.note(`revokes ${revoked.length} advertisements: ${namesOf(revoked)}`)
  output.note(`the fee is paid ${feeRateText(options)}: at most ${grouped(maxFee)} satoshis`)
  await confirmPayment({ ask, isAgreed: yes, output })
}

function trackersOf({ tracker, config }: AdvertiseOptions): string[] {
  if (tracker !== undefined) return tracker.map((url) => url.replace(/\/+$/, ''))
  if (config.profile.name === 'local') return []
  return config.network === 'test' ? DEFAULT_TESTNET_SLAP_TRACKERS : DEFAULT_SLAP_TRACKERS
}

/** A tracker that does not answer is no failure: the next run tells it again. */
async function tell(
  url: string,
  transactions: Transaction[],
  { output, signal }: AdvertiseOptions,
): Promise<void> {
  for (const transaction of transactions) {
    try {
      const { status } = await submitTo(url, transaction, { signal })
      if (status === 200) continue
      output.warn(`${url} did not take the advertisements (HTTP ${status}): run the same command again later`)
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      output.warn(`${url} could not be reached: ${messageOf(error)}; run the same command again later`)
    }
    return
  }
}

function report(
  output: CommandOutput,
  done: { kept: LiveToken[]; missing: Advertisement[]; revoked: LiveToken[]; paid: Transaction | undefined },
): void {
  const { kept, missing, revoked, paid } = done
  const txid = paid?.id('hex')
  const recordOf = ({ protocol, topicOrService, url }: Advertisement, outpoint: string) => ({
    ...{ protocol, topicOrService, url, outpoint },
  })
  const outpointOf = ({ transaction, vout }: LiveToken): string => `${transaction.id('hex')}_${vout}`
  const advertised = [
    ...kept.map((token) => recordOf(token, outpointOf(token))),
    ...missing.map((each, vout) => recordOf(each, `${txid}_${vout}`)),
  ]
  output.result(
    {
      advertised,
      revoked: revoked.map((token) => recordOf(token, outpointOf(token))),
      ...(paid && { txid, fee: feeOf(paid) }),
    },
    ...advertised.map(
      ({ protocol, topicOrService, outpoint }) => `${protocol} ${topicOrService} ${outpoint}`,
    ),
    ...revoked.map((token) => `revoked ${token.protocol} ${token.topicOrService} ${outpointOf(token)}`),
  )
  output.note(paid === undefined ? 'nothing was paid' : `paid ${grouped(feeOf(paid))} satoshis of fees`)
}

async function submitTo(
  url: string,
  transaction: Transaction,
  { signal, approval = {} }: { signal: AbortSignal; approval?: Record<string, string> },
) {
  const headers = {
    'Content-Type': 'application/octet-stream',
    'X-Topics': JSON.stringify(TOPICS),
    ...approval,
  }
  const body = Uint8Array.from(writeBeef(transaction))
  const bounds = { timeout: PATIENCE, maxBytes: MAX_ANSWER_BYTES, signal }
  return await fetchBounded(`${url}/submit`, { method: 'POST', headers, body }, bounds)
}

const deploymentShape = z.looseObject({
  profile: z.string(),
  genesis: z.string().optional(),
  advertisedAs: z.looseObject({ identityKey: z.string(), url: z.string() }).optional(),
})
const outputsShape = z.object({
  outputs: z.array(z.object({ beef: z.array(z.int()), outputIndex: z.int().min(0) })),
})
const refusal = z.object({ error: z.string() })

/** The server that the command is for. */
class AdvertisedServer {
  private readonly url: string
  private readonly signal: AbortSignal

  constructor(
    { url, signal }: Pick<AdvertiseOptions, 'url' | 'signal'>,
    private readonly key: PrivateKey,
  ) {
    if (!URL.canParse(url))
      throw new CommandError(`not the URL of a server: ${JSON.stringify(url)}`, { exit: 'usage' })
    this.url = url.replace(/\/+$/, '')
    this.signal = signal
  }

  /**
   * Whether it has `tm_names`.
   *
   * @throws CommandError if its settings are others: tokens that it does not find would be paid for in vain, and a server of the
   * live network must not get tokens with fake funding.
   */
  async followsTree({ profile, url }: { profile: string; url: string }): Promise<boolean> {
    const { body } = await this.ask('/deployment.json', {})
    const parsed = deploymentShape.safeParse(readJson(body))
    if (!parsed.success) throw new CommandError(`${this.url} is not a minetree server`)
    const { genesis, advertisedAs, profile: others } = parsed.data
    if (advertisedAs === undefined)
      throw new CommandError(
        `${this.url} has no ls_ship: start it with the same SERVER_PRIVATE_KEY and HOSTING_URL`,
        { exit: 'usage' },
      )
    const differences: string[] = []
    if (others !== profile) differences.push(`PROFILE is ${profile}, and ${this.url} has ${others}`)
    if (advertisedAs.url !== url)
      differences.push(`HOSTING_URL is ${url}, and ${this.url} has ${advertisedAs.url}`)
    if (advertisedAs.identityKey !== this.key.toPublicKey().toString())
      differences.push(`SERVER_PRIVATE_KEY is not the key of ${this.url}`)
    if (differences.length === 0) return genesis !== undefined
    throw new CommandError(
      `${differences.join('; ')}: use the settings of the server, and restart it after a change`,
      {
        exit: 'usage',
      },
    )
  }

  /** Its tokens of a key. */
  async tokens(identityKey: string): Promise<{ transaction: Transaction; vout: number }[]> {
    const found: { transaction: Transaction; vout: number }[] = []
    for (const { service } of Object.values(ADVERTISEMENTS)) {
      const body = JSON.stringify({ service, query: { identityKey } })
      const headers = { 'Content-Type': 'application/json' }
      const answer = await this.ask('/lookup', { method: 'POST', headers, body })
      const parsed = outputsShape.safeParse(readJson(answer.body))
      if (answer.status !== 200 || !parsed.success)
        throw new CommandError(`${this.url} answers ${service} with HTTP ${answer.status} and no tokens`)
      for (const { beef, outputIndex: vout } of parsed.data.outputs)
        found.push({ transaction: read(beef), vout })
    }
    return found
  }

  /**
   * Submits a transaction as one that advertises.
   *
   * @returns What to say if another transaction, which spends the same coins, counts for the server.
   * @throws CommandError if it does not take it for any other reason, which may be a proxy's.
   */
  async submit(transaction: Transaction): Promise<CommandError | undefined> {
    const { txid, signature } = approvalOf(this.key, transaction.id('hex'))
    const approval = { [APPROVAL_HEADER]: `${txid}.${signature}` }
    const { signal } = this
    const { status, body } = await this.within(() => submitTo(this.url, transaction, { signal, approval }))
    if (status === 200) return undefined
    const said = refusal.safeParse(readJson(body))
    const why = said.success ? said.data.error : `HTTP ${status}`
    const error = new CommandError(`${this.url} refuses ${txid}: ${why}`, {
      exit: isPassing(status) ? 'unavailable' : 'refused',
    })
    if (status === 409 && said.success) return error
    throw error
  }

  private async ask(path: string, init: RequestInit) {
    const bounds = { timeout: PATIENCE, maxBytes: MAX_ANSWER_BYTES, signal: this.signal }
    const answer = await this.within(() => fetchBounded(this.url + path, init, bounds))
    if (isPassing(answer.status))
      throw new CommandError(`${this.url}${path} answers HTTP ${answer.status}: try again later`, {
        exit: 'unavailable',
      })
    return answer
  }

  private async within<Answer>(asking: () => Promise<Answer>): Promise<Answer> {
    try {
      return await asking()
    } catch (cause) {
      if (!(cause instanceof SourceError)) throw cause
      throw new CommandError(messageOf(cause), { cause, exit: 'unavailable' })
    }
  }
}

/** Whether a status may be another one later: of a server that starts or is busy, or of a proxy before it. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 429
}

function read(beef: number[]): Transaction {
  try {
    return readBeefTransaction(Uint8Array.from(beef), { hash: nativeHash256 })
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new CommandError(`the server answered with an unreadable token: ${cause.message}`, { cause })
  }
}
