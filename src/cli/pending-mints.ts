import type { Transaction } from '@bsv/sdk'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import type { VerifiedNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { type OwnersMint, ownersMint, verifiedLiveNode } from '../mining/live-node.js'
import type { MineIndex } from '../mining/mine-index.js'
import { NodeMovedError } from '../mining/mining-error.js'
import type { MintFolder, StoredMint } from './mint-folder.js'
import type { SendMint } from './mint-services.js'

/** An index that is told of stored mints, and notes those that it has. */
export class RecordingIndex implements MineIndex {
  readonly liveNode: MineIndex['liveNode']
  readonly showNode: MineIndex['showNode']
  readonly showName: MineIndex['showName']

  constructor(
    private readonly index: MineIndex,
    private readonly folder: MintFolder,
  ) {
    this.liveNode = (name) => index.liveNode(name)
    this.showNode = (name) => index.showNode(name)
    this.showName = (name) => index.showName(name)
  }

  async submit(mint: Parameters<MineIndex['submit']>[0]): Promise<void> {
    await this.index.submit(mint)
    await this.folder.settle(mint.txid, 'known')
  }
}

/** A paid mint of which nobody can say yet whether it counts. */
export interface UndecidedMint {
  txid: string
  name: string
  why: string
}

/** How long it takes at the most to begin with another mint, in milliseconds: the rest has to wait for the next command. */
const MAX_TIME = 120_000

interface Reconciling extends Trust {
  folder: MintFolder
  index: MineIndex
  deployment: Deployment
  send: SendMint | undefined
}

/**
 * Sends the mints again that were stored and are in no index yet: to the network first, then to the index. One that is
 * stuck is left, and stops no other.
 *
 * @returns The names of those that the index has now; those whose names their owners have by another transaction, so that
 * they are lost; the mints that stay undecided; and files that hold no mint.
 */
export async function reconcileMints(options: Reconciling): Promise<{
  submitted: string[]
  byOther: { name: string; txid: string }[]
  undecided: UndecidedMint[]
  damaged: string[]
}> {
  const byOther: { name: string; txid: string }[] = []
  const submitted: string[] = []
  const undecided: UndecidedMint[] = []
  const end = performance.now() + MAX_TIME
  const { mints, damaged } = await options.folder.read()
  for (const mint of mints) {
    const { txid, state } = mint
    if (state === 'known' || state === 'lost') continue
    const name = nameOf(mint.transaction)
    if (performance.now() > end) {
      undecided.push({ txid, name, why: 'the mints before it took too long' })
      continue
    }
    try {
      const why = await reconcile(options, { ...mint, name })
      if (why !== undefined) undecided.push({ txid, name, why })
      else if ((await options.folder.stateOf(txid)) === 'known') submitted.push(name)
      else {
        const other = await otherMint(options, { ...mint, name })
        if (other !== undefined) byOther.push({ name, txid: other.txid })
      }
    } catch (error) {
      undecided.push({ txid, name, why: messageOf(error) })
    }
  }
  return { submitted, byOther, undecided, damaged }
}

/** @returns Why nobody can say yet what becomes of the mint; undefined where that is known. */
async function reconcile(
  { folder, send, index, ...trust }: Reconciling,
  mint: StoredMint & { name: string },
): Promise<string | undefined> {
  const { txid, transaction, name } = mint
  const outcome = await send?.({ transaction, name })
  if (outcome?.kind === 'refused' && mint.state === 'pending') {
    await folder.settle(txid, 'lost')
    return undefined
  }
  if (outcome?.kind === 'accepted') await folder.settle(txid, 'sent')
  // The index decides nothing that the network has not: but a mint that it has needs no more sending.
  else if (outcome !== undefined && mint.state === 'pending') {
    const other = await otherMint({ index, ...trust }, mint)
    if (other === undefined || other.txid === txid || !other.proven) return outcome.why
    await folder.settle(txid, 'lost')
    return undefined
  }
  try {
    await index.submit({ beef: writeBeef(transaction), txid, name })
    return undefined
  } catch (error) {
    if (!(error instanceof NodeMovedError)) throw error
    const rival = await rivalOf(mint, { index, ...trust })
    if (rival === undefined) return 'the server says that another mint has taken its place, and shows none'
    if (rival.line.some((each) => each.txid === txid)) {
      await folder.settle(txid, 'known')
      return undefined
    }
    if (!rival.proven && (await folder.stateOf(txid)) === 'sent')
      return 'the network has accepted it, and the server shows another mint in its place that is in no block yet'
    await folder.settle(txid, 'lost')
    return undefined
  }
}

/** The mint by which the owner of a mint of ours has its name, as far as the index knows one. */
async function otherMint(
  { index, ...trust }: Pick<Reconciling, 'index' | 'deployment' | keyof Trust>,
  { transaction, name }: StoredMint & { name: string },
): Promise<OwnersMint | undefined> {
  const script = transaction.outputs[2]?.lockingScript
  if (script === undefined) return undefined
  return await ownersMint({ ...trust, index, name, nameScript: Uint8Array.from(script.toUint8Array()) })
}

/** A node that descends from the one which a mint spends, through another mint. */
async function rivalOf(
  { transaction, name }: StoredMint & { name: string },
  options: Trust & { index: MineIndex; deployment: Deployment },
): Promise<VerifiedNode | undefined> {
  const after = nodeOf(transaction, name)
  if (after === undefined) return undefined
  // Where the rival has taken the very name, only what is mined from that shows it.
  for (const asked of [name, `${name}a`]) {
    const node = await verifiedLiveNode({ ...options, name: asked }, after)
    if (node !== undefined) return node
  }
  return undefined
}

/** The name that a mint is of: the domain of the node in output 1. */
function nameOf(transaction: Transaction): string {
  const { outputs } = readTransaction(Uint8Array.from(transaction.toUint8Array()))
  return decodeMineNode(outputs[1]?.lockingScript ?? new Uint8Array()).domain
}

/** The node that a mint of ours spends; undefined where its transaction is not stored beside it. */
function nodeOf(transaction: Transaction, name: string): Outpoint | undefined {
  for (const { sourceTransaction, sourceOutputIndex: vout } of transaction.inputs) {
    const script = sourceTransaction?.outputs[vout]?.lockingScript
    if (sourceTransaction === undefined || script === undefined) continue
    try {
      const { domain } = decodeMineNode(Uint8Array.from(script.toUint8Array()))
      if (domain === name.slice(0, -1)) return { txid: sourceTransaction.id('hex'), vout }
    } catch {
      // A coin that pays, and no node.
    }
  }
  return undefined
}
