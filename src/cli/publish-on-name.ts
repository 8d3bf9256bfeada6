import { basename, resolve } from 'node:path'
import { acceptedTypes } from '../../backend/src/graph/topic-rules.js'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { readInscription } from '../../backend/src/protocol/inscription.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { PATCH_TYPE } from '../../backend/src/protocol/patch.js'
import { type Holder, inscribingMove } from '../identity/move-name.js'
import { nameSteps } from '../identity/name-coin.js'
import { highestFee } from '../payments/draft.js'
import { NOBODY_LOCK } from '../payments/fake.js'
import type { Payment } from '../payments/journal.js'
import { DEFAULT_FEE_RATE } from '../payments/key.js'
import type { DirectoryFormat } from '../publish/folder.js'
import { planReturn, planSite, type SiteChange, type SitePlan } from '../publish/plan.js'
import { type Published, publishedOn } from '../publish/published.js'
import { transactionSize } from '../publish/transaction-size.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'
import { CommandError, usageError } from './command.js'
import {
  changeName,
  type FoundName,
  findName,
  isFakeMoney,
  type MoveOptions,
  ownLock,
  reportFinished,
} from './move-name.js'
import { bytesText, grouped } from './output.js'
import { type AddressOf, OverlayServer } from './overlay-server.js'
import { MAX_WALLET_TRANSACTION } from './pay-services.js'
import { holderOf, nextCommand, shellWord } from './payment.js'
import { NO_HOSTS, NO_INDEX, noteLeftOut, noteRedirects } from './publish.js'
import { findAt, readEntries } from './publish-files.js'

export interface PublishOnNameOptions extends Omit<MoveOptions, 'maxFee'> {
  /** A file or a folder; without it, {@link to} is given. */
  path?: string
  /** The number of an earlier state to restore. */
  to?: number
  format: DirectoryFormat
  /** Whether content that differs little from what the name shows may be published as a patch on it. */
  patches: boolean
  /** Only shows what would be published, and what it would cost. */
  dryRun: boolean
  /** The highest fee, in satoshis; by default {@link highestFee}. */
  maxFee?: number
}

/**
 * Publishes a file or a folder on a name, or restores an earlier state. One transaction spends the name into the output with the
 * file or the directory, which the name shows from then on, followed by all files that the name has not inscribed before. An
 * identity binding stays. A publication that an earlier command had signed is finished first; this one is published after it.
 *
 * @throws CommandError; IdentityError; MiningError; PublishError; ResolutionError; ProofError; HeadersError.
 */
export async function runPublishOnName(options: PublishOnNameOptions): Promise<void> {
  const { path, to, name, output } = options
  if ((path === undefined) === (to === undefined))
    throw usageError('say what to publish: a file or a folder, or --to with the number of a state')
  // A dry run needs no key.
  const holder = options.dryRun ? {} : await holderOf(options)
  for (;;) {
    const update = await planUpdate(options, holder)
    if (options.dryRun) return showPlan(update)
    const finished = await pay(update)
    if (finished === undefined) return
    if (finished.kind !== 'publish') return reportFinished(name, finished, output)
    output.note(`finished the change of ${name} that an earlier command had signed: ${finished.txid}`)
  }
}

interface Update {
  options: PublishOnNameOptions
  named: FoundName
  published: Published
  lock: Uint8Array
  plan: SitePlan
  /** The approximate size of the transaction. */
  bytes: number
  addressOf: AddressOf
  /** Part of the result. */
  summary: object
}

async function planUpdate(options: PublishOnNameOptions, holder: Holder): Promise<Update> {
  const { path, to = 0, name, url, output, signal, dryRun, format } = options
  const server = new OverlayServer(url, signal)
  const files = path === undefined ? undefined : await findAt(path, basename(resolve(path)))
  if (files !== undefined) noteLeftOut(files.leftOut, output)
  const named = await findName(options, holder)
  const { checked, provenance } = named
  const { profile } = checked.config
  const addressOf = await server.sites()
  const { contentTypes } = await server.deployment()
  const accepts = contentTypes === undefined ? () => true : acceptedTypes(contentTypes)
  const patches = options.patches && accepts(PATCH_TYPE)
  const published = publishedOn({ steps: nameSteps({ name, tip: checked.tip, provenance }), profile })
  const lock = dryRun ? NOBODY_LOCK : await ownLock(named)
  const site = files && (await readEntries(files.found))
  if (site !== undefined) noteRedirects(site, output)
  const plan =
    site === undefined
      ? planReturn({ published, sequence: to, lock })
      : planSite({ site, lock, profile, format, published, patches })
  requireAccepted(plan, accepts, url)
  const bytes = transactionSize({ inputs: 2, outputs: plan.outputs })
  const { isUnchanged } = plan
  return {
    ...{ options, named, published, lock, plan, bytes, addressOf },
    summary: {
      ...{ name, isUnchanged, ...countsOf(plan.changes), ...(files && { leftOut: files.leftOut }) },
      ...(!isUnchanged && { transactionBytes: bytes }),
    },
  }
}

/** @throws CommandError if the server would leave out paid content. */
function requireAccepted({ outputs }: SitePlan, accepts: (type: string) => boolean, url: string): void {
  for (const { lockingScript } of outputs) {
    const { contentType } = readInscription(lockingScript).content ?? {}
    if (contentType !== undefined && !accepts(contentType))
      throw new CommandError(`nothing is paid: ${url} accepts no content of type ${contentType}`, {
        exit: 'refused',
      })
  }
}

