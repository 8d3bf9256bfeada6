import { readInscription } from '../../backend/src/protocol/inscription.js'
import { predecessorsOf } from '../../backend/src/protocol/ordinal-flow.js'
import {
  type ContentReference,
  formatOutpoint,
  isSameOutpoint,
  type Outpoint,
} from '../../backend/src/protocol/outpoint.js'
import { isCoinbase, type TransactionView } from '../../backend/src/protocol/transaction.js'
import { requireArgument, requireBytes, requireHeaders, requireOutpoint } from './arguments.js'
import { type Bundle, type ReadOptions, readOutpointBeef } from './bundle.js'
import { ProofError } from './errors.js'
import { successor, type VerifiedStep } from './verify-history.js'
import { TransactionVerifier, type Trust } from './verify-transactions.js'

/** An output whose transaction is in a block, or could be. */
export interface VerifiedOutput extends VerifiedStep {
  satoshis: number
  /** Its content, if it has any. The body is a view into the proof. */
  content?: { contentType: string; body: Uint8Array }
}

/** A proof from `GET /svc/gateway/proof/{reference}`, and what its check trusts. */
export interface ProofCheck extends Trust, ReadOptions {
  /** An Outpoint BEEF (BRC-158). */
  proof: Uint8Array
}

function requireProof({ chainTracker, proof }: ProofCheck): void {
  requireHeaders(chainTracker)
  requireBytes(proof, 'proof')
}

/**
 * Checks the proof of an output, and reads its content from the proven transaction.
 *
 * @param check.pointer The requested output, or a transaction: then its first output with content.
 * @throws ProofError; HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function verifyOutput(
  check: ProofCheck & { pointer: ContentReference['pointer'] },
): Promise<VerifiedOutput> {
  requireProof(check)
  requireArgument(typeof check.pointer?.kind === 'string', 'pointer', 'an output or a transaction')
  const { proof, pointer } = check
  const { subject, bundle } = readOutpointBeef(proof, check)
  const outpoint =
    pointer.kind === 'outpoint' ? pointer.outpoint : firstContent(requireTransaction(bundle, pointer.txid))
  if (!isSameOutpoint(subject, outpoint)) throw otherOutput(subject, outpoint)
  const height = await new TransactionVerifier(bundle, check).verify(outpoint.txid)
  return verifiedOutput(bundle, outpoint, height)
}

/**
 * Checks to which output a transaction moves an ordinal, by the arithmetic of BRC-159.
 *
 * @param check.proof The answer of `GET /svc/gateway/proof/{outpoint}?next`.
 * @param check.from The previous output of the ordinal, which the caller has verified.
 * @throws as {@link verifyOutput}.
 */
export async function verifyNextOutput(check: ProofCheck & { from: Outpoint }): Promise<VerifiedOutput> {
  requireProof(check)
  requireOutpoint(check.from, 'from')
  const { proof, from } = check
  const { subject, bundle } = readOutpointBeef(proof, check)
  const spender = bundle.spenderOf(from)
  if (spender === undefined)
    throw new ProofError('NOT_DESCENDED', `no transaction of the proof spends ${formatOutpoint(from)}`)
  const next = successor(bundle, { at: from, spender })
  if (next === undefined)
    throw new ProofError('NOT_DESCENDED', `${spender.transaction.txid} burns the ordinal`)
  if (!isSameOutpoint(subject, next)) throw otherOutput(subject, next)
  const height = await new TransactionVerifier(bundle, check, from.txid).verify(next.txid)
  return verifiedOutput(bundle, next, height)
}

export interface VerifiedOrdinal {
  origin: Outpoint
  /** The number of steps from the origin. */
  sequence: number
  /** The output of the ordinal at that step. */
  output: VerifiedOutput
  /** The latest output with content up to that step. */
  content: VerifiedOutput
  /** From the origin on, as far as the proof goes. */
  path: VerifiedStep[]
  /** Whether every step is in a block that the chain tracker knows. */
  proven: boolean
}

/** The sequence of the tip. */
export const TIP_SEQUENCE = -1

/**
 * Checks an ordinal at a step (BRC-159): back from the requested output to the first one of its unbroken 1-sat lineage, and on to
 * the step. The start of the lineage is proven by the values of the coins before it, or because a name was minted there.
 *
 * @param check.proof The answer of `GET /svc/gateway/proof/{outpoint}:{sequence}`.
 * @param check.sequence A step from the origin, -2 for the origin, or {@link TIP_SEQUENCE}. No proof can show that a tip is
 * unspent.
 * @param check.isMintOf Whether a genuine mint created an output, given its transaction: such an output starts a lineage,
 * whatever came before (`docs/spec/protocol.md`, Ordinals).
 * @throws as {@link verifyOutput}.
 */
