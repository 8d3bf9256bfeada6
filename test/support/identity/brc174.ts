import { createECDH, createHmac, createPublicKey, verify } from 'node:crypto'
import { decode } from '@ipld/dag-cbor'

// The identity binding of BRC-174 once more, written from its text and from those of BRC-42, 43 and 48, to compare with: with
// `node:crypto`, addition on the curve, and a library for DAG-CBOR; nothing of ours, and nothing of the SDK's.

const P = 2n ** 256n - 2n ** 32n - 977n

type Point = { x: bigint; y: bigint } | undefined

const mod = (value: bigint): bigint => ((value % P) + P) % P

function power(base: bigint, exponent: bigint): bigint {
  let [result, square] = [1n, mod(base)]
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}

const inverse = (value: bigint): bigint => power(value, P - 2n)

function add(one: Point, other: Point): Point {
  if (one === undefined) return other
  if (other === undefined) return one
  if (one.x === other.x && mod(one.y + other.y) === 0n) return undefined
  const slope =
    one.x === other.x
      ? mod(3n * one.x * one.x * inverse(2n * one.y))
      : mod((other.y - one.y) * inverse(other.x - one.x))
  const x = mod(slope * slope - one.x - other.x)
  return { x, y: mod(slope * (one.x - x) - one.y) }
}

/** The generator so many times: a public key. */
function times(scalar: Buffer): Point {
  const ecdh = createECDH('secp256k1')
  ecdh.setPrivateKey(scalar)
  return pointOf(ecdh.getPublicKey(null, 'compressed'))
}

function pointOf(key: Buffer): Point {
  const x = BigInt(`0x${key.subarray(1).toString('hex')}`)
  if (x >= P) return undefined
  const square = mod(x * x * x + 7n)
  const root = power(square, (P + 1n) / 4n)
  if (mod(root * root) !== square) return undefined
  return { x, y: (root & 1n) === BigInt((key[0] ?? 0) & 1) ? root : P - root }
}

const hex32 = (value: bigint): string => value.toString(16).padStart(64, '0')
const compressed = (point: NonNullable<Point>): string => (point.y & 1n ? '03' : '02') + hex32(point.x)

/** BRC-42 for the counterparty `anyone`, whose private key is 1: the shared secret is the other's public key. */
function derived(identity: Buffer, invoice: string): NonNullable<Point> | undefined {
  const secret = createHmac('sha256', identity).update(invoice).digest()
  return add(pointOf(identity), times(secret))
}

function isSignedBy(key: NonNullable<Point>, data: Buffer, signature: Buffer): boolean {
  const [x, y] = [key.x, key.y].map((each) => Buffer.from(hex32(each), 'hex').toString('base64url'))
  const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'secp256k1', x, y }, format: 'jwk' })
  return verify('sha256', data, publicKey, signature)
}

type Token = number | Buffer

/** Opcodes as numbers and pushes as bytes, up to a top-level OP_RETURN; undefined for a push that breaks off. */
function tokens(script: Buffer): Token[] | undefined {
  const found: Token[] = []
  let depth = 0
  for (let at = 0; at < script.length; ) {
    const op = script.readUInt8(at++)
    if (op === 0x6a && depth === 0) return [...found, op]
    if (op === 0x63) depth++
    if (op === 0x68) depth--
    let length = op
    if (op >= 0x4c && op <= 0x4e) {
      const bytes = 2 ** (op - 0x4c)
      if (at + bytes > script.length) return undefined
      length = script.readUIntLE(at, bytes)
      at += bytes
    }
    if (op > 0x4e)
      found.push(op === 0x4f ? Buffer.of(0x81) : op >= 0x51 && op <= 0x60 ? Buffer.of(op - 0x50) : op)
    else if (at + length > script.length) return undefined
    else {
      found.push(script.subarray(at, at + length))
      at += length
    }
  }
  return found
}

/** The lock at the start of a script, in either order of its parts, if nothing behind it can run. */
function lockOf(script: Buffer): { key: Buffer; fields: Buffer[] } | undefined {
  const all = tokens(script)
  if (all === undefined) return undefined
  const text = all.map((token) => (typeof token === 'number' ? `o${token} ` : 'p ')).join('')
  const form =
    /^(?:p o172 ((?:p )+)((?:o109 |o117 )+)|((?:p )+)((?:o109 |o117 )+)p o172 )(?:p o99 (?:p )+o104 )*(?:o106 )?$/
  const match = form.exec(text)
  if (match === null) return undefined
  const count = (match[1] ?? match[3] ?? '').length / 2
  const drops = match[2] ?? match[4] ?? ''
  const dropped = (drops.match(/o109/g)?.length ?? 0) * 2 + (drops.match(/o117/g)?.length ?? 0)
  const start = match[1] === undefined ? 0 : 2
  const fields = all.slice(start, start + count) as Buffer[]
  const key = all[start === 2 ? 0 : count + drops.length / 5]
  const envelopes = all.slice(start === 2 ? 2 + count : count + 2)
  const opensWithFalse = envelopes.every(
    (token, at) => envelopes[at + 1] !== 0x63 || (token as Buffer).length === 0,
  )
  if (dropped !== count || !opensWithFalse || !Buffer.isBuffer(key) || key.length !== 33 || count > 256)
    return undefined
  return { key, fields }
}

