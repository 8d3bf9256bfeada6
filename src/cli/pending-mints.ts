import type { Transaction } from '@bsv/sdk'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import type { VerifiedNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { type OwnersMint, ownersMint, verifiedLiveNode } from '../mining/live-node.js'
import type { MineIndex } from '../mining/mine-index.js'
import { NodeMovedError } from '../mining/mining-error.js'
import type { MintFolder, StoredMint } from './mint-folder.js'
import type { SendMint } from './mint-services.js'

/** Submits stored mints to an index, and records those that it has accepted. */
export class RecordingIndex implements MineIndex {
  readonly liveNode: MineIndex['liveNode']
  readonly showNode: MineIndex['showNode']
  readonly showName: MineIndex['showName']

  constructor(
    private readonly index: MineIndex,
    private readonly folder: MintFolder,
  ) {
    this.liveNode = (name) => index.liveNode(name)
    this.showNode = (name, known) => index.showNode(name, known)
    this.showName = (name, known) => index.showName(name, known)
  }

  async submit(mint: Parameters<MineIndex['submit']>[0]): Promise<void> {
    await this.index.submit(mint)
    await this.folder.setState(mint.txid, 'known')
  }
}

/** A paid mint that may or may not count; that is not known yet. */
export interface UndecidedMint {
  txid: string
  name: string
  why: string
}

/** After this long, in milliseconds, the remaining mints wait for the next command. */
const MAX_TIME = 120_000

interface Reconciling extends Trust {
  folder: MintFolder
  index: MineIndex
  deployment: Deployment
  send: SendMint | undefined
}

/** What became of a stored mint that was sent again. */
type MintOutcome =
  | { kind: 'submitted' }
  /** Its owner has the name by another transaction. */
  | { kind: 'by other'; txid: string }
  | { kind: 'lost' }
  | { kind: 'undecided'; why: string }

/**
 * Sends the stored mints that are in no index yet: to the network first, then to the index. A mint that is stuck does not
 * hold up the others.
 *
 * @returns The names of the mints that the index has now; names that their owners have by another transaction; the mints
 * that stay undecided; and the files that hold no mint.
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
  const end = monotonic() + MAX_TIME
  const { mints, damaged } = await options.folder.read()
  for (const mint of mints) {
    const { txid, state } = mint
    if (state === 'known' || state === 'lost') continue
    const name = nameOf(mint.transaction)
    let outcome: MintOutcome
    try {
      outcome =
        monotonic() > end
          ? { kind: 'undecided', why: 'earlier mints took too long' }
          : await reconcile(options, { ...mint, name })
    } catch (error) {
      outcome = { kind: 'undecided', why: messageOf(error) }
    }
    if (outcome.kind === 'submitted') submitted.push(name)
    else if (outcome.kind === 'by other') byOther.push({ name, txid: outcome.txid })
    else if (outcome.kind === 'undecided') undecided.push({ txid, name, why: outcome.why })
  }
  return { submitted, byOther, undecided, damaged }
}

async function reconcile(
  { folder, send, index, ...trust }: Reconciling,
  mint: StoredMint & { name: string },
): Promise<MintOutcome> {
  const { txid, transaction, name } = mint
  const lose = async (known?: OwnersMint): Promise<MintOutcome> => {
    await folder.setState(txid, 'lost')
    const other = known ?? (await otherMint({ index, ...trust }, mint))
    return other === undefined ? { kind: 'lost' } : { kind: 'by other', txid: other.txid }
  }
  const sent = await send?.({ transaction, name })
  if (sent?.kind === 'refused' && mint.state === 'pending') return await lose()
  if (sent?.kind === 'accepted') await folder.setState(txid, 'sent')
  // The network decides, not the index, unless the index proves that another mint is in a block.
  else if (sent !== undefined && mint.state === 'pending') {
    const other = await otherMint({ index, ...trust }, mint)
    if (other === undefined || other.txid === txid || !other.proven)
      return { kind: 'undecided', why: sent.why }
    return await lose(other)
  }
  try {
    await index.submit({ beef: writeBeef(transaction), txid, name })
    return { kind: 'submitted' }
  } catch (error) {
    if (!(error instanceof NodeMovedError)) throw error
    const winner = await conflictingNode(mint, { index, ...trust })
    if (winner === undefined)
      return { kind: 'undecided', why: 'the server says that another mint has replaced it, but shows none' }
    if (winner.line.some((each) => each.txid === txid)) {
      await folder.setState(txid, 'known')
      return { kind: 'submitted' }
    }
    if (!winner.proven && (await folder.stateOf(txid)) === 'sent')
      return {
        kind: 'undecided',
        why: 'the network has accepted it, and the server shows another mint, in no block yet, in its place',
      }
    return await lose()
  }
}

/** The mint by which the owner of one of our mints has its name, if the index knows one. */
async function otherMint(
  { index, ...trust }: Pick<Reconciling, 'index' | 'deployment' | keyof Trust>,
  { transaction, name }: StoredMint & { name: string },
): Promise<OwnersMint | undefined> {
  const script = transaction.outputs[2]?.lockingScript
  if (script === undefined) return undefined
  return await ownersMint({ ...trust, index, name, nameScript: Uint8Array.from(script.toUint8Array()) })
}

/** A node that descends, through another mint, from the one that a mint spends. */
async function conflictingNode(
  { transaction, name }: StoredMint & { name: string },
  options: Trust & { index: MineIndex; deployment: Deployment },
): Promise<VerifiedNode | undefined> {
  const after = nodeOf(transaction, name)
  if (after === undefined) return undefined
  // If the other mint is of the same name, only nodes below that name show it.
  for (const asked of [name, `${name}a`]) {
    const node = await verifiedLiveNode({ ...options, name: asked }, { after })
    if (node !== undefined) return node
  }
  return undefined
}

/** The name of a mint: the domain of the node in output 1. */
function nameOf(transaction: Transaction): string {
  const { outputs } = readTransaction(Uint8Array.from(transaction.toUint8Array()))
  return decodeMineNode(outputs[1]?.lockingScript ?? new Uint8Array()).domain
}

/** The node that one of our mints spends; undefined if its transaction is not stored with it. */
function nodeOf(transaction: Transaction, name: string): Outpoint | undefined {
  for (const { sourceTransaction, sourceOutputIndex: vout } of transaction.inputs) {
    const script = sourceTransaction?.outputs[vout]?.lockingScript
    if (sourceTransaction === undefined || script === undefined) continue
    try {
      const { domain } = decodeMineNode(Uint8Array.from(script.toUint8Array()))
      if (domain === name.slice(0, -1)) return { txid: sourceTransaction.id('hex'), vout }
    } catch {
      // A coin, not a node.
    }
  }
  return undefined
}