export async function verifyOrdinal(
  check: ProofCheck & {
    asked: Outpoint
    sequence: number
    isMintOf: (outpoint: Outpoint, transaction: TransactionView) => Promise<boolean>
  },
): Promise<VerifiedOrdinal> {
  requireProof(check)
  requireOutpoint(check.asked, 'asked')
  const { proof, asked, sequence, isMintOf } = check
  const { subject, bundle } = readOutpointBeef(proof, check)
  const lineage = await lineageOf(bundle, { asked, isMintOf })
  const start = lineage.findIndex((outpoint) => showsContent(bundle, outpoint))
  const path = start === -1 ? [] : lineage.slice(start)
  const at = sequence === TIP_SEQUENCE ? path.length - 1 : Math.max(sequence, 0)
  const outpoint = path[at]
  const [origin] = path
  if (outpoint === undefined || origin === undefined)
    throw new ProofError(
      'NOT_DESCENDED',
      `the proof does not show ${formatOutpoint(asked)} at step ${sequence}`,
    )
  if (!isSameOutpoint(subject, outpoint)) throw otherOutput(subject, outpoint)
  // A step before the requested output belongs to its ordinal only if all steps between them are valid.
  const shown = Math.max(
    at,
    path.findIndex((each) => isSameOutpoint(each, asked)),
  )
  const verifier = new TransactionVerifier(bundle, check)
  const steps: VerifiedStep[] = []
  for (const each of path.slice(0, shown + 1)) steps.push(stepOf(each, await verifier.verify(each.txid)))
  const contentAt = steps.slice(0, at + 1).findLast((step) => showsContent(bundle, step.outpoint))
  const heightAt = (place: Outpoint): number | undefined =>
    steps.find((step) => isSameOutpoint(step.outpoint, place))?.height
  const content = contentAt?.outpoint ?? origin
  return {
    ...{ origin, sequence: at, path: steps },
    output: verifiedOutput(bundle, outpoint, heightAt(outpoint)),
    content: verifiedOutput(bundle, content, heightAt(content)),
    proven: steps.every(({ height }) => height !== undefined),
  }
}

/** The outputs of an ordinal in a bundle, from the first of its lineage on; for an output that is not 1 sat, only itself. */
async function lineageOf(
  bundle: Bundle,
  { asked, isMintOf }: { asked: Outpoint; isMintOf: Parameters<typeof verifyOrdinal>[0]['isMintOf'] },
): Promise<Outpoint[]> {
  const output = bundle.output(asked)
  if (output === undefined)
    throw new ProofError('BAD_BEEF', `the BEEF does not hold the output ${formatOutpoint(asked)}`)
  const path = [asked]
  if (output.satoshis !== 1) return path
  for (let at = asked; ; ) {
    const transaction = requireTransaction(bundle, at.txid)
    if (isCoinbase(transaction) || (await isMintOf(at, transaction))) break
    const before = predecessor(bundle, transaction, at)
    if (before === undefined) break
    path.push(before)
    at = before
  }
  path.reverse()
  let at = asked
  for (let spender = bundle.spenderOf(at); spender !== undefined; spender = bundle.spenderOf(at)) {
    const next = successor(bundle, { at, spender })
    if (next === undefined)
      throw new ProofError('NOT_DESCENDED', `${spender.transaction.txid} burns the ordinal`)
    path.push(next)
    at = next
  }
  return path
}

/** The 1-sat coin that an output continues; undefined if it continues none. @throws ProofError `UNPLACED`. */
function predecessor(bundle: Bundle, transaction: TransactionView, { vout }: Outpoint): Outpoint | undefined {
  const { txid, inputs, outputs } = transaction
  const inputValues = inputs.map((input) => bundle.output(input)?.satoshis)
  const found = predecessorsOf({ inputValues, outputValues: outputs.map(({ satoshis }) => satoshis) })[vout]
  if (found?.kind === 'input') {
    const input = inputs[found.input]
    return input && { txid: input.txid, vout: input.vout }
  }
  if (found?.kind === 'none') return undefined
  throw new ProofError(
    'UNPLACED',
    `cannot compute what ${formatOutpoint({ txid, vout })} continues: the value of an input is missing`,
  )
}

function requireTransaction(bundle: Bundle, txid: string): TransactionView {
  const transaction = bundle.transaction(txid)
  if (transaction !== undefined) return transaction
  throw new ProofError('BAD_BEEF', `the BEEF does not hold ${txid}`)
}

function firstContent({ txid, outputs }: TransactionView): Outpoint {
  const vout = outputs.findIndex(({ lockingScript }) => readInscription(lockingScript).content !== undefined)
  return { txid, vout: Math.max(vout, 0) }
}

function showsContent(bundle: Bundle, outpoint: Outpoint): boolean {
  const output = bundle.output(outpoint)
  return output !== undefined && readInscription(output.lockingScript).content !== undefined
}

function verifiedOutput(bundle: Bundle, outpoint: Outpoint, height: number | undefined): VerifiedOutput {
  const output = bundle.output(outpoint)
  if (output === undefined)
    throw new ProofError('BAD_BEEF', `the BEEF does not hold the output ${formatOutpoint(outpoint)}`)
  const { content } = readInscription(output.lockingScript)
  return {
    ...stepOf(outpoint, height),
    satoshis: output.satoshis,
    ...(content && { content: { contentType: content.contentType, body: content.body } }),
  }
}

export function stepOf(outpoint: Outpoint, height: number | undefined): VerifiedStep {
  return { outpoint, ...(height !== undefined && { height }) }
}

function otherOutput(shown: Outpoint, asked: Outpoint): ProofError {
  return new ProofError(
    'OTHER_OUTPUT',
    `the proof is of ${formatOutpoint(shown)}, not of ${formatOutpoint(asked)}`,
  )
}
