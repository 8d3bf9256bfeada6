import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import { readOutline } from '../../../backend/src/graph/stored-transaction.js'
import type { SyncHint } from '../../../backend/src/graph/sync-hint.js'
import { OUTPUTS_WITH_ORDINALS } from '../../../backend/src/graph/transaction-records.js'
import { placement } from '../../../backend/src/protocol/ordinal-flow.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { isCoinbase } from '../../../backend/src/protocol/transaction.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { NAME_OUTPUT } from './sync-messages.js'

/** How many inputs are looked at: each is a transaction to read. */
const MAX_INPUTS = 100
/** Bytes of the coins of one hint, which has them as hex. */
const MAX_COIN_BYTES = 200 * 1024
const NONE: SyncHint = { inputs: [], coins: [] }

/**
 * What a peer needs besides a transaction to place the ordinals in its outputs: the leading inputs that place them or carry what
 * is in them, as far as this host has what they spend. Nothing for an output of another value, which a peer asks for because of
 * that value; nothing for a mint, as a name starts a lineage by rule; and nothing if the transaction has no ordinal here.
 */
export async function syncHintOf(
  { txid, vout }: Outpoint,
  graph: Pick<FactStore, 'transactions' | 'admissions' | 'names'>,
): Promise<SyncHint> {
  if (!graph.admissions.isApplied(TOPICS.ordinals, txid)) return NONE
  const step = await readOutline(txid, graph.transactions)
  if (step === undefined || step.outputValues[vout] !== 1 || isCoinbase(step)) return NONE
  if (graph.names.genuineOrigins([{ txid, vout: NAME_OUTPUT }]).length > 0) return NONE
  const outputValues = step.outputValues.slice(0, OUTPUTS_WITH_ORDINALS)
  const isPlaced = placement({ outputValues, output: outputValues.lastIndexOf(1) })
  const hint: SyncHint = { inputs: [], coins: [] }
  let bytes = 0
  for (const [input, spent] of step.inputs.slice(0, MAX_INPUTS).entries()) {
    const source = await unlessBlocked(async () => await readOutline(spent.txid, graph.transactions))
    const satoshis = source?.outputValues[spent.vout]
    if (source === undefined || satoshis === undefined) break
    const isServed =
      satoshis === 1 &&
      source.proof !== undefined &&
      graph.admissions.of(spent).some(({ topic }) => topic === TOPICS.ordinals)
    if (isServed) hint.inputs.push(input)
    else {
      bytes += source.length
      const coin = bytes > MAX_COIN_BYTES ? undefined : graph.transactions.get(spent.txid)
      // After an unknown value, nothing can be placed.
      if (coin === undefined) break
      hint.coins.push(coin.raw)
    }
    if (isPlaced(satoshis)) break
  }
  return hint
}
