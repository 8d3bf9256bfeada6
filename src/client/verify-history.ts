import { readInscription } from '../../backend/src/protocol/inscription.js'
import { successorOf } from '../../backend/src/protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { Bundle, type ReadOptions, readOutpointBeef, type Spender } from './bundle.js'
import { ProofError } from './errors.js'
import type { Evidence } from './name-source.js'
import { ThreadShare } from './thread-share.js'
import {
  mintOf,
  type NameTrust,
  nameOutpoint,
  type VerifiedName,
  verifiedName,
  verifyNameProof,
} from './verify-name.js'
import { TransactionVerifier, type Trust } from './verify-transactions.js'

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
  const verifier = new TransactionVerifier(bundle, check, origin.txid)
  return await verifiedTip(bundle, { origin, tip: subject, verifier })
}

/** Follows an ordinal through a bundle and vouches for each step, the first one first. */
export async function verifiedTip(
  bundle: Bundle,
  way: { origin: Outpoint; tip: Outpoint; verifier: TransactionVerifier },
): Promise<VerifiedTip> {
  const { origin, tip, verifier } = way
  const output = bundle.output(tip)
  if (output === undefined) throw new ProofError('BAD_BEEF', `${formatOutpoint(tip)} is not in the BEEF`)
  const [, ...steps] = follow(bundle, { origin, tip })
  const path: VerifiedStep[] = [{ outpoint: origin }]
  for (const outpoint of steps) {
    const height = await verifier.vouch(outpoint.txid)
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

/** A name with its origin and its tip, both checked. */
export interface VerifiedHistory {
  name: VerifiedName
  tip: VerifiedTip
}

/**
 * Checks all of a name from one BEEF, as `ls_names` answers `{name, history: true}`: the mints from the genesis to the
 * origin, and the way of the ordinal from there to the output that the answer is of (BRC-174 section 4, steps 1 to 3).
 *
 * @param check.tip The output of the answer. Its txid may be left out: it is then the subject of the BEEF.
 * @throws ProofError with what does not hold; HeadersError where the chain tracker does not answer.
 */
export async function verifyNameHistory(
  check: NameTrust & { beef: Uint8Array; tip: { txid?: string; vout: number }; name: string },
): Promise<VerifiedHistory> {
  const { name, deployment } = check
  const bundle = new Bundle(check.beef, check)
  const { txid = bundle.subjectTxid, vout } = check.tip
  if (txid === undefined) throw new ProofError('BAD_BEEF', 'the BEEF holds no transaction')
  const tip: Outpoint = { txid, vout }
  if (bundle.output(tip) === undefined)
    throw new ProofError(
      'BAD_BEEF',
      `the BEEF does not hold the output of its answer, ${formatOutpoint(tip)}`,
    )
  const mint = mintOf(bundle, { name, deployment })
  const verifier = new TransactionVerifier(bundle, check, deployment.genesis.txid)
  return {
    name: await verifiedName(mint, verifier),
    tip: await verifiedTip(bundle, { origin: nameOutpoint(mint), tip, verifier }),
  }
}

/** Reading a proof is one slice, and takes a millisecond for some so many bytes: the shorter ones go first. */
const BYTES_IN_A_MILLISECOND = 10_000

/** What an index shows of a name, checked. */
export interface CheckedEvidence {
  history: VerifiedHistory
  /** Whether what the index says of the tip besides, such as that nothing spends it, is said of the tip that it shows. */
  isOfTip: boolean
}

/**
 * Checks what an index shows of a name.
 *
 * @throws ProofError with what does not hold; HeadersError where the chain tracker does not answer; the reason of the signal.
 */
export async function checkEvidence(
  check: NameTrust & { name: string; evidence: Evidence },
): Promise<CheckedEvidence> {
  const { evidence } = check
  const bytes =
    evidence.form === 'history' ? evidence.beef.length : evidence.proof.length + evidence.provenance.length
  await giveWay(bytes, check)
  if (evidence.form === 'history')
    return { history: await verifyNameHistory({ ...check, ...evidence }), isOfTip: true }
  const { proof, provenance } = evidence
  const name = await verifyNameProof({ ...check, proof })
  if (formatOutpoint(evidence.origin) !== formatOutpoint(name.origin)) {
    const said = `the index says that the origin is ${formatOutpoint(evidence.origin)}`
    throw new ProofError('OTHER_ORIGIN', `${said}, and proves ${formatOutpoint(name.origin)}`)
  }
  await giveWay(provenance.length, check)
  const tip = await verifyProvenance({ ...check, provenance, origin: name.origin })
  return { history: { name, tip }, isOfTip: isSaidOf(evidence, tip) }
}

/** Lets other checks go first, and the rest of the thread's work. */
async function giveWay(bytes: number, { signal }: Pick<NameTrust, 'signal'>): Promise<void> {
  await new ThreadShare(bytes / BYTES_IN_A_MILLISECOND).yield()
  signal?.throwIfAborted()
}

/**
 * Whether the tip that is shown is the one that the index spoke of before. Between two questions a name may have moved on,
 * and then the index has not said whether the new tip is spent.
 */
function isSaidOf({ tip: said }: Extract<Evidence, { form: 'proofs' }>, shown: VerifiedTip): boolean {
  const outpoint = formatOutpoint(said)
  if (outpoint === formatOutpoint(shown.tip)) return true
  if (shown.path.some((step) => formatOutpoint(step.outpoint) === outpoint)) return false
  const reached = formatOutpoint(shown.tip)
  throw new ProofError(
    'OTHER_TIP',
    `the index says that the tip is ${outpoint}, and shows the way to ${reached}`,
  )
}
