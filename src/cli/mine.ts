import type { Network } from '../../backend/src/protocol/address.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { VerifiedNode } from '../client/node-proof.js'
import type { Trust } from '../client/vouch.js'
import { budgetFor, type MiningBudget } from '../mining/budget.js'
import { DEFAULT_FEE_RATE } from '../mining/fund-with-key.js'
import { MADE_UP_PAYER } from '../mining/made-up-mint.js'
import { HttpMineIndex, type MineIndex } from '../mining/mine-index.js'
import { type MintPayer, mineName, type PaidMint, requireMinableName } from '../mining/mine-name.js'
import { MiningError } from '../mining/mining-error.js'
import { type ServerDeployment, serverDeployment } from '../mining/server-deployment.js'
import { openHeadersSource } from '../server/chain/chain-tracker.js'
import type { Config } from '../server/config/config.js'
import { SubmissionTracker } from '../server/submission/verify-submission.js'
import { addressLock } from './address-lock.js'
import { readTransactions } from './coins.js'
import { CommandError } from './command-error.js'
import { type Ask, confirmPayment } from './confirm.js'
import { expectedTree, type KnownTrees } from './known-trees.js'
import { byOtherText, MiningProgress } from './mining-progress.js'
import { MintFolder } from './mint-folder.js'
import { keyPayer, walletPayer } from './mint-payers.js'
import { arcFor, readKey, walletAt } from './mint-services.js'
import type { CommandOutput } from './output.js'
import { NotingIndex, reconcileMints, type UndecidedMint } from './pending-mints.js'
import { grouped } from './progress-line.js'
import { type SendMint, sendThroughArc, sendThroughWallet } from './send-mint.js'

export interface MineOptions {
  name: string
  /** Of the server. */
  url: string
  /** A P2PKH address. */
  owner?: string
  workers?: number
  /** Satoshis per 1,000 bytes. */
  feeRate?: number
  /** The URL of a wallet (BRC-100) that speaks JSON. */
  wallet?: string
  /** A file that holds a key as WIF. */
  keyFile?: string
  /** Files with coins of the key. */
  coins: string[]
  /** Where mints are kept that are not of made-up money. */
  folder: string
  /** The URL of an ARC service. */
  arc?: string
  arcApiKey?: string
  /** What it may cost. */
  budget: Partial<MiningBudget>
  /** Pay without being asked. */
  yes: boolean
  ask: Ask | undefined
  /** What is configured counts: a server that follows something else is not mined with. */
  config: Config
  /** Where it was set, and does not follow from the profile. */
  network: Network | undefined
  /** Where no genesis is configured. */
  knownTrees: KnownTrees
  output: CommandOutput
  signal: AbortSignal
}

/**
 * Mines what is missing of a name, submits each mint to `tm_names` and `tm_ordinals`, and prints its outpoint and fee.
 * What was paid for and is in no index yet is sent first.
 *
 * @throws CommandError, MiningError, MintError, ImportError, HeadersError: what went wrong, in a line; the reason of the
 * signal.
 */
export async function runMine(options: MineOptions): Promise<void> {
  // A mistake on the command line is said before anybody is asked.
  if (options.owner !== undefined) addressLock(options.owner)
  const { maxTime } = budgetFor(options.name.length, options.budget)
  // Ends whatever is still being asked: when the time is over, and when the command is.
  const over = new AbortController()
  const late = new MiningError('OVER_BUDGET', `it takes longer than ${timeText(maxTime)} (--max-time)`)
  const timer = setTimeout(() => over.abort(late), maxTime)
  const signal = AbortSignal.any([options.signal, over.signal])
  try {
    await mineWith({ ...options, signal })
  } catch (error) {
    throw over.signal.aborted ? late : error
  } finally {
    clearTimeout(timer)
    over.abort(new CommandError('the command is over'))
  }
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
  const lock = options.owner === undefined ? undefined : addressLock(options.owner, server.network)
  if (config.deployment === undefined) await options.knownTrees.trust({ url, said: server, output })
  requireMinableName(name, server.deployment)
  const headers = openHeadersSource(config)
  const chainTracker = headers === undefined ? 'scripts only' : new SubmissionTracker(headers)
  const trust: Trust = { chainTracker, signal }
  const money = await moneyFor(options, new HttpMineIndex(url, { signal }))
  try {
    const { submitted, byOther, undecided } = await sendAgain(options, { money, server, trust })
    if (submitted.includes(name) || byOther.some((mint) => mint.name === name)) return
    await mineRest(options, { money, lock, server, trust, undecided, url })
  } finally {
    headers?.close()
    await money.folder?.release()
  }
}