function showPlan(update: Update): void {
  const { options, plan, summary } = update
  const { changes, isUnchanged } = plan
  const { fee, satoshis } = costOf(update)
  const lines = changes.map(({ kind, path, bytes, patch }) => {
    const size = bytesText(bytes) + (patch === undefined ? '' : `, as a patch of ${bytesText(patch)}`)
    return escapeControlChars(`${kind.padEnd(7)} ${path} (${size})`)
  })
  options.output.result(
    { ...summary, dryRun: true, ...(!isUnchanged && { fee, satoshis }), changes },
    ...(isUnchanged ? [unchangedText(update)] : [...lines, costText(update)]),
  )
}

/** @returns A change that an earlier command had left unfinished, if there was one: then nothing else was done. */
async function pay(update: Update): Promise<Payment | undefined> {
  const { options, named, published, lock, plan, bytes, summary } = update
  const { name, path, output, feeRate = DEFAULT_FEE_RATE } = options
  const { coin, holder } = named
  const maxFee = options.maxFee ?? highestFee(bytes, feeRate)
  const sequence = published.sequence + 1
  return await changeName({ ...options, maxFee }, named, {
    kind: 'publish',
    async move() {
      if (plan.isUnchanged) {
        const url = addressAt(coin.outpoint, update)
        output.result({ ...summary, url }, url)
        output.note(unchangedText(update))
        return undefined
      }
      output.note(costText(update))
      if (holder.wallet !== undefined) requireShortAnswer(update)
      return await inscribingMove(named, { lock, outputs: plan.outputs })
    },
    report({ transaction, fee }) {
      const outpoint = { txid: transaction.id('hex'), vout: 0 }
      const url = addressAt(outpoint, update)
      output.result({ ...summary, outpoint: formatOutpoint(outpoint), sequence, url, fee }, url)
      if (!plan.hasIndex) output.note(NO_INDEX)
      const next = ['publish', path === undefined ? '<folder>' : shellWord(path), '--name', name]
      output.note(`this is state ${sequence} of ${name}; to publish the next: ${nextCommand(next, options)}`)
      if (published.shown !== undefined)
        output.note(
          `to go back to state ${sequence - 1}: ${nextCommand(['publish', '--name', name, '--to', String(sequence - 1)], options)}`,
        )
    },
  })
}

/** The URL of the name, once its content is in this output. */
function addressAt(outpoint: Outpoint, { options, named, addressOf }: Update): string {
  const { name, url, output } = options
  const address = addressOf({ outpoint, name })
  if (address !== undefined) return address
  output.note(NO_HOSTS)
  return `${url.replace(/\/+$/, '')}/content/${formatOutpoint(named.checked.origin.origin)}:-1/`
}

/** @throws CommandError if a wallet's answer, with the transaction and the one that it spends, would be too long. */
function requireShortAnswer({ options, named, bytes }: Update): void {
  const all = bytes + writeBeef(named.coin.transaction).length
  if (all > MAX_WALLET_TRANSACTION)
    throw usageError(
      `${options.path ?? `state ${options.to}`} needs a transaction of ${grouped(bytes)} bytes, ${grouped(all)} with those that it spends, but the answer of a wallet holds at most ${grouped(MAX_WALLET_TRANSACTION)}`,
    )
}

function unchangedText({ options: { name } }: Update): string {
  return `nothing changed: ${name} shows this already; nothing needs to be paid`
}

/** The cost at the rate of a key; a wallet has its own rate. */
function costOf({ options, plan, bytes }: Update): { rate: number; fee: number; satoshis: number } {
  const { feeRate: rate = DEFAULT_FEE_RATE } = options
  const fee = Math.ceil((bytes * rate) / 1000)
  // The first output has the satoshi of the name.
  return { rate, fee, satoshis: fee + plan.outputs.length - 1 }
}

/** One line with what is published, and its cost. */
function costText(update: Update): string {
  const { options, named, plan, bytes } = update
  const { to, name } = options
  const counts = Object.entries(countsOf(plan.changes)).filter(([, count]) => count > 0)
  const what =
    to === undefined
      ? `publishing on ${name}: ${counts.map(([kind, count]) => `${grouped(count)} ${kind}`).join(', ')}`
      : `putting state ${to} of ${name} back`
  const { rate, fee, satoshis } = costOf(update)
  const cost = isFakeMoney(options, named)
    ? 'the money is fake'
    : `about ${grouped(satoshis)} satoshis: a fee of ${grouped(fee)} (${rate} per 1,000 bytes), and 1 for each new file and directory`
  const patches = plan.changes.filter(({ patch }) => patch !== undefined).length
  const asPatches = patches === 0 ? '' : `, ${grouped(patches)} as ${patches === 1 ? 'a patch' : 'patches'}`
  return `${what}${asPatches}; in 1 transaction of ${grouped(bytes)} bytes, ${cost}`
}

/** How many files are new, changed, kept and removed. */
function countsOf(changes: readonly SiteChange[]): Record<SiteChange['kind'], number> {
  const counts = { new: 0, changed: 0, kept: 0, removed: 0 }
  for (const { path, kind } of changes) if (!path.endsWith('/') || kind === 'removed') counts[kind]++
  return counts
}
