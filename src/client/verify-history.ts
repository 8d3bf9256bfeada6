import { ownerOf } from '../../backend/src/protocol/inscription.js'
import { successorOf } from '../../backend/src/protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { requireArgument, requireBytes, requireHeaders, requireOutpoint, requireTree } from './arguments.js'
import { Bundle, type ReadOptions, readOutpointBeef, type Spender } from './bundle.js'
import { ProofError } from './errors.js'
import {
  type KnownMint,
  type KnownName,
  type KnownStep,
  mintIn,
  NAME_VOUT,
  originScript,
  withSteps,
} from './known-name.js'
import type { Evidence } from './name-source.js'
import { ThreadShare } from './thread-share.js'
import {
  bindingInputs,
  type CheckedOrigin,
  checkNameProof,
  checkPart,
  findMint,
  type NameTrust,
  nameOutpoint,
  noMintOf,
  type OriginOutput,
  remembered,
  type SoughtName,
  type VerifiedName,
  verifiedName,
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
  /** The outputs that the key of an identity binding in the tip may name: inputs of its transaction. */
  bindingInputs: Outpoint[]
}

/**
 * Follows the ordinal of a name from its origin to its tip (BRC-174 section 4, step 3.1) by the arithmetic of BRC-159. The caller
 * gives the origin: a lineage starts there whatever came before (`docs/spec/protocol.md`, Ordinals), and {@link verifyNameProof}
 * shows whether it is genuine. Each step is computed from the transaction that spends the previous one, whose txid commits to the
 * values of its other inputs, and that transaction is verified.
 *
 * @param check.provenance The answer of `GET /svc/gateway/provenance/{outpoint}`: an Outpoint BEEF of the tip.
 * @throws ProofError; HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function verifyProvenance(
  check: Trust & ReadOptions & { provenance: Uint8Array; origin: Outpoint },
): Promise<VerifiedTip> {
  requireHeaders(check.chainTracker)
  requireBytes(check.provenance, 'provenance')
  requireOutpoint(check.origin, 'origin')
  const { tip } = await checkProvenance(check)
  return tip
}

/** A verified path, and what to remember of the name. */
interface CheckedTip {
  tip: VerifiedTip
  known: KnownName | undefined
}

/** As {@link verifyProvenance}, but starts from what is known of the name, whose origin is verified. */
async function checkProvenance(
  check: Trust & ReadOptions & { provenance: Uint8Array; origin: Outpoint; earlier?: KnownName | undefined },
): Promise<CheckedTip> {
  const { subject, bundle } = readOutpointBeef(check.provenance, check)
  const { origin, earlier: known } = check
  // The proof of the name verifies its mint, so the inputs of the mint need not be shown again.
  const verifier = new TransactionVerifier(bundle, check, origin.txid)
  return await checkTip(bundle, { origin, tip: subject, verifier, known })
}

/** Follows an ordinal through a bundle and verifies each step, in order. */
async function checkTip(
  bundle: Bundle,
  asked: { origin: Outpoint; tip: Outpoint; verifier: TransactionVerifier; known: KnownName | undefined },
): Promise<CheckedTip> {
  const { origin, tip, verifier, known } = asked
  const output = bundle.output(tip)
  if (output === undefined) throw new ProofError('BAD_BEEF', `${formatOutpoint(tip)} is not in the BEEF`)
  const verified = new Map(known?.steps.map((step) => [formatOutpoint(step), step]))
  const [, ...steps] = follow(bundle, { origin, tip, known: known?.steps ?? [] })
  const path: VerifiedStep[] = [{ outpoint: origin }]
  for (const outpoint of steps) {
    const height = verified.get(formatOutpoint(outpoint))?.height ?? (await verifier.verify(outpoint.txid))
    path.push({ outpoint, ...(height !== undefined && { height }) })
  }
  return {
    tip: tipOf(path, {
      lockingScript: output.lockingScript,
      spends: bindingInputs(bundle, { tip, before: path.at(-2)?.outpoint }),
    }),
    known: known && rememberedPath(bundle, { path, verified, known }),
  }
}

/** The tip at the end of a path. */
function tipOf(path: VerifiedStep[], { lockingScript, spends }: OriginOutput): VerifiedTip {
  const owner = ownerOf(lockingScript)
  const { outpoint } = path.at(-1) as VerifiedStep
  return {
    tip: outpoint,
    sequence: path.length - 1,
    path,
    proven: path.slice(1).every(({ height }) => height !== undefined),
    // A copy: a view would keep the whole proof in memory.
    lockingScript: lockingScript.slice(),
    ...(owner !== undefined && { owner }),
    bindingInputs: spends,
  }
}

