import { readInscription } from '../../backend/src/protocol/inscription.js'
import { successorOf } from '../../backend/src/protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { type Bundle, type ReadOptions, readOutpointBeef, type Spender } from './bundle.js'
import { ProofError } from './proof-error.js'
import { type Trust, Voucher } from './vouch.js'

/** One place where the ordinal of a name stood. */
export interface VerifiedStep {
  outpoint: Outpoint
  /** Of the block that holds it; undefined where none does, or where no headers were asked. */
  height?: number
}

/** Where the ordinal of a name is, as far as what was shown goes. That nothing spends it since, no proof can show. */
export interface VerifiedTip {
  tip: Outpoint
  /** How often it went on since its origin. */
  sequence: number
  /** From the origin, which is vouched for elsewhere, to the tip. */
  path: VerifiedStep[]
  /** Whether every step after the origin is in a block that the chain tracker knows. */
  proven: boolean
  /** Of the tip, whole. */
  lockingScript: Uint8Array
  /** The public key hash, in hex, where the lock is P2PKH. */
  owner?: string
}

/**
 * Follows the ordinal of a name from its origin to where it is now (BRC-174 section 4, step 3.1), by the arithmetic of
 * BRC-159. The origin is given, and is where a lineage starts whatever came before (protocol.md 5): that it is genuine is
 * for {@link verifyNameProof}. Each step is read off the transaction that spends the one before, its txid binding the
 * values of what else it spends, and is vouched for.
 *
 * @param check.provenance As `GET /svc/gateway/provenance/{outpoint}` answers it: an Outpoint BEEF of the tip.
 * @throws ProofError with what does not hold; HeadersError where the chain tracker does not answer.
 */
export async function verifyProvenance(
  check: Trust & ReadOptions & { provenance: Uint8Array; origin: Outpoint },
): Promise<VerifiedTip> {
  const { subject, bundle } = readOutpointBeef(check.provenance, check)
  const { origin } = check
  // Its mint is vouched for by the proof of the name, and what it spent need not be shown again.
  const voucher = new Voucher(bundle, check, origin.txid)
  return await vouchedTip(bundle, { origin, tip: subject, voucher })
}

/** Follows an ordinal through a bundle and vouches for each step, the first one first. */
export async function vouchedTip(
  bundle: Bundle,
  way: { origin: Outpoint; tip: Outpoint; voucher: Voucher },
): Promise<VerifiedTip> {
  const { origin, tip, voucher } = way
  const output = bundle.output(tip)
  if (output === undefined) throw new ProofError('BAD_BEEF', `${formatOutpoint(tip)} is not in the BEEF`)
  const [, ...steps] = follow(bundle, { origin, tip })
  const path: VerifiedStep[] = [{ outpoint: origin }]
  for (const outpoint of steps) {
    const height = await voucher.vouch(outpoint.txid)
    path.push({ outpoint, ...(height !== undefined && { height }) })
  }
  const { lockingScript } = output
  const { owner } = readInscription(lockingScript)
  return {
    tip,
    sequence: steps.length,
    path,
    proven: path.slice(1).every(({ height }) => height !== undefined),
    // Not a view, which would keep all of the proof.
    lockingScript: lockingScript.slice(),
    ...(owner !== undefined && { owner }),
  }
}

/** Where the ordinal stood, from the origin to the tip. */
function follow(bundle: Bundle, { origin, tip }: { origin: Outpoint; tip: Outpoint }): Outpoint[] {
  const wanted = formatOutpoint(tip)
  const path = [origin]
  let at = origin
  for (let spender = bundle.spenderOf(at); spender !== undefined; spender = bundle.spenderOf(at)) {
    const { txid } = spender.transaction
    if (formatOutpoint(at) === wanted)
      throw new ProofError('STALE_TIP', `the tip ${wanted} is spent by ${txid}, which is shown beside it`)
    const next = successor(bundle, { at, spender })
    if (next === undefined) throw new ProofError('NOT_DESCENDED', `${txid} burns the ordinal`)
    path.push(next)
    at = next
  }
  if (formatOutpoint(at) === wanted) return path
  throw new ProofError(
    'NOT_DESCENDED',
    `the ordinal is followed to ${formatOutpoint(at)}, which is not the tip ${wanted}`,
  )
}

/** Where a transaction carries the ordinal; undefined where it is burnt. */
function successor(
  bundle: Bundle,
  { at, spender }: { at: Outpoint; spender: Spender },
): Outpoint | undefined {
  const { transaction, input } = spender
  const { txid } = transaction
  const inputValues = transaction.inputs.slice(0, input).map((before) => bundle.output(before)?.satoshis)
  const outputValues = transaction.outputs.map(({ satoshis }) => satoshis)
  const found = successorOf({ inputValues, outputValues, input })
  if (found.kind === 'output') return { txid, vout: found.vout }
  if (found.kind === 'burnt') return undefined
  throw new ProofError(
    'UNPLACED',
    `where ${txid} carries ${formatOutpoint(at)} cannot be told: a value before it is not shown`,
  )
}
