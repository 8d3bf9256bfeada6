import type { Network } from '../../backend/src/protocol/address.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { withTimeLimit } from '../client/bounded-fetch.js'
import type { VerifiedNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { budgetFor, type MiningBudget } from '../mining/budget.js'
import { ownersMint } from '../mining/live-node.js'
import { HttpMineIndex, type MineIndex } from '../mining/mine-index.js'
import { mineName, requireMinableName } from '../mining/mine-name.js'
import { MiningError, NodeMovedError } from '../mining/mining-error.js'
import type { MintPayer, PaidMint } from '../mining/mint-transaction.js'
import { type ServerDeployment, serverDeployment } from '../mining/server-deployment.js'
import { p2pkhLockOf } from '../payments/key.js'
import { FAKE_MINT_PAYER, mintPayer, walletOwner } from '../payments/mints.js'
import type { Destination, Followed, Payments } from '../payments/payments.js'
import type { Config } from '../server/config/config.js'
import { CommandError, ownerLock } from './command.js'
import { expectedTree, type KnownTrees } from './known-trees.js'
import { byOtherText, MiningProgress } from './mining-progress.js'
import { grouped } from './output.js'
import { OverlayServer, serverUrl } from './overlay-server.js'
import { openOwnHeaders } from './own-headers.js'
import {
  confirmPayment,
  feeRateText,
  holderOf,
  nextCommand,
  openPayments,
  type PaymentOptions,
  reportFollowed,
} from './payment.js'

export interface MineOptions extends PaymentOptions {
  name: string
  url: string
  /** The owner's P2PKH address. */
  owner?: string
  workers?: number
  /** Limits on its cost. */
  budget: Partial<MiningBudget>
  /** A server that contradicts these settings is not used. */
  config: Config
  /** Set only if the user or the profile determines it. */
  network: Network | undefined
  /** Used if no genesis is configured. */
  knownTrees: KnownTrees
}

/**
 * Mines the missing characters of a name, submits each mint to `tm_names` and `tm_ordinals`, and prints its outpoint and
 * fee. First it sends mints that were paid for earlier and are in no index yet.
 *
 * @throws CommandError; MiningError; MintError; HeadersError; the reason of the signal.
 */
export async function runMine(options: MineOptions): Promise<void> {
  // Report a mistake on the command line before anything is requested.
  if (options.owner !== undefined) ownerLock(options.owner)
  const { maxTime } = budgetFor(options.name.length, options.budget)
  const late = (): Error =>
    new MiningError('OVER_BUDGET', `mining took longer than ${timeText(maxTime)} (--max-time)`)
  await withTimeLimit({ milliseconds: maxTime, late, signal: options.signal }, async (signal) => {
    await mineWith({ ...options, signal })
  })
  await noteWhatNext(options)
}

/** Says where the site of a mined name is, and how to publish it. */
async function noteWhatNext(options: MineOptions): Promise<void> {
  const { name, url, owner, output, signal } = options
  const server = new OverlayServer(url, signal)
  const address = await server.sites().then(
    (addressOf) => addressOf({ name }),
    // The name is mined, whatever the server answers now.
    () => undefined,
  )
  const where =
    address === undefined
      ? ''
      : `; ${owner === undefined ? 'your site' : 'the site of its owner'} will be at ${address}`
  output.note(`${name} is mined${where}`)
  if (owner === undefined)
    output.note(`to publish: ${nextCommand(['publish', '<folder>', '--name', name], options)}`)
}

async function mineWith(options: MineOptions): Promise<void> {
  const { name, config, output, signal } = options
  const url = serverUrl(options.url)
  const expected = {
    profile: config.profile.name,
    ...(options.network && { network: options.network }),
    ...expectedTree(config),
  }
  const server = await serverDeployment(url, expected, { signal })
  const lock = options.owner === undefined ? undefined : ownerLock(options.owner, server.network)
  if (config.deployment === undefined) await options.knownTrees.trust({ url, said: server, output })
  requireMinableName(name, server.deployment)
  const tree: Tree = {
    url,
    server,
    index: new HttpMineIndex({ url, signal }),
    trust: { chainTracker: openOwnHeaders(config, options), signal },
  }
  const holder = await holderOf(options)
  const payments = await openPayments(holder, options)
  try {
    const undecided = payments === undefined ? [] : await sendAgain(options, { payments, tree })
    if (undecided === 'done') return
    const { wallet, key } = holder
    const owner = wallet
      ? walletOwner(wallet)
      : key && { ownerLock: async () => p2pkhLockOf(key.toPublicKey()) }
    const payer =
      payments === undefined || owner === undefined
        ? FAKE_MINT_PAYER
        : mintPayer(owner, (draft, subject) => payments.pay(draft, purposeOf(tree, subject)))
    await mineMissing(options, { payments, payer, lock, tree, undecided })
  } finally {
    payments?.journal.close()
  }
}

/** The tree to mine in, and the server that shows it. */
interface Tree {
  url: string
  server: ServerDeployment
  index: MineIndex
  trust: Trust
}

const purposeOf = ({ server }: Tree, name: string) => ({
  ...{ kind: 'mint' as const, subject: name, place: formatOutpoint(server.deployment.genesis) },
})

/** Mines the missing characters of the name, and reports what was paid. */
async function mineMissing(
  options: MineOptions,
  mining: {
    /** Undefined for fake funding. */
    payments: Payments | undefined
    payer: MintPayer
    /** The lock of the names; by default, the payer's own. */
    lock: Uint8Array | undefined
    tree: Tree
    undecided: readonly Followed[]
  },
): Promise<void> {
  const { name, workers, budget, output, signal } = options
  const { payments, payer, lock, tree, undecided } = mining
  const progress = new MiningProgress(output.progressStream, output.errorColors)
  const paid: PaidMint[] = []
  try {
    await mineName({
      ...{ name, deployment: tree.server.deployment, budget, signal, workers, ...tree.trust },
      index: tree.index,
      ownerLock: async (each) => lock ?? (await payer.ownerLock(each)),
      async approve(plan) {
        requireDecided(undecided, { name, node: plan.node })
        payments?.requireCoins()
        if (payments !== undefined) await approve(options, { ...plan, tree })
      },
      async pay(draft) {
        const mint = await payer.pay(draft)
        paid.push(mint)
        return mint
      },
      ...(payments && { lost: (mint, other) => loseMint(payments, mint, other) }),
      onEvent(event) {
        progress.update(event)
        if (event.kind !== 'minted') return
        const { hashes, fee, byOther } = event
        if (!byOther) payments?.recordAdmitted(event.txid)
        const origin = `${event.txid}_2`
        const record = { name: event.name, origin, hashes, fee, ...(byOther && { byOther }) }
        output.result(record, `${event.name} ${origin}`)
      },
    })
  } catch (error) {
    if (!(error instanceof MiningError) || error.code !== 'TAKEN') throw error
    const stuck = undecided.find(({ payment }) => payment.subject === name)
    if (stuck !== undefined)
      throw new CommandError(
        `${name} is taken, perhaps by ${stuck.payment.txid}, which you paid for: run the same command again later`,
        { exit: 'unavailable', cause: error },
      )
    // A command that was killed may have mined it.
    const { kind, ...of } = purposeOf(tree, name)
    const own = payments?.journal.payments({ ...of, kinds: [kind] }).find(({ state }) => state !== 'lost')
    const mint = own && (await mintForOwner(own, tree))
    if (mint === undefined) throw error
    output.result({ name, origin: `${mint.txid}_2` }, `${name} ${mint.txid}_2`)
  } finally {
    progress.end()
    if (payments !== undefined && paid.length > 0) output.note(summary(paid, payments.journal.path))
  }
}

/**
 * Records that another mint has replaced a paid one. An index cannot overrule the network: a mint that the network has
 * accepted is lost only if the other one is in a block.
 *
 * @throws MiningError `UNDECIDED`.
 */
async function loseMint(
  { journal }: Payments,
  { transaction }: PaidMint,
  other: { proven: boolean },
): Promise<void> {
  const txid = transaction.id('hex')
  if (!other.proven && journal.stateOf(txid) !== 'pending')
    throw new MiningError(
      'UNDECIDED',
      `the network has accepted ${txid}, but the server shows another mint instead, in no block yet: run the same command again later`,
    )
  await journal.lose(txid)
}

/**
 * Sends mints again that were paid for earlier, and reports the outcomes.
 *
 * @returns The undecided ones, or that the name needs no more mining.
 */
async function sendAgain(
  { name, output, signal }: MineOptions,
  { payments, tree }: { payments: Payments; tree: Tree },
): Promise<Followed[] | 'done'> {
  const { kind, place } = purposeOf(tree, name)
  const followed = await payments.followUp({ kinds: [kind], place }, destinationOf(tree, signal))
  let isDone = false
  for (const { payment, outcome } of followed) {
    const { subject, isAdmitted } = payment
    if (outcome === 'admitted' && !isAdmitted) {
      output.result({ name: subject, submittedAgain: true }, `${subject} was submitted again`)
      isDone ||= subject === name
    }
    const other = outcome === 'lost' ? await mintForOwner(payment, tree) : undefined
    if (other === undefined) continue
    output.result({ name: subject, origin: `${other.txid}_2`, byOther: true }, `${subject} ${other.txid}_2`)
    output.note(byOtherText({ name: subject, txid: other.txid }))
    isDone ||= subject === name
  }
  reportFollowed(followed, output)
  return isDone ? 'done' : followed.filter(({ outcome }) => outcome === 'undecided')
}

/** The destination of paid mints. */
function destinationOf({ url, index, trust }: Tree, signal: AbortSignal): Destination {
  return new OverlayServer(url, signal).destination({
    chainTracker: trust.chainTracker,
    async submit({ transaction, beef, subject: name }) {
      try {
        await index.submit({ beef, txid: transaction.id('hex'), name })
        return { kind: 'admitted' }
      } catch (error) {
        if (!(error instanceof NodeMovedError)) throw error
        return { kind: 'conflict', why: error.message, by: error.by }
      }
    },
  })
}

/** The mint that gave a paid mint's name to the same owner, whatever its txid, if the index knows one. */
async function mintForOwner(
  { transaction, subject: name }: Followed['payment'],
  { index, server, trust }: Tree,
): ReturnType<typeof ownersMint> {
  const script = transaction.outputs[2]?.lockingScript
  const { deployment } = server
  const nameScript = Uint8Array.from(script?.toUint8Array() ?? [])
  return await ownersMint({ ...trust, index, deployment, name, nameScript })
}

/** Refuses to pay for a name twice, while a mint of it, or of a missing prefix, may still count. */
function requireDecided(
  undecided: readonly Followed[],
  { name, node }: { name: string; node: VerifiedNode },
): void {
  const stuck = undecided
    .map(({ payment }) => payment)
    .find(({ subject }) => name.startsWith(subject) && subject.length > node.domain.length)
  if (stuck === undefined) return
  throw new CommandError(
    `${stuck.subject} is paid for by ${stuck.txid}, but it is not known yet whether that counts: try again later`,
    { exit: 'unavailable' },
  )
}

/** Shows the highest cost, and asks for confirmation. */
async function approve(
  options: MineOptions,
  plan: { node: VerifiedNode; missing: string; budget: MiningBudget; tree: Tree },
): Promise<void> {
  const { name } = options
  const { node, missing, budget, tree } = plan
  const { maxFee, maxTotal, maxMints, maxTime } = budget
  const mints = missing.length === 1 ? '1 mint' : `${missing.length} mints`
  const from = node.domain === '' ? 'the root' : JSON.stringify(node.domain)
  const { genesis } = tree.server.deployment
  await confirmPayment(
    [
      `${name} takes ${mints} from ${from}, in the tree ${formatOutpoint(genesis)} that ${tree.url} follows`,
      `fees are paid ${feeRateText(options)}: at most ${grouped(maxFee)} satoshis per mint, ${grouped(maxTotal)} in total, ${maxMints} mints and ${timeText(maxTime)}`,
    ],
    options,
  )
}

function timeText(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000)
  return seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
}

function summary(paid: readonly PaidMint[], journal: string): string {
  const total = paid.reduce((sum, { fee }) => sum + fee, 0)
  const each = paid.map(({ mint, fee }) => `${mint.name} ${grouped(fee)}`).join(', ')
  return `paid ${grouped(total)} satoshis of fees: ${each}; the mints are in ${journal}`
}
