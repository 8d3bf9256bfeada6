import { isDeepStrictEqual } from 'node:util'
import { equalBytes, fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import type { BindingProfile } from '../../backend/src/protocol/identity-binding.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { type BindingTerms, bindingIn, bindingLock, requireBindingLock } from '../identity/binding-lock.js'
import { draftMove, type Holder, type NameMove, signerOf } from '../identity/move-name.js'
import { type NameCoin, nameCoin } from '../identity/name-coin.js'
import { MiningError } from '../mining/mining-error.js'
import { ordinalsIn } from '../mining/server-answers.js'
import type { Paid } from '../payments/draft.js'
import { NOBODY_LOCK } from '../payments/fake.js'
import type { Payment, Purpose } from '../payments/journal.js'
import { p2pkhLockOf } from '../payments/key.js'
import type { Destination } from '../payments/payments.js'
import { walletLock } from '../payments/wallet-keys.js'
import { CommandError, ownerLock, usageError } from './command.js'
import { type CheckedName, checkName } from './name-check.js'
import { type CommandOutput, grouped } from './output.js'
import { MAX_BEEF_BYTES, OverlayServer } from './overlay-server.js'
import {
  confirmPayment,
  feeRateText,
  holderOf,
  openPayments,
  type PaymentOptions,
  payAndSubmit,
  reportFollowed,
} from './payment.js'

export type Deed =
  | { kind: 'bind'; terms: BindingTerms; printLock: boolean }
  | { kind: 'unbind' }
  /** To an address, or into a lock made by the new holder. */
  | { kind: 'transfer'; address?: string; lock?: string }

export interface MoveOptions extends PaymentOptions {
  name: string
  url: string
  genesis?: string
  /** The highest fee, in satoshis. */
  maxFee: number
}

/**
 * Verifies a name, then binds, unbinds or transfers it, and prints where it is afterwards.
 *
 * @throws CommandError; IdentityError; MiningError; ResolutionError; ProofError; HeadersError.
 */
export async function runMove(options: MoveOptions, deed: Deed): Promise<void> {
  const { name, output } = options
  if (deed.kind === 'transfer' && (deed.address === undefined) === (deed.lock === undefined))
    throw usageError('say where the name goes: an address, or --lock')
  const found = await findName(options)
  const { checked } = found
  if (deed.kind === 'bind' && deed.printLock) {
    const lock = await lockFor(deed, found)
    const spends = formatOutpoint(found.coin.outpoint)
    output.result({ name, spends, lock: toHex(lock) }, toHex(lock))
    output.note(
      'whoever holds the name can transfer it to this lock with minetree transfer --lock; the lock is good for that transfer only',
    )
    return
  }
  const finished = await changeName(options, found, {
    kind: 'move',
    async move() {
      const lock = await lockFor(deed, found)
      if (isLockedSo(found, lock)) {
        const outpoint = formatOutpoint(found.coin.outpoint)
        output.result({ name, outpoint, isUnchanged: true }, `${name} ${outpoint}`)
        output.note(`nothing changed: ${name} has this lock already; nothing needs to be paid`)
        return undefined
      }
      if (deed.kind === 'transfer' && deed.lock === undefined && checked.identity.state === 'bound')
        output.note(`this leaves ${name} bound to no identity`)
      return { lock }
    },
    report({ transaction, fee }) {
      const outpoint = formatOutpoint({ txid: transaction.id('hex'), vout: 0 })
      output.result({ name, outpoint, fee }, `${name} ${outpoint}`)
    },
  })
  if (finished !== undefined) reportFinished(name, finished, output)
}

/** Whether a move would change nothing. Each output has its own lock for a binding, so what the bindings say is compared. */
function isLockedSo({ coin, checked: { identity } }: FoundName, lock: Uint8Array): boolean {
  const next = bindingIn({ coin, lock })
  if (next.state !== 'bound') return equalBytes(coin.lockingScript.subarray(0, lock.length), lock)
  const { keyId: _, lockingKey: __, ...said } = next
  return isDeepStrictEqual({ ...identity, ...said }, identity)
}

/** Reports that a change signed by an earlier command was finished, and nothing else was done. */
export function reportFinished(name: string, { txid }: Payment, output: CommandOutput): void {
  const outpoint = formatOutpoint({ txid, vout: 0 })
  output.result({ name, outpoint, submittedAgain: true }, `${name} ${outpoint}`)
  output.note(
    `finished the change of ${name} that an earlier command had signed; nothing else was done: run the command again for another change`,
  )
}

/** A verified name, and the holder who moves it. */
export interface FoundName {
  coin: NameCoin
  /** The BEEF with the transactions that have moved it. */
  provenance: Uint8Array
  holder: Holder
  checked: CheckedName
}

/**
 * Resolves and verifies a name, and finds the transaction of its output.
 *
 * @param given The holder who moves it; by default, the one in the options.
 */
export async function findName(options: Omit<MoveOptions, 'maxFee'>, given?: Holder): Promise<FoundName> {
  const { name, url, genesis, env, output, signal } = options
  const holder = given ?? (await holderOf(options))
  const checked = await checkName({
    ...{ name, urls: [url], requireProofs: false, env, output, signal },
    ...(genesis !== undefined && { genesis }),
  })
  const provenance = checked.provenance ?? (await askProvenance(options, checked))
  return { coin: nameCoin({ name, tip: checked.tip, provenance }), provenance, holder, checked }
}

async function askProvenance(
  { name, url, signal }: Pick<MoveOptions, 'name' | 'url' | 'signal'>,
  { origin }: CheckedName,
): Promise<Uint8Array> {
  const path = `/svc/gateway/provenance/${formatOutpoint(origin.origin)}`
  const { status, body } = await new OverlayServer(url, signal).ask(path, { maxBytes: MAX_BEEF_BYTES })
  if (status === 200) return body
  throw new CommandError(`${url} shows no provenance of ${name}: HTTP ${status}`, {
    exit: status >= 500 ? 'unavailable' : 'failure',
  })
}

/**
 * Makes a transaction that spends a name into its first output, sends it, and submits it to the server. If an earlier command has
 * paid for a change of the name, only that change is finished.
 *
 * @param change.move Where the name goes, if anywhere; called once it is known that nothing is left of an earlier command.
 * @returns The finished change of an earlier command, if there was one.
 */
export async function changeName(
  options: MoveOptions,
  { coin, holder, checked }: FoundName,
  change: {
    kind: 'move' | 'publish'
    move(): Promise<Pick<NameMove, 'lock' | 'behind' | 'outputs'> | undefined>
    report(paid: Paid): void
  },
): Promise<Payment | undefined> {
  const { name, url, maxFee, output, signal } = options
  const { config, genesis, chainTracker } = checked
  const isFake = isFakeMoney(options, { checked })
  if (!isFake && holder.wallet === undefined && holder.key === undefined)
    throw usageError('choose the holder of the name: use --wallet, or --key-file with --coins')
  const server = new OverlayServer(url, signal)
  const to = nameDestination(server, chainTracker)
  const payments = isFake ? undefined : await openPayments(holder, { ...options, config })
  try {
    const purpose: Purpose = { kind: change.kind, subject: name, place: genesis }
    const of = { kinds: ['move', 'publish'] as const, subject: name, place: genesis }
    const earlier = (await payments?.followUp(of, to)) ?? []
    const finished = earlier.findLast(({ payment, outcome }) => outcome === 'admitted' && !payment.isAdmitted)
    if (finished !== undefined) return finished.payment
    const stuck = earlier.find(({ outcome }) => outcome === 'undecided')
    if (stuck !== undefined)
      throw new MiningError(
        'UNDECIDED',
        `${name} is unchanged: ${stuck.payment.txid}, which an earlier command signed, may still count: ${stuck.why}; it is stored: run the same command again to resend it`,
      )
    reportFollowed(earlier, output)
    const move = await change.move()
    if (move === undefined) return undefined
    const draft = await draftMove({ coin, holder, maxFee, ...move })
    // A server of the live network that checks no proofs would accept a fake transaction as real.
    if (payments === undefined) await server.requireLocal()
    else
      await confirmPayment(
        [`the fee is paid ${feeRateText(options)}: at most ${grouped(maxFee)} satoshis`],
        options,
      )
    const paid = await payAndSubmit(payments, { draft, purpose, to })
    change.report(paid)
    if (paid.fee > 0) output.note(`paid ${grouped(paid.fee)} satoshis of fees`)
    return undefined
  } finally {
    payments?.journal.close()
  }
}

/** Whether nobody pays: on a local network, without a wallet and without coins. */
export function isFakeMoney(
  { wallet, coins }: Pick<MoveOptions, 'wallet' | 'coins'>,
  { checked }: Pick<FoundName, 'checked'>,
): boolean {
  return checked.config.profile.name === 'local' && wallet === undefined && coins.length === 0
}

/** The server as the destination of a transaction that spends a name, whose ordinals must all be admitted. */
function nameDestination(server: OverlayServer, chainTracker: Destination['chainTracker']): Destination {
  return server.destination({
    chainTracker,
    async submit({ transaction, beef, subject }) {
      const called = `to move ${subject}`
      const said = await server.submit({ beef, topics: [TOPICS.ordinals], called })
      if (said.kind === 'conflict') return said
      const { all, left } = ordinalsIn(transaction, said.admitted[TOPICS.ordinals])
      if (left === 0) return { kind: 'admitted' }
      throw new CommandError(
        `${server.url} did not admit ${left} of ${all} outputs of the transaction that moves ${subject}: its log says why`,
        { exit: 'refused' },
      )
    },
  })
}

async function lockFor(deed: Deed, { coin, holder, checked }: FoundName): Promise<Uint8Array> {
  const { name } = coin
  if (deed.kind === 'transfer') {
    if (deed.address !== undefined) return ownerLock(deed.address, checked.config.network)
    const lock = lockOf(deed.lock ?? '')
    requireBindingLock({ coin, lock })
    return lock
  }
  const signer = signerOf(holder)
  if (signer === undefined) throw usageError('choose the holder of the name: use --wallet or --key-file')
  if (deed.kind === 'bind') return await bindingLock({ coin, signer, ...deed.terms })
  if (checked.identity.state === 'unbound')
    throw new CommandError(`${name} is bound to no identity`, { exit: 'refused' })
  return await ownLock({ coin, holder })
}

/** The lock of a name's holder, bound to no identity. */
export async function ownLock({ coin, holder }: Pick<FoundName, 'coin' | 'holder'>): Promise<Uint8Array> {
  if (holder.wallet !== undefined) return await walletLock(holder.wallet, coin.name)
  return holder.key === undefined ? NOBODY_LOCK : p2pkhLockOf(holder.key.toPublicKey())
}

function lockOf(hex: string): Uint8Array {
  try {
    return fromHex(hex)
  } catch {
    throw usageError('--lock must be hex, as minetree bind --print-lock prints it')
  }
}

/** The profile attributes on the command line; an empty one is removed. */
export function profileArguments(
  given: { [Key in keyof BindingProfile]?: BindingProfile[Key] | '' },
): BindingTerms {
  const set = Object.entries(given).filter(([, value]) => value !== undefined)
  if (set.length === 0) return {}
  return { profile: Object.fromEntries(set.map(([key, value]) => [key, value === '' ? undefined : value])) }
}
