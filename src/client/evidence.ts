import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { type VerifiedHistory, verifyNameHistory } from './name-history.js'
import { type NameTrust, verifyNameProof } from './name-proof.js'
import type { Evidence } from './name-source.js'
import { ProofError } from './proof-error.js'
import { type VerifiedTip, verifyProvenance } from './provenance.js'
import { ThreadShare } from './thread-share.js'

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
