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

/** One output that held the ordinal of a name. */
export interface VerifiedStep {
  outpoint: Outpoint
  /** The height of its block; undefined if it is in none, or if no headers were asked. */
  height?: number
}

/** Where the ordinal of a name is, according to the proof. No proof can show that the tip is still unspent. */
export interface VerifiedTip {
  tip: Outpoint
  /** How many transactions have moved the ordinal since its origin. */
  sequence: number
  /** From the origin, which is verified separately, to the tip. */
  path: VerifiedStep[]
  /** Whether every step after the origin is in a block that the chain tracker knows. */
  proven: boolean
  /** The complete script of the tip. */
  lockingScript: Uint8Array
  /** The public key hash, in hex, if the lock is P2PKH. */
  owner?: string
  /** What the key of an identity binding in the tip may name: outputs that its transaction spends. */
  bindingInputs: Outpoint[]
}

/**
 * Follows the ordinal of a name from its origin to its tip (BRC-174 section 4, step 3.1) by the arithmetic of BRC-159.
 * The origin is the caller's: a lineage starts there whatever came before (protocol.md 5), and {@link verifyNameProof}
 * shows whether it is genuine. Each step is computed from the transaction that spends the previous one, whose txid
 * commits to the values of its other inputs, and that transaction is verified.
 *
 * @param check.provenance The answer of `GET /svc/gateway/provenance/{outpoint}`: an Outpoint BEEF of the tip.
 * @throws ProofError; HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function verifyProvenance(
  check: Trust & ReadOptions & { provenance: Uint8Array; origin: Outpoint },
): Promise<VerifiedTip> {
  const { subject, bundle } = readOutpointBeef(check.provenance, check)
  const { origin } = check
  // The proof of the name verifies its mint, so the inputs of the mint need not be shown again.
  const verifier = new TransactionVerifier(bundle, check, origin.txid)
  return await verifiedTip(bundle, { origin, tip: subject, verifier })
}

/** Follows an ordinal through a bundle and verifies each step, the first one first. */
async function verifiedTip(
  bundle: Bundle,
  { origin, tip, verifier }: { origin: Outpoint; tip: Outpoint; verifier: TransactionVerifier },
): Promise<VerifiedTip> {
  const output = bundle.output(tip)
  if (output === undefined) throw new ProofError('BAD_BEEF', `${formatOutpoint(tip)} is not in the BEEF`)
  const [, ...steps] = follow(bundle, { origin, tip })
  const path: VerifiedStep[] = [{ outpoint: origin }]
  for (const outpoint of steps) {
    const height = await verifier.verify(outpoint.txid)
    path.push({ outpoint, ...(height !== undefined && { height }) })
  }
  const { lockingScript } = output
  const { owner } = readInscription(lockingScript)
  return {
    tip,
    sequence: steps.length,
    path,
    proven: path.slice(1).every(({ height }) => height !== undefined),
    // A copy: a view would keep the whole proof in memory.
    lockingScript: lockingScript.slice(),
    ...(owner !== undefined && { owner }),
    bindingInputs: bindingInputs(bundle, { tip, before: path.at(-2)?.outpoint }),
  }
}

/** How many inputs of a mint are tried, in which the node may stand anywhere. */
const MINT_INPUTS = 4

/** The output that the name was in before, and the first input, which deployed wallets mean; of a mint, its first inputs. */
function bindingInputs(
  bundle: Bundle,
  { tip, before }: { tip: Outpoint; before: Outpoint | undefined },
): Outpoint[] {
  const inputs = bundle.transaction(tip.txid)?.inputs ?? []
  const named = before === undefined ? inputs.slice(0, MINT_INPUTS) : [before, ...inputs.slice(0, 1)]
  return named.map(({ txid, vout }) => ({ txid, vout }))
}

