import type { Network } from '../../backend/src/protocol/address.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { openHeadersSource } from '../chain/tracker/headers-source.js'
import type { VerifiedNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { budgetFor, type MiningBudget, withTimeLimit } from '../mining/budget.js'
import { FAKE_FUNDING_PAYER } from '../mining/fake-funding.js'
import { HttpMineIndex, type MineIndex } from '../mining/mine-index.js'
import { mineName, requireMinableName } from '../mining/mine-name.js'
import { MiningError } from '../mining/mining-error.js'
import type { MintPayer, PaidMint } from '../mining/mint-transaction.js'
import { type ServerDeployment, serverDeployment } from '../mining/server-deployment.js'
import type { Config } from '../server/config/config.js'
import { SubmissionTracker } from '../server/writer/verify-submission.js'
import { CommandError, ownerLock } from './command.js'
import { expectedTree, type KnownTrees } from './known-trees.js'
import { byOtherText, MiningProgress } from './mining-progress.js'
import { MintFolder } from './mint-folder.js'
import { keyPayer, readTransactions, walletPayer } from './mint-payers.js'
import {
  arcFor,
  readKey,
  type SendMint,
  sendThroughArc,
  sendThroughWallet,
  walletAt,
} from './mint-services.js'
import { grouped } from './output.js'
import { confirmPayment, feeRateText, type PaymentOptions, requireOnePayer } from './payment.js'
import { RecordingIndex, reconcileMints, type UndecidedMint } from './pending-mints.js'

export interface MineOptions extends PaymentOptions {
  name: string
  /** The URL of the server. */
  url: string
  /** The owner's P2PKH address. */
  owner?: string
  workers?: number
  /** The limits on its cost. */
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
 * @throws CommandError; MiningError; MintError; ImportError; HeadersError; the reason of the signal.
 */
export async function runMine(options: MineOptions): Promise<void> {
  // Report a mistake on the command line before anything is requested.
  if (options.owner !== undefined) ownerLock(options.owner)
  const { maxTime } = budgetFor(options.name.length, options.budget)
  const error = new MiningError('OVER_BUDGET', `mining took longer than ${timeText(maxTime)} (--max-time)`)
  await withTimeLimit({ milliseconds: maxTime, error, signal: options.signal }, async (signal) => {
    await mineWith({ ...options, signal })
  })
}

async function mineWith(options: MineOptions): Promise<void> {
  const { name, config, output, signal } = options
  const url = options.url.replace(/\/+$/, '')
  const expected = {
    profile: config.profile.name,
    ...(options.network && { network: options.network }),
    ...expectedTree(config),
  }
  const server = await serverDeployment(url, expected, { signal })
  const lock = options.owner === undefined ? undefined : ownerLock(options.owner, server.network)
  if (config.deployment === undefined) await options.knownTrees.trust({ url, said: server, output })
  requireMinableName(name, server.deployment)
  const headers = openHeadersSource(config)
  const chainTracker = headers === undefined ? 'scripts only' : new SubmissionTracker(headers)
  const trust: Trust = { chainTracker, signal }
  const money = await moneyFor(options, new HttpMineIndex(url, { signal }))
  try {
    const { submitted, byOther, undecided } = await sendAgain(options, { money, server, trust })
    if (submitted.includes(name) || byOther.some((mint) => mint.name === name)) return
    await mineMissing(options, { money, lock, server, trust, undecided, url })
  } finally {
    await headers?.close()
    await money.folder?.release()
  }
}

/** Mines the missing characters of the name, and reports what was paid. */
async function mineMissing(
  options: MineOptions,
  mining: {
    money: Money
    /** The lock of the names; by default, the payer's own. */
    lock: Uint8Array | undefined
    server: ServerDeployment
    trust: Trust
    undecided: readonly UndecidedMint[]
    url: string
  },
): Promise<void> {
  const { name, workers, budget, output, signal } = options
  const { money, lock, server, trust, undecided, url } = mining
  const { payer, index, folder } = money
  const progress = new MiningProgress(output.progressStream, output.errorColors)
  const paid: PaidMint[] = []
  try {
    await mineName({
      ...{ name, deployment: server.deployment, index, budget, signal, ...trust },
      ...payer,
      ownerLock: async (each) => lock ?? (await payer.ownerLock(each)),
      async approve(plan) {
        requireDecided(undecided, { name, node: plan.node })
        if (folder !== undefined) await approve(options, { ...plan, server, url })
      },
      async pay(draft) {
        const mint = await payer.pay(draft)
        paid.push(mint)
        return mint
      },
      onEvent(event) {
        progress.update(event)
        if (event.kind !== 'minted') return
        const { hashes, fee, byOther } = event
        const origin = `${event.txid}_2`
        const record = { name: event.name, origin, hashes, fee, ...(byOther && { byOther }) }
        output.result(record, `${event.name} ${origin}`)
      },
      workers,
    })
  } catch (error) {
    const own = undecided.find((mint) => mint.name === name)
    if (own === undefined || !(error instanceof MiningError) || error.code !== 'TAKEN') throw error
    throw new CommandError(
      `${name} is taken, perhaps by ${own.txid}, which you paid for: run the same command again later`,
      { exit: 'unavailable', cause: error },
    )
  } finally {
    progress.end()
    if (folder !== undefined && paid.length > 0) output.note(summary(paid, folder))
  }
}

interface Money {
  payer: MintPayer
  index: MineIndex
  send?: SendMint | undefined
  /** Where mints are stored; undefined with fake funding. */
  folder?: MintFolder
}

/** The payer that the options name; on a local network, fake funding by default. */
async function moneyFor(options: MineOptions, index: MineIndex): Promise<Money> {
  const { wallet, keyFile, config, signal } = options
  requireOnePayer(options)
  if (wallet === undefined && keyFile === undefined) {
    if (config.profile.name !== 'local')
      throw new CommandError('choose who pays: use --wallet, or --key-file with --coins', { exit: 'usage' })
    return { payer: FAKE_FUNDING_PAYER, index }
  }
  const client = keyFile === undefined ? walletAt(wallet ?? '', signal) : undefined
  const key = keyFile === undefined ? undefined : await readKey(keyFile, signal)
  const coins = await readTransactions(options.coins)
  const folder = await MintFolder.at(options.folder)
  const noting = new RecordingIndex(index, folder)
  if (client !== undefined) {
    const send = sendThroughWallet(client)
    return { payer: walletPayer({ wallet: client, folder }), index: noting, send, folder }
  }
  if (key === undefined) throw new RangeError('neither a wallet nor a key')
  const arc = arcFor(options)
  const send = arc && sendThroughArc(arc)
  const { feeRate } = options
  const payer = keyPayer({ key, coins, folder, send, feeRate })
  return { payer, index: noting, send, folder }
}

/** Sends mints that were paid for earlier, and reports what became of them. */
async function sendAgain(
  { output }: MineOptions,
  { money, server, trust }: { money: Money; server: ServerDeployment; trust: Trust },
): ReturnType<typeof reconcileMints> {
  const { folder, index, send } = money
  if (folder === undefined) return { submitted: [], byOther: [], undecided: [], damaged: [] }
  const { deployment } = server
  const { submitted, byOther, undecided, damaged } = await reconcileMints({
    folder,
    index,
    deployment,
    send,
    ...trust,
  })
  for (const file of damaged)
    output.warn(
      `${file} cannot be read and is ignored, so its coins may be spent again: restore it or remove it`,
    )
  for (const each of submitted)
    output.result({ name: each, submittedAgain: true }, `${each} was submitted again`)
  for (const { name, txid } of byOther) {
    output.result({ name, origin: `${txid}_2`, byOther: true }, `${name} ${txid}_2`)
    output.note(byOtherText({ name, txid }))
  }
  for (const { name, txid, why } of undecided) output.warn(`${name} (${txid}) is still undecided: ${why}`)
  return { submitted, byOther, undecided, damaged }
}

/** Refuses to pay for a name twice, as long as a mint of it, or of a missing prefix, may still count. */
function requireDecided(
  undecided: readonly UndecidedMint[],
  { name, node }: { name: string; node: VerifiedNode },
): void {
  const stuck = undecided.find((mint) => name.startsWith(mint.name) && mint.name.length > node.domain.length)
  if (stuck === undefined) return
  throw new CommandError(
    `${stuck.name} is paid for by ${stuck.txid}, and it is not known yet whether that counts: try again later`,
    { exit: 'unavailable' },
  )
}

/** Shows what it will cost, and asks for confirmation. */
async function approve(
  options: MineOptions,
  plan: { node: VerifiedNode; missing: string; budget: MiningBudget; server: ServerDeployment; url: string },
): Promise<void> {
  const { name, output, ask, yes, signal } = options
  const { node, missing, budget, server, url } = plan
  const { maxFee, maxTotal, maxMints, maxTime } = budget
  const mints = missing.length === 1 ? '1 mint' : `${missing.length} mints`
  const from = node.domain === '' ? 'the root' : JSON.stringify(node.domain)
  output.note(
    `${name} takes ${mints} from ${from}, in the tree ${formatOutpoint(server.deployment.genesis)} that ${url} follows`,
  )
  output.note(
    `fees are paid ${feeRateText(options)}: at most ${grouped(maxFee)} satoshis per mint, ${grouped(maxTotal)} in total, ${maxMints} mints and ${timeText(maxTime)}`,
  )
  signal.throwIfAborted()
  await confirmPayment({ ask, isAgreed: yes, output })
}

function timeText(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000)
  return seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
}

function summary(paid: readonly PaidMint[], folder: MintFolder): string {
  const total = paid.reduce((sum, { fee }) => sum + fee, 0)
  const each = paid.map(({ mint, fee }) => `${mint.name} ${grouped(fee)}`).join(', ')
  return `paid ${grouped(total)} satoshis of fees: ${each}; the mints are in ${folder.path}`
}
