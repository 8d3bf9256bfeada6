import { equalBytes } from '../../backend/src/protocol/bytes.js'
import { GeneralError } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Transaction } from '../../backend/src/protocol/sdk-types.js'
import { requireBytes } from '../client/arguments.js'
import { type Bundle, readOutpointBeef, sdkTransactionIn } from '../client/bundle.js'
import { type IdentityBinding, verifyBinding } from '../client/verify-binding.js'
import type { VerifiedTip } from '../client/verify-history.js'

export type IdentityErrorCode =
  /** Neither the key nor the wallet can spend the name. */
  | 'NOT_YOURS'
  /** The lock is no identity binding for this name in its current output. */
  | 'BAD_LOCK'
  /** The binding has unknown fields, for which the other layout has no place. */
  | 'UNKNOWN_FIELDS'
  /** The layout has no place for an attribute. */
  | 'BAD_PROFILE'
  /** The bytes do not contain the transaction of the resolved name. */
  | 'BAD_SOURCE'

/** A name was not bound or moved, by the caller's fault. */
export class IdentityError extends GeneralError<IdentityErrorCode> {
  override readonly name = 'IdentityError'
}

export interface NameOutput {
  outpoint: Outpoint
  lockingScript: Uint8Array
  /** As in a {@link VerifiedTip}. */
  bindingInputs: Outpoint[]
}

/** The output that holds a name; its holder spends it to bind or to move the name. */
export interface NameCoin extends NameOutput {
  name: string
  /** The transaction of the output, with its merkle path or its ancestors down to proven ones. */
  transaction: Transaction
}

/**
 * The output of a resolved name, with its transaction.
 *
 * @param resolved.tip The verified place of the name.
 * @param resolved.provenance Its Outpoint BEEF, as `GET /svc/gateway/provenance/{origin}` answers. What it contains beyond the
 * transaction of the tip is checked by the network.
 * @throws IdentityError `BAD_SOURCE`; ProofError if the bytes cannot be read; TypeError if there are none.
 */
export function nameCoin(resolved: {
  name: string
  tip: Pick<VerifiedTip, 'tip' | 'lockingScript' | 'bindingInputs'>
  provenance: Uint8Array
}): NameCoin {
  const { name, tip, provenance } = resolved
  const bundle = bundleIn(provenance)
  const output = bundle.output(tip.tip)
  const transaction = sdkTransactionIn(bundle, tip.tip.txid)
  if (
    output === undefined ||
    transaction === undefined ||
    !equalBytes(output.lockingScript, tip.lockingScript)
  )
    throw new IdentityError(
      'BAD_SOURCE',
      `the provenance does not hold ${formatOutpoint(tip.tip)}, where ${name} is: resolve it again`,
    )
  const { lockingScript, bindingInputs } = tip
  return { name, outpoint: tip.tip, lockingScript, bindingInputs, transaction }
}

/** A transaction that has moved a name, and the output that the name went to. */
export interface NameStep extends Outpoint {
  outputs: readonly { satoshis: number; lockingScript: Uint8Array }[]
}

/**
 * The transactions that have moved a resolved name, from the mint to the tip, with all of their outputs. Each is the verified
 * one, whoever sent it, because its txid is its hash.
 *
 * @param resolved As for {@link nameCoin}.
 * @throws IdentityError `BAD_SOURCE` if one is missing; ProofError if the bytes cannot be read; TypeError if there are none.
 */
export function nameSteps(resolved: {
  name: string
  tip: Pick<VerifiedTip, 'path'>
  provenance: Uint8Array
}): NameStep[] {
  const { name, tip, provenance } = resolved
  const bundle = bundleIn(provenance)
  return tip.path.map(({ outpoint }) => {
    const transaction = bundle.transaction(outpoint.txid)
    if (transaction !== undefined) return { ...outpoint, outputs: transaction.outputs }
    throw new IdentityError(
      'BAD_SOURCE',
      `the provenance of ${name} leaves ${outpoint.txid} out: resolve it again`,
    )
  })
}

const bundles = new WeakMap<Uint8Array, Bundle>()

/** Reads a provenance, once for the same bytes. @throws ProofError; TypeError */
function bundleIn(provenance: Uint8Array): Bundle {
  requireBytes(provenance, 'provenance')
  const bundle = bundles.get(provenance) ?? readOutpointBeef(provenance, {}).bundle
  bundles.set(provenance, bundle)
  return bundle
}

export function bindingOf({ lockingScript, bindingInputs }: NameOutput): IdentityBinding {
  return verifyBinding({ lockingScript, spent: bindingInputs })
}
