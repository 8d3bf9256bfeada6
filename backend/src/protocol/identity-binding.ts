import { readStrictUtf8, toHex, utf8 } from './bytes.js'
import { type DagCborMember, encodeDagCbor, encodeDagCborMap, readDagCborMap } from './dag-cbor.js'
import { decodeOutpoint, encodeOutpoint, formatOutpoint, type Outpoint } from './outpoint.js'
import { type PushDropLock, readPushDrop } from './push-drop.js'

/**
 * How the fields of an identity binding are laid out: by position, as BRC-174 section 3 has it, or as pairs of a key and a
 * value, as the deployed wallets have it. See docs/identity.md.
 */
export const BINDING_LAYOUTS = ['positional', 'key-value'] as const
export type BindingLayout = (typeof BINDING_LAYOUTS)[number]

/** The names of the BRC-43 protocols, of level 0, that keys of identity bindings are derived by: that of BRC-174, then the later one. */
export const BINDING_PROTOCOLS = ['p 1sat', 'onesat'] as const
export type BindingProtocol = (typeof BINDING_PROTOCOLS)[number]

/** What the holder of a name says about itself. Nobody has verified it: BRC-174 section 3.1. */
export interface BindingProfile {
  /** A domain that resolves handles (BRC-169), as it was entered. */
  domain?: string
  /** The name to display. */
  name?: string
  /** The origin of the image. */
  avatar?: Outpoint
}

/** An identity binding as it was read: neither its key nor its signature is checked. */
export interface UnverifiedBinding {
  layout: BindingLayout
  /** The compressed public key that the name resolves to, in hex. */
  identityKey: string
  /** Attributes that cannot be read are absent. */
  profile: BindingProfile
  /** All fields before the signature, those that are not known included. */
  fields: Uint8Array[]
  /** In DER. */
  signature: Uint8Array
  /** The key that can spend the output, in hex. */
  lockingKey: string
  position: PushDropLock['position']
}

const IDENTITY = 'identity'
const PROFILE = 'profile'
/** Members of a profile. An earlier release of the deployed wallets called the name `displayName`. */
const DOMAIN = 'domain'
const NAME = 'name'
const EARLIER_NAME = 'displayName'
const AVATAR = 'avatar'
const KEY_LENGTH = 33
const OUTPOINT_LENGTH = 36
/** The slots of the layout `positional` that are known: key, name, avatar. */
const POSITIONAL_SLOTS = 3

/** The BRC-43 key ID of a binding: it names the outpoint that the transaction of the binding spends. */
export function bindingKeyId(spent: Outpoint): string {
  return `opns:${formatOutpoint(spent)}`
}

/**
 * Reads the identity binding in the lock of a name: BRC-174 section 3. Fields that are not known are ignored.
 *
 * @param script The complete script of the output.
 * @returns Undefined if it has none. Never throws; takes linear time.
 */
export function readBinding(script: Uint8Array): UnverifiedBinding | undefined {
  const lock = readPushDrop(script)
  const signature = lock?.fields.pop()
  if (lock === undefined || signature === undefined) return undefined
  const { fields, key, position } = lock
  const read = readPositional(fields) ?? readPairs(fields)
  return read && { ...read, fields, signature, lockingKey: toHex(key), position }
}

type ReadFields = Pick<UnverifiedBinding, 'layout' | 'identityKey' | 'profile'>

function readPositional([key, name, avatar]: Uint8Array[]): ReadFields | undefined {
  if (!isKey(key)) return undefined
  const profile = profileOf({ name: textOf(name), avatar: outpointOf(avatar) })
  return { layout: 'positional', identityKey: toHex(key), profile }
}

/** Exactly one `identity` is required. A profile that occurs twice is no profile. */
function readPairs(fields: Uint8Array[]): ReadFields | undefined {
  const found: Record<string, Uint8Array[]> = { [IDENTITY]: [], [PROFILE]: [] }
  if (fields.length % 2 !== 0) return undefined
  for (let at = 0; at < fields.length; at += 2) {
    const [key, value] = fields.slice(at, at + 2)
    // Other keys need not be text.
    const known = key && key.length <= IDENTITY.length ? found[readStrictUtf8(key) ?? ''] : undefined
    if (value !== undefined) known?.push(value)
  }
  const [[key, ...otherKeys], [profile, ...otherProfiles]] = [found[IDENTITY] ?? [], found[PROFILE] ?? []]
  if (!isKey(key) || otherKeys.length > 0) return undefined
  const isOne = profile !== undefined && otherProfiles.length === 0
  return { layout: 'key-value', identityKey: toHex(key), profile: isOne ? readProfile(profile) : {} }
}

