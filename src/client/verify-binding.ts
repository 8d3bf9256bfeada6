import { KeyDeriver, PublicKey, Signature } from '@bsv/sdk'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import {
  BINDING_PROTOCOLS,
  type BindingLayout,
  type BindingProfile,
  type BindingProtocol,
  bindingKeyId,
  isCanonical,
  readBinding,
  type UnverifiedBinding,
} from '../../backend/src/protocol/identity-binding.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'

export type BindingFault =
  /** The key that it asserts is no point of the curve. */
  | 'BAD_KEY'
  /** The key of the lock is not derived from the asserted key: somebody else can spend the name. */
  | 'OTHER_KEY'
  /** The holder of the asserted key has not signed the fields. */
  | 'BAD_SIGNATURE'
  /** The holder of the asserted key has signed the same bytes, but divided into other fields: somebody else has changed it. */
  | 'NOT_CANONICAL'

/** What a name resolves to. There is no fallback: a name that is not bound resolves to no key (BRC-174 section 3). */
export type IdentityBinding =
  | {
      state: 'bound'
      /** The compressed public key, in hex. */
      identityKey: string
      /** The claims of the key's holder about itself, signed and otherwise unverified. */
      profile: BindingProfile
      layout: BindingLayout
      protocol: BindingProtocol
      /** The BRC-43 key ID of the lock. */
      keyId: string
      /** The key that can spend the name, in hex. */
      lockingKey: string
    }
  /** Validly held, and bound to no key. */
  | { state: 'unbound' }
  /** The lock has the form of a binding, but is invalid. */
  | { state: 'invalid'; fault: BindingFault }

/**
 * Verifies the identity binding of a name's output (BRC-174 section 4, steps 5 to 8), locally: the lock's key must be derived
 * from the asserted key, and must have signed the fields.
 *
 * @param check.lockingScript The complete script.
 * @param check.spent The outpoints that the key ID may name; at most four are tried, two derivations each. In BRC-174 it is the
 * previous output of the name; deployed verifiers take the first input of the transaction.
 */
export function verifyBinding(check: {
  lockingScript: Uint8Array
  spent: readonly Outpoint[]
}): IdentityBinding {
  const binding = readBinding(check.lockingScript)
  if (binding === undefined) return { state: 'unbound' }
  const { identityKey, profile, layout, lockingKey } = binding
  const asserted = pointOf(identityKey)
  if (asserted === undefined) return { state: 'invalid', fault: 'BAD_KEY' }
  const anyone = new KeyDeriver('anyone')
  const outpoints = new Map(check.spent.slice(0, MAX_SPENT).map((each) => [formatOutpoint(each), each]))
  for (const keyId of [...outpoints.values()].map(bindingKeyId)) {
    for (const protocol of BINDING_PROTOCOLS) {
      const key = anyone.derivePublicKey([0, protocol], keyId, asserted)
      if (key.toString() !== lockingKey) continue
      const signed = signedFields(binding, key)
      if (signed === undefined) return { state: 'invalid', fault: 'BAD_SIGNATURE' }
      if (!isCanonical(binding, signed)) return { state: 'invalid', fault: 'NOT_CANONICAL' }
      return { state: 'bound', identityKey, profile, layout, protocol, keyId, lockingKey }
    }
  }
  return { state: 'invalid', fault: 'OTHER_KEY' }
}

const MAX_SPENT = 4

function pointOf(key: string): PublicKey | undefined {
  try {
    const point = PublicKey.fromString(key)
    // The SDK reduces a coordinate beyond the field, so a key would have two forms.
    return point.toString() === key ? point : undefined
  } catch {
    // No point has this coordinate.
    return undefined
  }
}

/**
 * The fields as the signature covers them, one after another; undefined if it does not. An empty field is signed as nothing or,
 * because the SDK's `PushDrop.decode` reads it that way, as a zero byte.
 */
function signedFields({ fields, signature }: UnverifiedBinding, key: PublicKey): Uint8Array[] | undefined {
  const parsed = signatureOf(signature)
  if (parsed === undefined) return undefined
  if (key.verify(Array.from(joinBytes(fields)), parsed)) return fields
  if (fields.every(({ length }) => length > 0)) return undefined
  const zeros = fields.map((field) => (field.length === 0 ? Uint8Array.of(0) : field))
  return key.verify(Array.from(joinBytes(zeros)), parsed) ? zeros : undefined
}

function signatureOf(der: Uint8Array): Signature | undefined {
  try {
    return Signature.fromDER(Array.from(der))
  } catch {
    // Not DER.
    return undefined
  }
}
