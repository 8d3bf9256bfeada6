import { type PrivateKey, ProtoWallet, type Transaction } from '@bsv/sdk'
import { z } from 'zod'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import type { BindingProfile } from '../../backend/src/protocol/identity-binding.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { fetchBounded, readJson } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import { type BindingTerms, bindingLock, requireBindingLock } from '../identity/binding-lock.js'
import {
  askedOnce,
  type BindingWallet,
  moveWithFakeFunding,
  moveWithKey,
  moveWithWallet,
  walletLock,
} from '../identity/move-name.js'
import { type NameCoin, nameCoin } from '../identity/name-coin.js'
import { DEFAULT_FEE_RATE, p2pkhLockOf } from '../mining/fund-with-key.js'
import { refusalOf } from '../mining/server-answers.js'
import { feeOf } from '../mining/sign-with-wallet.js'
import { CommandError, ownerLock } from './command.js'
import { LocalServer } from './local-server.js'
import { MintFolder } from './mint-folder.js'
import { coinsOf, readTransactions } from './mint-payers.js'
import {
  arcFor,
  readKey,
  type SendMint,
  type SendOutcome,
  sendThroughArc,
  sendThroughWallet,
  walletAt,
} from './mint-services.js'
import { type CheckedName, checkName } from './name-check.js'
import { grouped } from './output.js'
import {
  confirmPayment,
  feeRateText,
  type PaymentOptions,
  recordOutcome,
  requireOnePayer,
} from './payment.js'

/** What is to become of a name. */
export type Deed =
  | { kind: 'bind'; terms: BindingTerms; printLock: boolean }
  | { kind: 'unbind' }
  /** To an address, or into a lock that the new holder has made. */
  | { kind: 'transfer'; address?: string; lock?: string }

export interface MoveOptions extends PaymentOptions {
  name: string
  /** The URL of the server. */
  url: string
  genesis?: string
  /** The highest fee, in satoshis. */
  maxFee: number
  env: Record<string, string | undefined>
}

/** Who holds a name, or is to be bound to it. */
type Holder = { kind: 'wallet'; wallet: BindingWallet } | { kind: 'key'; key: PrivateKey }

/**
 * Binds, unbinds or transfers a name that is verified first, and prints where it is then.
 *
 * @throws CommandError; IdentityError; MiningError; ResolutionError; ProofError; HeadersError.
 */
export async function runMove(options: MoveOptions, deed: Deed): Promise<void> {
  const { name, url, genesis, env, output } = options
  if (deed.kind === 'transfer' && (deed.address === undefined) === (deed.lock === undefined))
    throw new CommandError('say where the name goes: an address, or --lock', { exit: 'usage' })
  const holder = await holderOf(options)
  const checked = await checkName({
    ...{ name, urls: [url], requireProofs: false, env, output },
    ...(genesis !== undefined && { genesis }),
  })
  const coin = await coinOf(checked, options)
  if (deed.kind === 'bind' && deed.printLock) {
    const lock = await lockFor(deed, { coin, holder, checked })
    output.result({ name, spends: formatOutpoint(coin.outpoint), lock: toHex(lock) }, toHex(lock))
    output.note(
      'whoever holds the name can move it into this lock: minetree transfer --lock; it counts for that move alone',
    )
    return
  }
  const found = { coin, holder, checked }
  const payer = await payerFor(found, options)
  try {
    if (payer !== undefined && (await finishEarlier({ coin, checked, payer }, options))) return
    const lock = await lockFor(deed, found)
    if (deed.kind === 'transfer' && deed.lock === undefined && checked.identity.state === 'bound')
      output.note(`this leaves ${name} bound to no identity`)
    const { transaction, beef, fee } = await pay({ ...found, lock, payer }, options)
    await submit(options, { beef, name })
    const txid = transaction.id('hex')
    await payer?.folder.setState(txid, 'known')
    const outpoint = formatOutpoint({ txid, vout: 0 })
    output.result({ name, outpoint, fee }, `${name} ${outpoint}`)
    if (fee > 0) output.note(`paid ${grouped(fee)} satoshis of fees`)
  } finally {
    await payer?.folder.release()
  }
}

/** Who pays, and where what is paid is stored. */
interface Payer {
  holder: Holder
  folder: MintFolder
}

/** Undefined if the money is fake. */
async function payerFor(
  { holder, checked }: Found,
  { coins, folder }: MoveOptions,
): Promise<Payer | undefined> {
  if (checked.config.profile.name === 'local' && holder?.kind !== 'wallet' && coins.length === 0)
    return undefined
  if (holder !== undefined) return { holder, folder: await MintFolder.at(folder) }
  throw new CommandError('say who holds the name: use --wallet, or --key-file with --coins', {
    exit: 'usage',
  })
}