/** The outputs that held the ordinal, from the origin to the tip. */
function follow(bundle: Bundle, { origin, tip }: { origin: Outpoint; tip: Outpoint }): Outpoint[] {
  const wanted = formatOutpoint(tip)
  const path = [origin]
  let at = origin
  for (let spender = bundle.spenderOf(at); spender !== undefined; spender = bundle.spenderOf(at)) {
    const { txid } = spender.transaction
    if (formatOutpoint(at) === wanted)
      throw new ProofError('STALE_TIP', `the tip ${wanted} is spent by ${txid}, in the same BEEF`)
    const next = successor(bundle, { at, spender })
    if (next === undefined) throw new ProofError('NOT_DESCENDED', `${txid} burns the ordinal`)
    path.push(next)
    at = next
  }
  if (formatOutpoint(at) === wanted) return path
  throw new ProofError(
    'NOT_DESCENDED',
    `the ordinal goes to ${formatOutpoint(at)}, which is not the tip ${wanted}`,
  )
}

/** The output to which a transaction moves the ordinal; undefined if it burns it. @throws ProofError `UNPLACED`. */
export function successor(
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
    `cannot compute where ${txid} moves ${formatOutpoint(at)}: the value of an earlier input is missing`,
  )
}

/** A name with its origin and its tip, both verified. */
export interface VerifiedHistory {
  name: VerifiedName
  tip: VerifiedTip
}

/**
 * Checks a complete name from one BEEF, as `ls_names` answers `{name, history: true}`: the mints from the genesis to the
 * origin, and the ordinal's path from there to the tip (BRC-174 section 4, steps 1 to 3).
 *
 * @param check.tip The output in the answer. Without a txid, an output of the BEEF's subject.
 * @throws as {@link verifyProvenance}.
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
    throw new ProofError('BAD_BEEF', `the BEEF does not hold the output ${formatOutpoint(tip)} of its answer`)
  const mint = mintOf(bundle, { name, deployment })
  const verifier = new TransactionVerifier(bundle, check, deployment.genesis.txid)
  return {
    name: await verifiedName(mint, verifier),
    tip: await verifiedTip(bundle, { origin: nameOutpoint(mint), tip, verifier }),
  }
}

/** How much of a proof is parsed per millisecond, in bytes. Parsing is one slice, so short proofs go first. */
const BYTES_PER_MILLISECOND = 10_000

/** An index's evidence for a name, checked. */
export interface CheckedEvidence {
  history: VerifiedHistory
  /** Whether the index's other claims about the tip, such as that it is unspent, are about the tip it proves. */
  isOfTip: boolean
}

/**
 * Checks an index's evidence for a name.
 *
 * @throws ProofError; HeadersError if the chain tracker does not answer; the reason of the signal.
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
    const claimed = `the index claims the origin ${formatOutpoint(evidence.origin)}`
    throw new ProofError('OTHER_ORIGIN', `${claimed} but proves ${formatOutpoint(name.origin)}`)
  }
  await giveWay(provenance.length, check)
  const tip = await verifyProvenance({ ...check, provenance, origin: name.origin }).catch(ofProvenance)
  return { history: { name, tip }, isOfTip: isClaimedTip(evidence, tip) }
}

/** Says in `data` which of the two proofs does not hold. */
function ofProvenance(error: unknown): never {
  if (!(error instanceof ProofError)) throw error
  throw new ProofError(error.code, error.message, { cause: error, data: { part: 'provenance' } })
}

/** Lets shorter checks and the thread's other work go first. */
async function giveWay(bytes: number, { signal }: Pick<NameTrust, 'signal'>): Promise<void> {
  await new ThreadShare(bytes / BYTES_PER_MILLISECOND).yield()
  signal?.throwIfAborted()
}

/**
 * Whether the proven tip is the one that the index named first. A name may move between two requests, and then the index
 * has not said whether the new tip is spent.
 */
function isClaimedTip({ tip }: Extract<Evidence, { form: 'proofs' }>, proven: VerifiedTip): boolean {
  const claimed = formatOutpoint(tip)
  const reached = formatOutpoint(proven.tip)
  if (claimed === reached) return true
  if (proven.path.some((step) => formatOutpoint(step.outpoint) === claimed)) return false
  throw new ProofError('OTHER_TIP', `the index claims the tip ${claimed} but proves a path to ${reached}`)
}
