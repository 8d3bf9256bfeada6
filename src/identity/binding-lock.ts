import { PushDrop, Utils } from '@bsv/sdk'
import {
  type BindingLayout,
  type BindingProfile,
  type BindingProtocol,
  bindingFields,
  bindingKeyId,
  hasUnknownFields,
  isUnambiguous,
  readBinding,
  type UnverifiedBinding,
} from '../../backend/src/protocol/identity-binding.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { WalletInterface } from '../../backend/src/protocol/sdk-types.js'
import { type IdentityBinding, verifyBinding } from '../client/verify-binding.js'
import { MiningError } from '../mining/mining-error.js'
import { bindingOf, IdentityError, type NameCoin, type NameOutput } from './name-coin.js'

/** Who signs a binding with its identity key: a wallet (BRC-100), or the SDK's `ProtoWallet` with a key. */
export type BindingSigner = Pick<WalletInterface, 'getPublicKey' | 'createSignature'>

export interface BindingTerms {
  /**
   * By default, the layout of the replaced binding, otherwise `key-value`, which deployed wallets read. BRC-174 has `positional`.
   */
  layout?: BindingLayout
  /** By default, the protocol of the replaced binding, otherwise the usual one of the layout. */
  protocol?: BindingProtocol
  /**
   * Attributes to change; undefined removes one. Others stay, unless the name gets another identity key: they describe the
   * earlier holder.
   */
  profile?: { [Key in keyof BindingProfile]: BindingProfile[Key] | undefined }
}

const PROTOCOLS: Record<BindingLayout, BindingProtocol> = { positional: 'p 1sat', 'key-value': 'onesat' }

/**
 * The lock that binds a name to the identity key of the signer. It counts only in the transaction that spends the current output
 * of the name, so whoever gets the name makes it for the holder. Unknown fields stay where they are (BRC-174 section 3.2).
 *
 * @throws IdentityError `UNKNOWN_FIELDS`, `BAD_PROFILE`; MiningError `BAD_WALLET` if the signature is invalid.
 */
export async function bindingLock(
  options: { coin: NameOutput; signer: BindingSigner } & BindingTerms,
): Promise<Uint8Array> {
  const { coin, signer } = options
  const { publicKey } = await signer.getPublicKey({ identityKey: true })
  const held = bindingOf(coin)
  // Nobody has signed the fields of an invalid binding, least of all its identity key.
  const existing = held.state === 'bound' ? readBinding(coin.lockingScript) : undefined
  const { layout = existing?.layout ?? 'key-value' } = options
  const replaces = keptBinding(existing, layout)
  const profile = { ...(existing?.identityKey === publicKey && existing.profile), ...options.profile }
  if (options.profile !== undefined || existing?.layout !== layout) requirePlace(profile, layout)
  const fields = fieldsOf({ layout, identityKey: publicKey, profile, replaces })
  const protocol = options.protocol ?? keptProtocol(held, layout) ?? PROTOCOLS[layout]
  const keyId = bindingKeyId(coin.outpoint)
  // The SDK and the deployed verifiers read OP_0 as a zero byte, so a zero byte is signed.
  const pushed = fields.map((field) => (field.length === 0 ? [0] : Array.from(field)))
  const lock = await new PushDrop(signer as WalletInterface).lock(
    pushed,
    [0, protocol],
    keyId,
    'anyone',
    true,
  )
  const script = Uint8Array.from(lock.toUint8Array())
  const made = bindingIn({ coin, lock: script })
  if (made.state === 'bound' && made.identityKey === publicKey) return script
  throw new MiningError('BAD_WALLET', 'the wallet did not sign the identity binding with its identity key')
}

/** @throws IdentityError `UNKNOWN_FIELDS`. */
function keptBinding(
  existing: UnverifiedBinding | undefined,
  layout: BindingLayout,
): UnverifiedBinding | undefined {
  if (existing === undefined || existing.layout === layout) return existing
  if (!hasUnknownFields(existing)) return undefined
  throw new IdentityError(
    'UNKNOWN_FIELDS',
    `the binding has fields that the layout ${layout} has no place for: keep the layout ${existing.layout}, or unbind the name first`,
  )
}

function keptProtocol(binding: IdentityBinding, layout: BindingLayout): BindingProtocol | undefined {
  return binding.state === 'bound' && binding.layout === layout ? binding.protocol : undefined
}

function fieldsOf(content: {
  layout: BindingLayout
  identityKey: string
  profile: NonNullable<BindingTerms['profile']>
  replaces: UnverifiedBinding | undefined
}): Uint8Array[] {
  const { layout, profile, replaces } = content
  const { domain, name, avatar } = profile
  return bindingFields({
    layout,
    identityKey: Uint8Array.from(Utils.toArray(content.identityKey, 'hex')),
    profile: {
      ...(domain !== undefined && { domain }),
      ...(name !== undefined && { name }),
      ...(avatar !== undefined && { avatar }),
    },
    ...(replaces && { replaces }),
  })
}

/** @throws IdentityError `BAD_PROFILE`. */
function requirePlace(
  { domain, name, avatar }: NonNullable<BindingTerms['profile']>,
  layout: BindingLayout,
): void {
  if (layout === 'positional' && domain !== undefined)
    throw new IdentityError('BAD_PROFILE', 'the layout positional has no place for a domain: use key-value')
  if (layout === 'positional' && !isUnambiguous({ ...(name && { name }), ...(avatar && { avatar }) }))
    throw new IdentityError(
      'BAD_PROFILE',
      'the layout positional has no place for control characters, or for an avatar beyond output 65,535: use key-value',
    )
  if (layout === 'key-value' && domain === undefined && (name ?? avatar) !== undefined)
    throw new IdentityError(
      'BAD_PROFILE',
      'deployed wallets refuse a binding whose profile has no domain: add one, or use the layout positional',
    )
}

/** The identity binding of a name that moves from its current output into a lock. */
export function bindingIn({
  coin,
  lock,
}: {
  coin: Pick<NameOutput, 'outpoint'>
  lock: Uint8Array
}): IdentityBinding {
  return verifyBinding({ lockingScript: lock, spent: [coin.outpoint] })
}

/**
 * Checks a lock that somebody else offers for a name.
 *
 * @throws IdentityError `BAD_LOCK`.
 */
export function requireBindingLock(offered: { coin: NameCoin; lock: Uint8Array }): void {
  const { coin } = offered
  if (bindingIn(offered).state === 'bound') return
  throw new IdentityError(
    'BAD_LOCK',
    `the lock does not bind ${coin.name} at ${formatOutpoint(coin.outpoint)}: it may have been made before the name moved`,
  )
}