const isKey = (field: Buffer | undefined): field is Buffer =>
  field?.length === 33 && (field[0] === 2 || field[0] === 3)

const textOf = (bytes: Uint8Array | undefined): string | undefined => {
  if (bytes === undefined || bytes.length === 0 || (bytes.length === 1 && bytes[0] === 0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const outpointOf = (bytes: unknown) =>
  bytes instanceof Uint8Array && bytes.length === 36
    ? {
        txid: Buffer.from(bytes.subarray(0, 32)).reverse().toString('hex'),
        vout: Buffer.from(bytes.subarray(32)).readUInt32LE(),
      }
    : undefined

const withoutUndefined = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

function read(fields: Buffer[]): { layout: string; identity: Buffer; profile: object } | undefined {
  const [first, name, avatar] = fields
  if (isKey(first))
    return {
      layout: 'positional',
      identity: first,
      profile: withoutUndefined({ name: textOf(name), avatar: outpointOf(avatar) }),
    }
  const valuesOf = (key: string) =>
    fields.filter((_, at) => at % 2 === 1 && fields[at - 1]?.toString('latin1') === key)
  const [identities, profiles] = [valuesOf('identity'), valuesOf('profile')]
  const [identity] = identities
  if (fields.length % 2 === 1 || identities.length !== 1 || !isKey(identity)) return undefined
  const [encoded] = profiles
  let profile: object = {}
  try {
    const said = profiles.length === 1 && encoded ? decode<Record<string, unknown>>(encoded) : {}
    const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
    if (!Array.isArray(said))
      profile = withoutUndefined({
        domain: text(said.domain),
        name: text(said.name) ?? text(said.displayName),
        avatar: outpointOf(said.avatar),
      })
  } catch {
    // A profile that cannot be read is absent.
  }
  return { layout: 'key-value', identity, profile }
}

/** Whether some bytes are one DAG-CBOR map. */
const isMap = (bytes: Buffer): boolean => {
  try {
    const value = decode(bytes)
    return (
      typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
    )
  } catch {
    return false
  }
}

/** Whether the signed bytes say no more, cut in another way: a signature covers no lengths. */
function isCutAsSigned(fields: Buffer[], { layout, profile }: { layout: string; profile: object }): boolean {
  const bytes = Buffer.concat(fields)
  if (layout === 'key-value') {
    const starts = fields.map((_, at) => Buffer.concat(fields.slice(0, at)).length)
    for (let at = bytes.indexOf('profile'); at !== -1; at = bytes.indexOf('profile', at + 1))
      for (let end = at + 8; end <= bytes.length; end++) {
        if (!isMap(bytes.subarray(at + 7, end))) continue
        return starts.some((start, each) => {
          const [key, value] = fields.slice(each, each + 2)
          return each % 2 === 0 && start === at && key?.length === 7 && value?.length === end - at - 7
        })
      }
    return true
  }
  const rest = bytes.subarray(33)
  const nameIn = (slot: Buffer): object | undefined => {
    if (slot.length === 0 || slot.equals(Buffer.of(0))) return {}
    const name = textOf(slot)
    return name === undefined ||
      Array.from(name).some((each) => each < ' ' || (each >= '\x7f' && each <= '\x9f'))
      ? undefined
      : { name }
  }
  const avatar = outpointOf(rest.subarray(-36))
  const before = avatar && avatar.vout < 65_536 ? nameIn(rest.subarray(0, -36)) : undefined
  const whole =
    (before && { ...before, avatar }) ??
    nameIn(rest) ??
    (rest.at(-1) === 0 ? nameIn(rest.subarray(0, -1)) : undefined)
  return whole === undefined || JSON.stringify(whole) === JSON.stringify(profile)
}

/** What a script binds a name to, in the form of the vectors. */
export function bindingByText(script: Buffer, spent: string[]): object {
  const lock = lockOf(script)
  const signature = lock?.fields.pop()
  const found = lock && read(lock.fields)
  if (lock === undefined || signature === undefined || found === undefined) return { state: 'unbound' }
  const { layout, identity, profile } = found
  if (pointOf(identity) === undefined) return { state: 'invalid', fault: 'BAD_KEY' }
  for (const outpoint of spent) {
    for (const protocol of ['p 1sat', 'onesat']) {
      const key = derived(identity, `0-${protocol}-opns:${outpoint}`)
      if (key === undefined || compressed(key) !== lock.key.toString('hex')) continue
      const asZeros = lock.fields.map((field) => (field.length === 0 ? Buffer.of(0) : field))
      const signed = [lock.fields, asZeros].find((fields) =>
        isSignedBy(key, Buffer.concat(fields), signature),
      )
      if (signed === undefined) return { state: 'invalid', fault: 'BAD_SIGNATURE' }
      if (!isCutAsSigned(signed, found)) return { state: 'invalid', fault: 'NOT_CANONICAL' }
      return { state: 'bound', identityKey: identity.toString('hex'), layout, protocol, profile }
    }
  }
  return { state: 'invalid', fault: 'OTHER_KEY' }
}