function readProfile(bytes: Uint8Array): BindingProfile {
  const members = new Map(readDagCborMap(bytes)?.map(({ key, value }) => [key, value]))
  const textIn = (key: string): string | undefined => {
    const value = members.get(key)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const avatar = members.get(AVATAR)
  return profileOf({
    domain: textIn(DOMAIN),
    name: textIn(NAME) ?? textIn(EARLIER_NAME),
    avatar: avatar instanceof Uint8Array ? outpointOf(avatar) : undefined,
  })
}

function profileOf(
  found: { [Key in keyof BindingProfile]: BindingProfile[Key] | undefined },
): BindingProfile {
  const { domain, name, avatar } = found
  return {
    ...(domain !== undefined && { domain }),
    ...(name !== undefined && { name }),
    ...(avatar !== undefined && { avatar }),
  }
}

function isKey(field: Uint8Array | undefined): field is Uint8Array {
  return field?.length === KEY_LENGTH && (field[0] === 2 || field[0] === 3)
}

/** An empty slot is unset. The SDK reads one as a zero byte, and OP_0 pushes either. */
function textOf(slot: Uint8Array | undefined): string | undefined {
  return isUnset(slot) ? undefined : readStrictUtf8(slot)
}

function isUnset(slot: Uint8Array | undefined): slot is undefined {
  return slot === undefined || slot.length === 0 || (slot.length === 1 && slot[0] === 0)
}

function outpointOf(slot: Uint8Array | undefined): Outpoint | undefined {
  return slot?.length === OUTPOINT_LENGTH ? decodeOutpoint(slot) : undefined
}

/** What to write into the fields of a binding. */
export interface BindingContent {
  layout: BindingLayout
  /** 33 bytes. */
  identityKey: Uint8Array
  profile: BindingProfile
  /** The binding that it replaces, whose unknown fields it keeps. It must have the same layout. */
  replaces?: UnverifiedBinding
}

/**
 * The fields of a binding, without the signature. Those of the binding that it replaces stay where they are, except those that are
 * known here; so do unknown members of its profile (BRC-174 section 3.2). What a profile that cannot be read says stays only if
 * its holder does.
 *
 * @throws RangeError if the one that it replaces has the other layout, or a profile by position has a domain.
 */
export function bindingFields({ layout, identityKey, profile, replaces }: BindingContent): Uint8Array[] {
  if (replaces !== undefined && replaces.layout !== layout)
    throw new RangeError(`a binding in the layout ${replaces.layout} cannot be kept in the layout ${layout}`)
  const before = replaces?.fields ?? []
  const isSameHolder = replaces?.identityKey === toHex(identityKey)
  return layout === 'positional'
    ? positionalFields({ identityKey, profile, before })
    : pairFields({ identityKey, profile, before, isSameHolder })
}

type FieldParts = Pick<BindingContent, 'identityKey' | 'profile'> & { before: readonly Uint8Array[] }

function positionalFields({ identityKey, profile, before }: FieldParts): Uint8Array[] {
  const { domain, name, avatar } = profile
  if (domain !== undefined)
    throw new RangeError('a profile in the layout positional has no place for a domain')
  const unset = new Uint8Array()
  const slots = [
    identityKey,
    name === undefined ? unset : utf8(name),
    avatar ? encodeOutpoint(avatar) : unset,
  ]
  const fields = [...slots, ...before.slice(POSITIONAL_SLOTS)]
  // BRC-174 section 3.1: unset slots at the end are omitted.
  while (isUnset(fields.at(-1))) fields.pop()
  return fields
}

function pairFields({
  identityKey,
  profile,
  before,
  isSameHolder,
}: FieldParts & { isSameHolder: boolean }): Uint8Array[] {
  const fields = [...before]
  const put = (key: string, value: (old: Uint8Array | undefined) => Uint8Array | undefined): void => {
    const found = [...fields.keys()].filter(
      (at) => at % 2 === 0 && readStrictUtf8(fields[at] as Uint8Array) === key,
    )
    const [at = -1, ...others] = found
    // Of several profiles none is one. With one less, another would be.
    const written = value(others.length > 0 || at === -1 ? undefined : fields[at + 1])
    for (const other of others.reverse()) fields.splice(other, 2)
    if (at !== -1 && written !== undefined) fields[at + 1] = written
    else if (at !== -1) fields.splice(at, 2)
    else if (written !== undefined) fields.push(utf8(key), written)
  }
  put(IDENTITY, () => identityKey)
  put(PROFILE, (old) => encodeProfile(profile, { old, isSameHolder }))
  return fields
}

/**
 * @param replaced.old The profile that it replaces, whose unknown members it keeps; all of it, if it cannot be read, nothing is
 * new, and it is of the same holder: others may be able to read it.
 */
function encodeProfile(
  profile: BindingProfile,
  { old, isSameHolder }: { old: Uint8Array | undefined; isSameHolder: boolean },
): Uint8Array | undefined {
  const { domain, name, avatar } = profile
  const kept = old && readDagCborMap(old)
  if (kept === undefined && Object.keys(profile).length === 0) return isSameHolder ? old : undefined
  const members = [
    ...(kept ?? []).filter(isUnknownMember),
    ...(domain === undefined ? [] : [{ key: DOMAIN, encoded: encodeDagCbor(domain) }]),
    ...(name === undefined ? [] : [{ key: NAME, encoded: encodeDagCbor(name) }]),
    ...(avatar === undefined ? [] : [{ key: AVATAR, encoded: encodeDagCbor(encodeOutpoint(avatar)) }]),
  ]
  return members.length === 0 ? undefined : encodeDagCborMap(members)
}

function isUnknownMember({ key }: Pick<DagCborMember, 'key'>): boolean {
  return ![DOMAIN, NAME, EARLIER_NAME, AVATAR].includes(key)
}

/** Whether a binding says anything that is not known here, and so has no place in the other layout. */
export function hasUnknownFields({ layout, fields }: UnverifiedBinding): boolean {
  if (layout === 'positional') return fields.length > POSITIONAL_SLOTS
  return fields.some((field, at) => {
    if (at % 2 !== 0) return false
    const key = readStrictUtf8(field)
    if (key !== PROFILE) return key !== IDENTITY
    return readDagCborMap(fields[at + 1] ?? field)?.some(isUnknownMember) ?? true
  })
}
