import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { Bundle } from './bundle.js'
import { nameOutpoint } from './mint-line.js'
import { mintOf, type NameTrust, type VerifiedName, vouchedName } from './name-proof.js'
import { ProofError } from './proof-error.js'
import { type VerifiedTip, vouchedTip } from './provenance.js'
import { Voucher } from './vouch.js'

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
  const voucher = new Voucher(bundle, check, deployment.genesis.txid)
  return {
    name: await vouchedName(mint, voucher),
    tip: await vouchedTip(bundle, { origin: nameOutpoint(mint), tip, voucher }),
  }
}