/** Mines what is missing of the name, and says what was paid for what. */
async function mineRest(
  options: MineOptions,
  mining: {
    money: Money
    /** Of the names; unset, whoever pays has one. */
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
        progress.tell(event)
        if (event.kind !== 'minted') return
        const { hashes, fee, byOther } = event
        const origin = `${event.txid}_2`
        const record = { name: event.name, origin, hashes, fee, ...(byOther && { byOther }) }
        output.result(record, `${event.name} ${origin}`)
      },
      ...(workers !== undefined && { workers }),
    })
  } catch (error) {
    const own = undecided.find((mint) => mint.name === name)
    if (own === undefined || !(error instanceof MiningError) || error.code !== 'TAKEN') throw error
    throw new CommandError(
      `${name} is taken, perhaps by ${own.txid}, which you paid for: the same command looks again`,
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
  /** Where mints are stored; undefined where the money is made up. */
  folder?: MintFolder
}

/** Whoever is named pays; on a local network, where nobody is, money that is made up. */
async function moneyFor(options: MineOptions, index: MineIndex): Promise<Money> {
  const { wallet, keyFile, config, signal } = options
  if (wallet !== undefined && keyFile !== undefined)
    throw new CommandError('a wallet pays or a key, not both', { exit: 'usage' })
  if (wallet === undefined && keyFile === undefined) {
    if (config.profile.name !== 'local')
      throw new CommandError('say who pays: --wallet, or --key-file with --coins', { exit: 'usage' })
    return { payer: MADE_UP_PAYER, index }
  }
  const client = keyFile === undefined ? walletAt(wallet ?? '', signal) : undefined
  const key = keyFile === undefined ? undefined : await readKey(keyFile)
  const coins = await readTransactions(options.coins)
  const folder = await MintFolder.at(options.folder)
  const noting = new NotingIndex(index, folder)
  if (client !== undefined) {
    const send = sendThroughWallet(client)
    return { payer: walletPayer({ wallet: client, folder }), index: noting, send, folder }
  }
  if (key === undefined) throw new RangeError('neither a wallet nor a key')
  const arc = arcFor(options)
  const send = arc && sendThroughArc(arc)
  const { feeRate } = options
  const payer = keyPayer({ key, coins, folder, send, ...(feeRate !== undefined && { feeRate }) })
  return { payer, index: noting, send, folder }
}

/** Sends what was paid for before, and says what became of it. */
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
      `${file} cannot be read, and is left alone: its coins count as free; remove it, or restore it`,
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

/** A name is not paid for twice: not while a mint of it, or of a prefix that is missing, may still count. */
function requireDecided(
  undecided: readonly UndecidedMint[],
  { name, node }: { name: string; node: VerifiedNode },
): void {
  const stuck = undecided.find((mint) => name.startsWith(mint.name) && mint.name.length > node.domain.length)
  if (stuck === undefined) return
  throw new CommandError(
    `${stuck.name} is paid for by ${stuck.txid}, and nobody knows yet whether that counts: try again later`,
    { exit: 'unavailable' },
  )
}

/** Shows what is going to be paid for, and asks. */
async function approve(
  options: MineOptions,
  plan: { node: VerifiedNode; missing: string; budget: MiningBudget; server: ServerDeployment; url: string },
): Promise<void> {
  const { name, output, ask, yes, feeRate = DEFAULT_FEE_RATE, wallet, signal } = options
  const { node, missing, budget, server, url } = plan
  const { maxFee, maxTotal, maxMints, maxTime } = budget
  const mints = missing.length === 1 ? '1 mint' : `${missing.length} mints`
  const rate = wallet === undefined ? `at ${feeRate} satoshis per 1,000 bytes` : 'at the rate of the wallet'
  const from = node.domain === '' ? 'the root' : JSON.stringify(node.domain)
  output.note(
    `${name} takes ${mints} from ${from}, in the tree ${formatOutpoint(server.deployment.genesis)} that ${url} follows`,
  )
  output.note(
    `they are paid ${rate}: no more than ${grouped(maxFee)} satoshis of fees each, ${grouped(maxTotal)} in all, ${maxMints} mints and ${timeText(maxTime)}`,
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
