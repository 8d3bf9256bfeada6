import { readFile } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { ARC, type Broadcaster, defaultBroadcaster, HTTPWalletJSON, PrivateKey, WalletClient } from '@bsv/sdk'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { MADE_UP_PAYER } from '../mining/made-up-mint.js'
import { HttpMineIndex, type MineIndex } from '../mining/mine-index.js'
import { type MintPayer, mineName } from '../mining/mine-name.js'
import { type ServerDeployment, serverDeployment } from '../mining/server-deployment.js'
import { harmless } from '../server/harmless-text.js'
import { addressLock } from './address-lock.js'
import { readTransactions } from './coins.js'
import { CommandError } from './command-error.js'
import { MiningProgress, type ProgressStream } from './mining-progress.js'
import { MintFolder } from './mint-folder.js'
import { keyPayer, walletPayer } from './mint-payers.js'
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
  out: Writable
  progress: ProgressStream
  signal: AbortSignal
}

/**
 * Mines what is missing of a name, and submits each mint to `tm_names` and `tm_ordinals`. What was paid for and not
 * submitted before a stop is submitted first.
 *
 * @throws CommandError, MiningError, MintError, ImportError: what stands against it, in a line; the reason of the signal.
 */
export async function runMine(options: MineOptions): Promise<void> {
  const { name, owner, workers, expected, out, signal } = options
  const url = options.url.replace(/\/+$/, '')
  const lock = owner === undefined ? undefined : addressLock(owner)
  const server = await serverDeployment(url, expected)
  const { payer, index, again } = await moneyFor(options, server, new HttpMineIndex(url))
  for (const each of await again()) out.write(`${harmless(each)} was submitted again\n`)
  const progress = new MiningProgress(options.progress)
  try {
    const minted = await mineName({
      name,
      deployment: server.deployment,
      index,
      pay: (draft) => payer.pay(draft),
      ownerLock: async (each) => lock ?? (await payer.ownerLock(each)),
      signal,
      onEvent: (event) => progress.tell(event),
      ...(workers !== undefined && { workers }),
    })
    for (const { mint, transaction } of minted) out.write(`${mint.name} ${transaction.id('hex')}_2\n`)
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
    throw new CommandError('a wallet pays or a key, not both')
  if (wallet === undefined && keyFile === undefined) {
    if (server.profile !== 'local')
      throw new CommandError('say who pays: --wallet, or --key-file with --coins')
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
  if (!URL.canParse(url)) throw new CommandError(`not the URL of a wallet: ${JSON.stringify(url)}`)
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
    })
  }
  try {
    return PrivateKey.fromWif(text.trim())
  } catch {
    // What the SDK says may quote the key.
    throw new CommandError(`${path} holds no key as WIF`)
  }
}
