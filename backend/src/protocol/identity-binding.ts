import { joinBytes, readStrictUtf8, toHex, utf8 } from './bytes.js'
import {
  type DagCborMember,
  dagCborMapLength,
  encodeDagCbor,
  encodeDagCborMap,
  readDagCborMap,
} from './dag-cbor.js'
import { decodeOutpoint, encodeOutpoint, formatOutpoint, isSameOutpoint, type Outpoint } from './outpoint.js'
import { type PushDropLock, readPushDrop } from './push-drop.js'

/**
 * How the fields of an identity binding are laid out: by position, as BRC-174 section 3 has it, or as pairs of a key and a
 * value, as the deployed wallets have it. See docs/spec/protocol.md.
 */
export const BINDING_LAYOUTS = ['positional', 'key-value'] as const
export type BindingLayout = (typeof BINDING_LAYOUTS)[number]

/** The BRC-43 protocols, of level 0, by which keys of identity bindings are derived: that of BRC-174, then the later one. */
export const BINDING_PROTOCOLS = ['p 1sat', 'onesat'] as const
export type BindingProtocol = (typeof BINDING_PROTOCOLS)[number]

/** What the holder of a name claims about itself, unverified (BRC-174 section 3.1). */
export interface BindingProfile {
  /** A domain that resolves handles (BRC-169), as it was entered. */
  domain?: string
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
  /** All fields before the signature, including unknown ones. */
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
/** The known slots of the layout `positional`: key, name, avatar. */
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

// A binding is signed over its fields one after another, without their lengths (BRC-174 3 over BRC-48). So somebody else who puts
// a lock into a transaction, as the sender of a name does, can cut the same signed bytes elsewhere: a name loses its end, or a
// profile its key. Only one cut counts: the one in which the bytes say the most.

/** The highest output index of an avatar by position: with larger ones, any text of 36 bytes would be an avatar. */
const MAX_AVATAR_VOUT = 0xffff
/** How many possible starts of a profile are tried. No wallet writes more than one. */
const MAX_PROFILES = 16

/**
 * Whether the fields of a binding are cut where the holder of the key cut them, as far as their bytes show.
 *
 * @param fields As they were signed: an empty one as nothing, or as a zero byte.
 */
export function isCanonical({ layout, profile }: UnverifiedBinding, fields: readonly Uint8Array[]): boolean {
  if (layout === 'key-value') return isProfileWhole(fields)
  const whole = readWhole(joinBytes(fields.slice(1)))
  if (whole === undefined) return true
  const isSameAvatar =
    whole.avatar === undefined || profile.avatar === undefined
      ? whole.avatar === profile.avatar
      : isSameOutpoint(whole.avatar, profile.avatar)
  return isSameAvatar && whole.name === profile.name
}

/** The bytes after the key, read by position as a name, an avatar, or both; undefined if they are neither. */
function readWhole(bytes: Uint8Array): BindingProfile | undefined {
  const start = bytes.length - OUTPOINT_LENGTH
  const avatar = start < 0 ? undefined : decodeOutpoint(bytes.subarray(start))
  const head = avatar === undefined ? undefined : readName(bytes.subarray(0, start))
  if (avatar !== undefined && head !== undefined && avatar.vout <= MAX_AVATAR_VOUT) return { ...head, avatar }
  // A slot at the end may be unset.
  return readName(bytes) ?? readName(bytes.subarray(0, -1), bytes.at(-1) === 0)
}

/** A name, or an unset slot; undefined for anything else. */
function readName(slot: Uint8Array, isSlot = true): BindingProfile | undefined {
  if (!isSlot) return undefined
  if (isUnset(slot)) return {}
  const name = readStrictUtf8(slot)
  return name === undefined || hasControls(name) ? undefined : { name }
}

function hasControls(text: string): boolean {
  return /\p{Cc}/u.test(text)
}

/** Whether the first profile in the bytes, wherever they are cut, is one field after its key; true if there is no profile. */
function isProfileWhole(fields: readonly Uint8Array[]): boolean {
  const bytes = joinBytes(fields)
  const key = utf8(PROFILE)
  let tried = 0
  for (let at = indexOfBytes(bytes, key, 0); at !== -1; at = indexOfBytes(bytes, key, at + 1)) {
    const length = dagCborMapLength(bytes.subarray(at + key.length))
    if (length !== undefined) return hasPairAt(fields, at, length)
    tried++
    if (tried === MAX_PROFILES) return false
  }
  return true
}

/** Whether a pair starts at an offset, with the key of a profile and a value of this length. */
function hasPairAt(fields: readonly Uint8Array[], offset: number, length: number): boolean {
  let at = 0
  for (const [index, field] of fields.entries()) {
    const isKeyOf = at === offset && index % 2 === 0 && field.length === PROFILE.length
    if (isKeyOf && fields[index + 1]?.length === length) return true
    at += field.length
  }
  return false
}

function indexOfBytes(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  const [first = 0] = wanted
  for (let at = bytes.indexOf(first, from); at !== -1; at = bytes.indexOf(first, at + 1))
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at
  return -1
}

/** Whether a profile by position can be read in one way only. */
export function isUnambiguous({ name, avatar }: Pick<BindingProfile, 'name' | 'avatar'>): boolean {
  return !hasControls(name ?? '') && (avatar?.vout ?? 0) <= MAX_AVATAR_VOUT
}

export interface BindingContent {
  layout: BindingLayout
  /** 33 bytes. */
  identityKey: Uint8Array
  profile: BindingProfile
  /** The binding that it replaces, whose unknown fields it keeps. It must have the same layout. */
  replaces?: UnverifiedBinding
}

/**
 * The fields of a binding, without the signature. Unknown fields of the binding that it replaces stay where they are, and so do
 * unknown members of its profile (BRC-174 section 3.2). A profile that cannot be read stays only if its holder does.
 *
 * @throws RangeError if the replaced binding has the other layout, or a profile by position has a domain.
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
    // With several profiles, none counts. Removing one must not make another count.
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
 * @param replaced.old The profile that is replaced, whose unknown members are kept. If it cannot be read, it is kept as a whole
 * if nothing is new and the holder is the same: others may be able to read it.
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

/** Whether a binding has unknown fields, or unknown members of its profile, which have no place in the other layout. */
export function hasUnknownFields({ layout, fields }: UnverifiedBinding): boolean {
  if (layout === 'positional') return fields.length > POSITIONAL_SLOTS
  return fields.some((field, at) => {
    if (at % 2 !== 0) return false
    const key = readStrictUtf8(field)
    if (key !== PROFILE) return key !== IDENTITY
    return readDagCborMap(fields[at + 1] ?? field)?.some(isUnknownMember) ?? true
  })
}
