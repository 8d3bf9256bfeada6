import { type Broadcaster, isBroadcastFailure, type Transaction } from '@bsv/sdk'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import type { MineIndex } from '../mining/mine-index.js'
import { NodeMovedError } from '../mining/mining-error.js'
import { CommandError } from './command-error.js'
import type { MintFolder } from './mint-folder.js'

/** What ARC says of a transaction that it will never take: its states, and its statuses for what does not validate. */
const NEVER = /^(?:REJECTED|INVALID|MALFORMED|DOUBLE_SPEND_ATTEMPTED|46\d|47\d)$/

/**
 * Sends a kept mint to the network.
 *
 * @param sent.broadcaster Without one, nobody sends it.
 * @throws CommandError where the network does not take it; where it never will, the mint is lost.
 */
export async function sendMint(sent: {
  transaction: Transaction
  folder: MintFolder
  broadcaster: Broadcaster | undefined
}): Promise<void> {
  const { transaction, folder, broadcaster } = sent
  const answer = await broadcaster?.broadcast(transaction)
  if (answer === undefined || !isBroadcastFailure(answer)) return
  const txid = transaction.id('hex')
  if (NEVER.test(answer.code)) await folder.settle(txid, 'lost')
  throw new CommandError(`the network does not take ${txid}: ${answer.code} ${answer.description}`, {
    exit: 'refused',
  })
}

/** An index that is told of kept mints: what becomes of each is noted. */
export class KeepingIndex implements MineIndex {
  readonly liveNode: MineIndex['liveNode']
  readonly nodeTransaction: MineIndex['nodeTransaction']

  constructor(
    private readonly index: MineIndex,
    private readonly folder: MintFolder,
  ) {
    this.liveNode = (name) => index.liveNode(name)
    this.nodeTransaction = (node) => index.nodeTransaction(node)
  }

  async submit(mint: Parameters<MineIndex['submit']>[0]): Promise<void> {
    try {
      await this.index.submit(mint)
    } catch (error) {
      if (error instanceof NodeMovedError) await this.folder.settle(mint.txid, 'lost')
      throw error
    }
    await this.folder.settle(mint.txid, 'known')
  }
}

/**
 * Sends again what was kept and may not have been sent before a stop.
 *
 * @returns The names whose mints an overlay knows now.
 */
export async function sendPending(sent: {
  folder: MintFolder
  index: MineIndex
  broadcaster: Broadcaster | undefined
}): Promise<string[]> {
  const { folder, index } = sent
  const names: string[] = []
  for (const transaction of await folder.pending()) {
    const txid = transaction.id('hex')
    const name = nameOf(transaction)
    await sendMint({ ...sent, transaction })
    try {
      await index.submit({ beef: Uint8Array.from(transaction.toBEEF(true)), txid, name })
      names.push(name)
    } catch (error) {
      // Somebody else was first; the mint is noted as lost, and mining goes on from his.
      if (!(error instanceof NodeMovedError)) throw error
    }
  }
  return names
}

/** The name that a mint is of: the domain of the node in output 1. */
function nameOf(transaction: Transaction): string {
  const { outputs } = readTransaction(Uint8Array.from(transaction.toUint8Array()))
  return decodeMineNode(outputs[1]?.lockingScript ?? new Uint8Array()).domain
}