async function holderOf(options: MoveOptions): Promise<Holder | undefined> {
  const { wallet, keyFile, signal } = options
  requireOnePayer(options)
  if (wallet !== undefined) return { kind: 'wallet', wallet: askedOnce(walletAt(wallet, signal)) }
  return keyFile === undefined ? undefined : { kind: 'key', key: await readKey(keyFile, signal) }
}

/** In milliseconds, and bytes. */
const BOUNDS = { timeout: 50_000, maxBytes: 64 * 1024 * 1024 }

async function coinOf({ name, tip, origin }: CheckedName, options: MoveOptions): Promise<NameCoin> {
  const path = `/svc/gateway/provenance/${formatOutpoint(origin.origin)}`
  const { status, body } = await ask(options, path, {})
  if (status !== 200)
    throw new CommandError(`${options.url} shows no provenance of ${name}: HTTP ${status}`, {
      exit: status >= 500 ? 'unavailable' : 'failure',
    })
  return nameCoin({ name, tip, provenance: body })
}

interface Found {
  coin: NameCoin
  holder: Holder | undefined
  checked: CheckedName
}

async function lockFor(deed: Deed, { coin, holder, checked }: Found): Promise<Uint8Array> {
  const { name } = coin
  if (deed.kind === 'transfer') {
    if (deed.address !== undefined) return ownerLock(deed.address, checked.config.network)
    const lock = lockOf(deed.lock ?? '')
    requireBindingLock({ coin, lock })
    return lock
  }
  if (holder === undefined)
    throw new CommandError('say whose name it is: use --wallet or --key-file', { exit: 'usage' })
  if (deed.kind === 'bind') {
    const signer = holder.kind === 'wallet' ? holder.wallet : new ProtoWallet(holder.key)
    return await bindingLock({ coin, signer, ...deed.terms })
  }
  if (checked.identity.state === 'unbound')
    throw new CommandError(`${name} is bound to no identity`, { exit: 'refused' })
  return holder.kind === 'wallet'
    ? await walletLock(holder.wallet, name)
    : p2pkhLockOf(holder.key.toPublicKey())
}

function lockOf(hex: string): Uint8Array {
  try {
    return fromHex(hex)
  } catch {
    throw new CommandError('--lock must be hex, as minetree bind --print-lock prints it', { exit: 'usage' })
  }
}

interface Paid {
  transaction: Transaction
  beef: Uint8Array
  /** In satoshis. */
  fee: number
}

/**
 * Finishes an earlier move of the name that was signed and perhaps not sent: until then its wallet makes no other.
 *
 * @returns Whether there was one.
 * @throws CommandError if it is not known whether it counts.
 */
async function finishEarlier(
  { coin, checked, payer }: Pick<Found, 'coin' | 'checked'> & { payer: Payer },
  options: MoveOptions,
): Promise<boolean> {
  const { output } = options
  const { name } = coin
  const { folder, holder } = payer
  const { mints } = await folder.read()
  const earlier = mints.find(
    ({ state, transaction }) => (state === 'pending' || state === 'sent') && spends(transaction, coin),
  )
  if (earlier === undefined) return false
  const { txid, transaction } = earlier
  if (earlier.state === 'pending') {
    const outcome = await sent(
      { transaction, name },
      senderFor(holder, { ...options, config: checked.config }),
    )
    if (outcome.kind === 'refused') {
      // A wallet says so of what another one has signed, too.
      if (holder.kind === 'key') await folder.setState(txid, 'lost')
      return false
    }
    await recordOutcome(folder, { txid, outcome, later: SEND_AGAIN })
  }
  await submit(options, { beef: writeBeef(transaction), name })
  await folder.setState(txid, 'known')
  const outpoint = formatOutpoint({ txid, vout: 0 })
  output.result({ name, outpoint, submittedAgain: true }, `${name} ${outpoint}`)
  output.note(
    `an earlier command had signed this move of ${name}; it is finished now, and nothing else was done: run the command again if you want another`,
  )
  return true
}

const SEND_AGAIN = 'it is stored: run the same command again to send it once more'

function spends({ inputs }: Transaction, { outpoint }: NameCoin): boolean {
  return inputs.some(
    ({ sourceTXID, sourceTransaction, sourceOutputIndex }) =>
      sourceOutputIndex === outpoint.vout && (sourceTXID ?? sourceTransaction?.id('hex')) === outpoint.txid,
  )
}

