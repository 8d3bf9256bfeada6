import { readFile } from 'node:fs/promises'
import { ARC, type Broadcaster, defaultBroadcaster, HTTPWalletJSON, PrivateKey, WalletClient } from '@bsv/sdk'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { MADE_UP_PAYER } from '../mining/made-up-mint.js'
import { HttpMineIndex, type MineIndex } from '../mining/mine-index.js'
import { type MintPayer, mineName, requireMinableName } from '../mining/mine-name.js'
import { type ServerDeployment, serverDeployment } from '../mining/server-deployment.js'
import { harmless } from '../server/harmless-text.js'
import { addressLock } from './address-lock.js'
import { readTransactions } from './coins.js'
import { CommandError } from './command-error.js'
import { MiningProgress } from './mining-progress.js'
import { MintFolder } from './mint-folder.js'
import { keyPayer, walletPayer } from './mint-payers.js'
import type { CommandOutput } from './output.js'
import { KeepingIndex, sendPending } from './send-mint.js'

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
  /** The tree that is meant; undefined: whichever the server says that it follows. */
  expected: Deployment | undefined
  output: CommandOutput
  signal: AbortSignal
}

/**
 * Mines what is missing of a name, submits each mint to `tm_names` and `tm_ordinals`, and prints its outpoint. What was paid
 * for and not submitted before a stop is submitted first.
 *
 * @throws CommandError, MiningError, MintError, ImportError: what stands against it, in a line; the reason of the signal.
 */
export async function runMine(options: MineOptions): Promise<void> {
  const { name, owner, workers, expected, output, signal } = options
  const url = options.url.replace(/\/+$/, '')
  const lock = owner === undefined ? undefined : addressLock(owner)
  const server = await serverDeployment(url, expected)
  requireMinableName(name, server.deployment)
  const { payer, index, again } = await moneyFor(options, server, new HttpMineIndex(url))
  for (const each of await again())
    output.result({ name: each, submittedAgain: true }, `${harmless(each)} was submitted again`)
  const progress = new MiningProgress(output.progressStream, output.errorColors)
  try {
    await mineName({
      name,
      deployment: server.deployment,
      index,
      pay: (draft) => payer.pay(draft),
      ownerLock: async (each) => lock ?? (await payer.ownerLock(each)),
      signal,
      onEvent(event) {
        progress.tell(event)
        if (event.kind !== 'minted') return
        const origin = `${event.txid}_2`
        output.result({ name: event.name, origin, hashes: event.hashes }, `${event.name} ${origin}`)
      },
      ...(workers !== undefined && { workers }),
    })
  } finally {
    progress.end()
  }
}

interface Money {
  payer: MintPayer
  index: MineIndex
  /** Sends again what was kept and may not have been sent; gives the names of it. */
  again(): Promise<string[]>
}

/** Whoever is named pays; on a local network, where nobody is, money that is made up. */
async function moneyFor(options: MineOptions, server: ServerDeployment, index: MineIndex): Promise<Money> {
  const { wallet, keyFile } = options
  if (wallet !== undefined && keyFile !== undefined)
    throw new CommandError('a wallet pays or a key, not both', { exit: 'usage' })
  if (wallet === undefined && keyFile === undefined) {
    if (server.profile !== 'local')
      throw new CommandError('say who pays: --wallet, or --key-file with --coins', { exit: 'usage' })
    return { payer: MADE_UP_PAYER, index, again: async () => [] }
  }
  const folder = await MintFolder.at(options.folder)
  const keeping = new KeepingIndex(index, folder)
  const broadcaster = keyFile === undefined ? undefined : broadcasterFor(options, server)
  return {
    payer:
      keyFile === undefined
        ? walletPayer({ wallet: walletAt(wallet ?? ''), folder })
        : keyPayer({
            key: await readKey(keyFile),
            coins: await readTransactions(options.coins),
            folder,
            broadcaster,
            ...(options.feeRate !== undefined && { feeRate: options.feeRate }),
          }),
    index: keeping,
    again: () => sendPending({ folder, index: keeping, broadcaster }),
  }
}

/** Where a wallet asks who wants something of it. */
const ORIGINATOR = 'minetree'

function walletAt(url: string): WalletClient {
  if (!URL.canParse(url))
    throw new CommandError(`not the URL of a wallet: ${JSON.stringify(url)}`, { exit: 'usage' })
  return new WalletClient(new HTTPWalletJSON(ORIGINATOR, url.replace(/\/+$/, '')), ORIGINATOR)
}

/** Mints of the live network go to its miners; those of a local one have none. */
function broadcasterFor(
  { arc, arcApiKey }: MineOptions,
  { profile, network }: ServerDeployment,
): Broadcaster | undefined {
  const config = arcApiKey === undefined ? {} : { apiKey: arcApiKey }
  if (arc !== undefined) return new ARC(arc.replace(/\/+$/, ''), config)
  return profile === 'local' ? undefined : defaultBroadcaster(network === 'test', config)
}

async function readKey(path: string): Promise<PrivateKey> {
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