/** What is known of a name once its path is verified: its steps before the first one in no block. */
function rememberedPath(
  bundle: Bundle,
  { path, verified, known }: { path: VerifiedStep[]; verified: Map<string, KnownStep>; known: KnownName },
): KnownName {
  const steps: KnownStep[] = []
  for (const { outpoint, height } of path.slice(1)) {
    const before = verified.get(formatOutpoint(outpoint))
    const block = bundle.paths.claimedBlock(outpoint.txid)
    if (before !== undefined) steps.push(before)
    else if (height === undefined || block === undefined) break
    else steps.push({ ...outpoint, ...block })
  }
  const last = steps.at(-1)
  const lockingScript = last && bundle.output(last)?.lockingScript
  if (last === undefined || lockingScript === undefined) return known
  const before = path[steps.length - 1]?.outpoint
  const spends = bindingInputs(bundle, { tip: last, before }).map(formatOutpoint)
  return withSteps(known, { steps, lockingScript, spends })
}

/** The outputs that held the ordinal, from the origin to the tip. The bundle may leave out steps that are known. */
function follow(
  bundle: Bundle,
  { origin, tip, known }: { origin: Outpoint; tip: Outpoint; known: readonly KnownStep[] },
): Outpoint[] {
  const wanted = formatOutpoint(tip)
  const places: Outpoint[] = [origin, ...known.map(({ txid, vout }) => ({ txid, vout }))]
  const isStart = (place: Outpoint): boolean =>
    formatOutpoint(place) === wanted || bundle.spenderOf(place) !== undefined
  // From the last place at which the bundle continues: it may show the whole path, or another one from some step on.
  const path = places.slice(0, Math.max(0, places.findLastIndex(isStart)) + 1)
  let at = path.at(-1) ?? origin
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
  check: NameTrust & {
    beef: Uint8Array
    tip: { txid?: string; vout: number }
    name: string
  },
): Promise<VerifiedHistory> {
  requireTree(check)
  requireBytes(check.beef, 'beef')
  requireArgument(Number.isInteger(check.tip?.vout), 'tip', 'an output, { txid?, vout }')
  const { history } = await checkHistory(check)
  if (history === undefined)
    throw new ProofError('NOT_IN_TREE', `the BEEF shows only a part of the way to ${check.name}`)
  return history
}

async function checkHistory(
  check: NameTrust & SoughtName & { beef: Uint8Array; tip: { txid?: string; vout: number } },
): Promise<{ history: VerifiedHistory; known: KnownName | undefined } | CheckedPart> {
  const { deployment } = check
  const bundle = new Bundle(check.beef, check)
  const { txid = bundle.subjectTxid, vout } = check.tip
  if (txid === undefined) throw new ProofError('BAD_BEEF', 'the BEEF holds no transaction')
  const tip: Outpoint = { txid, vout }
  if (bundle.output(tip) === undefined)
    throw new ProofError('BAD_BEEF', `the BEEF does not hold the output ${formatOutpoint(tip)} of its answer`)
  const mint = findMint(bundle, check)
  if (mint === undefined && check.earlier !== undefined && vout === NAME_VOUT)
    return { known: await checkPart(bundle, { ...check, origin: tip }) }
  if (mint === undefined) throw noMintOf(check.name)
  const verifier = new TransactionVerifier(bundle, check, deployment.genesis.txid)
  const name = await verifiedName(mint, verifier)
  const known = remembered(bundle, { ...check, verified: name })
  const path = await checkTip(bundle, { origin: nameOutpoint(mint), tip, verifier, known })
  return { history: { name, tip: path.tip }, known: path.known }
}

/** The known history of a name; undefined if its origin is not known, or the script of its tip. */
export function knownHistory(
  { name, deployment }: Pick<SoughtName, 'name' | 'deployment'>,
  known: KnownName,
): VerifiedHistory | undefined {
  const mint = mintIn(known, name)
  if (mint === undefined) return undefined
  const lockingScript = known.lockingScript ?? originScript(mint, deployment)
  const spends = (known.lockingScript === undefined ? mint.spends : known.spends)?.map(parseOutpoint)
  if (lockingScript === undefined || spends === undefined) return undefined
  const verified = knownOrigin(known, mint)
  const steps = known.steps.map(({ txid, vout, height }) => ({ outpoint: { txid, vout }, height }))
  return { name: verified, tip: tipOf([{ outpoint: verified.origin }, ...steps], { lockingScript, spends }) }
}