/** Makes the transaction, and sends it to the network if there is one. */
async function pay(
  move: Found & { lock: Uint8Array; payer: Payer | undefined },
  options: MoveOptions,
): Promise<Paid> {
  const { coin, lock, checked, payer } = move
  const { url, coins, maxFee, feeRate = DEFAULT_FEE_RATE, output, yes } = options
  if (payer === undefined) {
    // A server of the live network that checks no proofs would take a fake transaction for a real one.
    await LocalServer.at(url)
    const key = move.holder?.kind === 'key' ? move.holder.key : undefined
    return { ...(await moveWithFakeFunding({ coin, lock, ...(key && { key }) })), fee: 0 }
  }
  const { holder, folder } = payer
  output.note(`the fee is paid ${feeRateText(options)}: at most ${grouped(maxFee)} satoshis`)
  await confirmPayment({ ask: options.ask, isAgreed: yes, output })
  // Before it is sent, so that it can be sent again and its change is not lost.
  const keep = async (signed: Transaction): Promise<void> =>
    await folder.keep(signed.id('hex'), writeBeef(signed))
  let transaction: Transaction
  if (holder.kind === 'wallet')
    transaction = await moveWithWallet({ coin, lock, wallet: holder.wallet, maxFee, keep })
  else {
    const known = { coins: await readTransactions(coins), ...(await folder.read()) }
    transaction = await moveWithKey({
      ...{ coin, lock, key: holder.key, feeRate, maxFee },
      coins: coinsOf(holder.key, known),
    })
    await keep(transaction)
  }
  const txid = transaction.id('hex')
  const send = senderFor(holder, { ...options, config: checked.config })
  const outcome = await sent({ transaction, name: coin.name }, send)
  await recordOutcome(folder, { txid, outcome, later: SEND_AGAIN })
  return { transaction, beef: writeBeef(transaction), fee: feeOf(transaction) }
}

function senderFor(holder: Holder, options: MoveOptions & Pick<CheckedName, 'config'>): SendMint | undefined {
  if (holder.kind === 'wallet') return sendThroughWallet(holder.wallet, (name) => `Send the name ${name}`)
  const arc = arcFor(options)
  return arc && sendThroughArc(arc)
}

/** Without a network, the server alone decides. */
async function sent(
  moved: { transaction: Transaction; name: string },
  send: SendMint | undefined,
): Promise<SendOutcome> {
  return (await send?.(moved)) ?? { kind: 'accepted', why: '' }
}

const steak = z.object({ [TOPICS.ordinals]: z.object({ outputsToAdmit: z.array(z.number()) }) })

/** Submits what moves a name, whose output 0 has to be admitted. */
async function submit(
  options: MoveOptions,
  { beef, name }: { beef: Uint8Array; name: string },
): Promise<void> {
  const { url } = options
  const headers = {
    'Content-Type': 'application/octet-stream',
    'X-Topics': JSON.stringify([TOPICS.ordinals]),
  }
  const { status, body } = await ask(options, '/submit', {
    method: 'POST',
    headers,
    body: Uint8Array.from(beef),
  })
  const json = readJson(body)
  const refused = refusalOf(json)
  if (refused !== undefined)
    throw new CommandError(`${url} refuses to move ${name} (${status} ${refused.code}): ${refused.error}`, {
      exit: status === 503 ? 'unavailable' : 'refused',
    })
  const taken = steak.safeParse(json)
  if (taken.success && taken.data[TOPICS.ordinals].outputsToAdmit.includes(0)) return
  throw new CommandError(`${url} did not admit what moves ${name}: its log says why`, { exit: 'refused' })
}

async function ask(
  { url, signal }: MoveOptions,
  path: string,
  init: RequestInit,
): Promise<{ status: number; body: Uint8Array }> {
  try {
    return await fetchBounded(url.replace(/\/+$/, '') + path, init, { ...BOUNDS, signal })
  } catch (cause) {
    if (!(cause instanceof SourceError)) throw cause
    throw new CommandError(cause.message, { cause, exit: 'unavailable' })
  }
}

/** The attributes of a profile on the command line; an empty one is removed. */
export function profileArguments(
  given: { [Key in keyof BindingProfile]?: BindingProfile[Key] | '' },
): BindingTerms {
  const set = Object.entries(given).filter(([, value]) => value !== undefined)
  if (set.length === 0) return {}
  return { profile: Object.fromEntries(set.map(([key, value]) => [key, value === '' ? undefined : value])) }
}