function knownOrigin({ line }: KnownName, { txid, name, height }: KnownMint): VerifiedName {
  return {
    name,
    origin: { txid, vout: NAME_VOUT },
    line: line.map((mint) => ({ txid: mint.txid, name: mint.name, height: mint.height })),
    proven: true,
    height,
  }
}

/** How much of a proof is parsed per millisecond, in bytes. Parsing is one slice, so short proofs go first. */
const BYTES_PER_MILLISECOND = 10_000

/** A checked part of an index's evidence, and what is then known of the way to the name. */
export interface CheckedPart {
  history?: undefined
  known: KnownName | undefined
}

export interface CheckedEvidence {
  history: VerifiedHistory
  /** Whether the index's other claims about the tip, such as that it is unspent, are about the tip it proves. */
  isOfTip: boolean
  /** What to remember of the name; undefined for nothing. */
  known: KnownName | undefined
}

/**
 * Checks an index's evidence for a name.
 *
 * @param check.earlier What was verified of the name earlier, which the evidence may leave out.
 * @throws ProofError; HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function checkEvidence(
  check: NameTrust & SoughtName & { evidence: Evidence },
): Promise<CheckedEvidence | CheckedPart> {
  const { evidence } = check
  if (evidence.form === 'history') {
    await giveWay(evidence.beef.length, check)
    const checked = await checkHistory({ ...check, ...evidence })
    return checked.history === undefined ? checked : { ...checked, isOfTip: true }
  }
  if (evidence.isPart && evidence.proof !== undefined) {
    await giveWay(evidence.proof.length, check)
    const { subject, bundle } = readOutpointBeef(evidence.proof, check)
    return { known: await checkPart(bundle, { ...check, origin: subject }) }
  }
  const origin = await checkOrigin(check, evidence)
  const { name } = origin
  if (formatOutpoint(evidence.origin) !== formatOutpoint(name.origin)) {
    const claimed = `the index claims the origin ${formatOutpoint(evidence.origin)}`
    throw new ProofError('OTHER_ORIGIN', `${claimed} but proves ${formatOutpoint(name.origin)}`)
  }
  const { tip, known } = await checkPath(check, { evidence, origin })
  return { history: { name, tip }, isOfTip: isClaimedTip(evidence, tip), known }
}

type Proofs = Extract<Evidence, { form: 'proofs' }>

/** The origin by its proof, or the known one. */
async function checkOrigin(check: NameTrust & SoughtName, { proof }: Proofs): Promise<CheckedOrigin> {
  if (proof !== undefined) {
    await giveWay(proof.length, check)
    return await checkNameProof({ ...check, proof })
  }
  const { earlier: known, name } = check
  const mint = known && mintIn(known, name)
  if (known === undefined || mint === undefined)
    throw new ProofError('NOT_IN_TREE', 'the index gives no proof of the name')
  return { name: knownOrigin(known, mint), known, output: undefined }
}

/** The path of the ordinal by its provenance, or the known one. */
async function checkPath(
  check: NameTrust & SoughtName,
  { evidence, origin }: { evidence: Proofs; origin: CheckedOrigin },
): Promise<CheckedTip> {
  const { provenance } = evidence
  const { name, known, output } = origin
  if (provenance !== undefined) {
    await giveWay(provenance.length, check)
    return await checkProvenance({ ...check, provenance, origin: name.origin, earlier: known }).catch(
      ofProvenance,
    )
  }
  const claimed = formatOutpoint(evidence.tip)
  if (output !== undefined && claimed === formatOutpoint(name.origin))
    return { tip: tipOf([{ outpoint: name.origin }], output), known }
  const tip = known && knownHistory(check, known)?.tip
  if (tip === undefined || formatOutpoint(tip.tip) !== claimed)
    throw new ProofError('NOT_DESCENDED', `the index does not show how the ordinal got to ${claimed}`)
  return { tip, known }
}

/** Says in `data` that the provenance is the invalid proof. */
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
function isClaimedTip({ tip }: Proofs, proven: VerifiedTip): boolean {
  const claimed = formatOutpoint(tip)
  const reached = formatOutpoint(proven.tip)
  if (claimed === reached) return true
  if (proven.path.some((step) => formatOutpoint(step.outpoint) === claimed)) return false
  throw new ProofError('OTHER_TIP', `the index claims the tip ${claimed} but proves a path to ${reached}`)
}
