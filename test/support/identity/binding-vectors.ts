import { LockingScript, PrivateKey, ProtoWallet, PushDrop, Utils, type WalletInterface } from '@bsv/sdk'
import { encode } from '@ipld/dag-cbor'
import { concatBytes, fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { bindingKeyId } from '../../../backend/src/protocol/identity-binding.js'
import { encodeEnvelope } from '../../../backend/src/protocol/inscription.js'
import { encodeOutpoint, formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { IdentityBinding } from '../../../src/client/verify-binding.js'
import { type BindingTerms, bindingLock } from '../../../src/identity/index.js'
import { p2pkh } from '../protocol/fake-chain.js'

/** A script of a name's output, and what it binds the name to. */
export interface BindingVector {
  /** What is special about it. */
  title: string
  /** The locking script, in hex. */
  script: string
  /** What its key ID may name, as `<txid>_<vout>`: the output that the name was in before, then the first input. */
  spent: string[]
  expected: { state: 'unbound' } | { state: 'invalid'; fault: string } | Bound
}
type Bound = Pick<
  Extract<IdentityBinding, { state: 'bound' }>,
  'state' | 'identityKey' | 'layout' | 'protocol' | 'profile'
>

const key = new PrivateKey(4242)
const identity = key.toPublicKey().toString()
const identityBytes = fromHex(identity)
const other = new PrivateKey(4243)
const spent: Outpoint = { txid: 'ab'.repeat(32), vout: 2 }
const firstInput: Outpoint = { txid: 'cd'.repeat(32), vout: 0 }
const avatar: Outpoint = { txid: 'ef'.repeat(32), vout: 1 }
const NOTHING = new Uint8Array()

interface SdkLock {
  fields: Uint8Array[]
  signer?: PrivateKey
  level?: 0 | 1
  protocol?: string
  keyId?: string
  counterparty?: string
  position?: 'before' | 'after'
  isSigned?: boolean
}

/** A lock as the SDK makes it, of any fields. */
async function sdkLock(lock: SdkLock): Promise<Uint8Array> {
  const { fields, signer = key, level = 0, protocol = 'p 1sat', keyId = bindingKeyId(spent) } = lock
  const { counterparty = 'anyone', position, isSigned = true } = lock
  const template = new PushDrop(new ProtoWallet(signer) as unknown as WalletInterface)
  const pushed = fields.map((field) => Array.from(field))
  const made = await template.lock(pushed, [level, protocol], keyId, counterparty, true, isSigned, position)
  return Uint8Array.from(made.toUint8Array())
}

const pairs = (...texts: (string | Uint8Array)[]): Uint8Array[] =>
  texts.map((text) => (typeof text === 'string' ? utf8(text) : text))
const asm = (text: string): Uint8Array => Uint8Array.from(LockingScript.fromASM(text).toUint8Array())

/** All of them, always the same: the SDK's signatures depend on nothing but what is signed. */
export async function bindingVectors(): Promise<BindingVector[]> {
  const vectors: BindingVector[] = []
  const add = (
    title: string,
    script: Uint8Array,
    expected: BindingVector['expected'],
    may = [spent],
  ): void => {
    vectors.push({ title, script: toHex(script), spent: may.map(formatOutpoint), expected })
  }
  const bound = (more: Partial<Bound> = {}): Bound => ({
    ...{ state: 'bound', identityKey: identity, layout: 'positional', protocol: 'p 1sat', profile: {} },
    ...more,
  })
  const invalid = (fault: string): BindingVector['expected'] => ({ state: 'invalid', fault })
  const unbound = { state: 'unbound' } as const
  const keyValue = { layout: 'key-value', protocol: 'onesat' } as const
  const kv = async (fields: Uint8Array[], more: Partial<SdkLock> = {}): Promise<Uint8Array> =>
    await sdkLock({ fields, protocol: 'onesat', ...more })
  /** With our builder. */
  const built = async (terms: BindingTerms, before: Uint8Array = p2pkh(1)): Promise<Uint8Array> =>
    await bindingLock({
      coin: { outpoint: spent, lockingScript: before, bindingInputs: [spent, firstInput] },
      signer: new ProtoWallet(key),
      ...terms,
    })

  const plain = await built({ layout: 'positional' })
  add('by position: a key', plain, bound())
  const named = await built({ layout: 'positional', profile: { name: 'Añjali', avatar } })
  add('by position: a name and an avatar', named, bound({ profile: { name: 'Añjali', avatar } }))
  const faced = await built({ layout: 'positional', profile: { avatar } })
  add(
    'by position: an avatar alone, an unset slot signed as a zero byte',
    faced,
    bound({ profile: { avatar } }),
  )
  const slots = [identityBytes, NOTHING, encodeOutpoint(avatar)]
  add(
    'by position: an unset slot signed as nothing',
    await sdkLock({ fields: slots }),
    bound({ profile: { avatar } }),
  )
  const future = [identityBytes, utf8('A'), NOTHING, utf8('later'), Uint8Array.of(16)]
  const extended = await sdkLock({ fields: future })
  add('by position: slots that are not known', extended, bound({ profile: { name: 'A' } }))
  const badAvatar = await sdkLock({ fields: [identityBytes, utf8('A'), new Uint8Array(35).fill(1)] })
  add('by position: an avatar that is no outpoint', badAvatar, bound({ profile: { name: 'A' } }))
  const badText = await sdkLock({ fields: [identityBytes, Uint8Array.of(0xff, 0xfe)] })
  add('by position: a name that is not UTF-8', badText, bound())
  add(
    'by position, under the later protocol',
    await built({ layout: 'positional', protocol: 'onesat' }),
    bound({ protocol: 'onesat' }),
  )

  add('by key and value: an identity', await built({}), bound(keyValue))
  const profile = { domain: 'Names.Example', name: 'Alice', avatar }
  const full = await built({ profile })
  add('by key and value: a profile', full, bound({ ...keyValue, profile }))
  add(
    'by key and value, under the earlier protocol',
    await built({ protocol: 'p 1sat' }),
    bound({ layout: 'key-value' }),
  )
  const earlier = encode({ domain: 'names.example', displayName: 'Alice' })
  const earlierFields = pairs('identity', identityBytes, 'profile', earlier)
  add(
    'by key and value: the name by its earlier key',
    await kv(earlierFields),
    bound({ ...keyValue, profile: { domain: 'names.example', name: 'Alice' } }),
  )
  // A map of `z`, `name`, `links` (a CID, numbers, null and true) and `domain`.
  const unknown = concatBytes(
    ...[fromHex('a4'), encode('z'), encode({ '': 'x' }), encode('name'), encode('A'), encode('links')],
    ...[fromHex('86d82a450001550000'), encode(-5), encode(2 ** 40), encode(1.5), encode(null), encode(true)],
    ...[encode('domain'), encode('a.example')],
  )
  const odd = pairs(Uint8Array.of(0xff), 'x', 'later', NOTHING, 'identity', identityBytes, 'profile', unknown)
  const oddLock = await kv(odd)
  add(
    'by key and value: pairs and members that are not known',
    oddLock,
    bound({ ...keyValue, profile: { domain: 'a.example', name: 'A' } }),
  )
  const rebuilt = await built({ profile: { name: 'B' } }, oddLock)
  add(
    'by key and value: the same, rebuilt with another name',
    rebuilt,
    bound({ ...keyValue, profile: { domain: 'a.example', name: 'B' } }),
  )
  const unread: [string, Uint8Array][] = [
    ['no CBOR', utf8('{"name":"A"}')],
    ['a list', encode(['name', 'A'])],
    ['of indefinite length', concatBytes(fromHex('bf'), encode('name'), encode('A'), fromHex('ff'))],
    [
      'with a key twice',
      concatBytes(fromHex('a2'), encode('name'), encode('A'), encode('name'), encode('B')),
    ],
    ['with a length longer than needed', concatBytes(fromHex('b801'), encode('name'), encode('A'))],
    ['that is nested without end', new Uint8Array(1000).fill(0x81)],
    ['with a name that is a number', encode({ name: 5, avatar: new Uint8Array(4) })],
  ]
  for (const [what, bytes] of unread)
    add(
      `by key and value: a profile, ${what}`,
      await kv(pairs('identity', identityBytes, 'profile', bytes)),
      bound(keyValue),
    )
  const twice = pairs(
    'profile',
    encode({ name: 'A' }),
    'identity',
    identityBytes,
    'profile',
    encode({ name: 'B' }),
  )
  add('by key and value: two profiles', await kv(twice), bound(keyValue))

  // The same bytes with the same signature, divided by somebody else.
  const recut = async (fields: Uint8Array[], cut: Uint8Array[], protocol = 'p 1sat'): Promise<Uint8Array> => {
    const { signature } = await new ProtoWallet(key).createSignature({
      data: Array.from(concatBytes(...fields)),
      ...{ protocolID: [0, protocol], keyID: bindingKeyId(spent), counterparty: 'anyone' },
    })
    return await sdkLock({ fields: [...cut, Uint8Array.from(signature)], isSigned: false, protocol })
  }
  const anjali = [identityBytes, utf8('Anjali'), encodeOutpoint({ ...avatar, vout: 0 })]
  const [, , face = NOTHING] = anjali
  const byPosition: [what: string, fields: Uint8Array[], cut: (Uint8Array | string)[]][] = [
    ['a name that lost its end to the next slot', [identityBytes, utf8('Anjali')], ['An', 'jali']],
    [
      'a name that lost its end behind an unset slot',
      [identityBytes, utf8('Anjali')],
      ['An', NOTHING, 'jali'],
    ],
    [
      'a name that was put where nobody reads it',
      [identityBytes, utf8('Anjali')],
      [NOTHING, NOTHING, 'Anjali'],
    ],
    [
      'a long name, half of which is an avatar',
      [identityBytes, utf8('n'.repeat(40))],
      ['nnnn', 'n'.repeat(36)],
    ],
    [
      'a name and an avatar, moved by two bytes',
      anjali,
      ['Anja', concatBytes(utf8('li'), face.slice(0, 34)), face.slice(34)],
    ],
    ['an avatar that was hidden', anjali, ['Anjali', NOTHING, face]],
    ['an avatar that was cut off', anjali, ['Anjali', face.slice(0, 20), face.slice(20)]],
  ]
  for (const [what, fields, cut] of byPosition)
    add(
      `by position: ${what}`,
      await recut(fields, [identityBytes, ...pairs(...cut)]),
      invalid('NOT_CANONICAL'),
    )
  const said = encode({ domain: 'a.example', name: 'Alice' })
  const whole = pairs('identity', identityBytes, 'profile', said)
  const byPair: [what: string, fields: Uint8Array[], cut: (Uint8Array | string)[]][] = [
    ['a profile whose key was cut', whole, ['prof', concatBytes(utf8('ile'), said)]],
    ['a profile that became a key', whole, [concatBytes(utf8('profile'), said), NOTHING]],
    ['a profile that lost its end', whole, ['profile', said.slice(0, 9), said.slice(9), NOTHING]],
    ['a profile behind an empty key', whole, [NOTHING, 'profile', said, NOTHING]],
    [
      'a profile with what came after it',
      [...whole, ...pairs('later', 'x')],
      ['profile', concatBytes(said, utf8('later'), utf8('x'))],
    ],
  ]
  for (const [what, fields, cut] of byPair)
    add(
      `by key and value: ${what}`,
      await recut(fields, [...pairs('identity', identityBytes), ...pairs(...cut)], 'onesat'),
      invalid('NOT_CANONICAL'),
    )
  add(
    'by key and value: a profile with a byte after it',
    await kv(pairs('identity', identityBytes, 'profile', concatBytes(said, fromHex('00')))),
    invalid('NOT_CANONICAL'),
  )
  add(
    'by key and value: what is not known, divided in another way',
    await recut([...whole, ...pairs('later', 'x')], [...whole, ...pairs('late', 'rx')], 'onesat'),
    bound({ ...keyValue, profile: { domain: 'a.example', name: 'Alice' } }),
  )

  const after = await sdkLock({ fields: [identityBytes], position: 'after' })
  add('the key after the fields, as BRC-48 has it', after, bound())
  const envelope = encodeEnvelope({ contentType: 'text/plain', body: utf8('hi') })
  add(
    'an inscription and an OP_RETURN behind it',
    concatBytes(full, envelope, fromHex('6a0000ff4d')),
    bound({ ...keyValue, profile }),
  )
  const byFirstInput = await sdkLock({ fields: [identityBytes], keyId: bindingKeyId(firstInput) })
  add('the key ID of the first input, as deployed verifiers have it', byFirstInput, bound(), [
    spent,
    firstInput,
  ])

  add('P2PKH', p2pkh(1), unbound)
  add('nothing', NOTHING, unbound)
  add('the key ID of another output: a binding that was copied', plain, invalid('OTHER_KEY'), [firstInput])
  const wrong: [string, Partial<SdkLock>][] = [
    ['a key ID with a point', { keyId: bindingKeyId(spent).replace('_', '.') }],
    ['a key ID without its prefix', { keyId: formatOutpoint(spent) }],
    ['a key ID in upper case', { keyId: `opns:${formatOutpoint(spent).toUpperCase()}` }],
    ['another protocol', { protocol: 'p 1sats' }],
    ['another level', { level: 1 }],
    ['another counterparty', { counterparty: 'self' }],
    ["somebody else's key", { signer: other }],
  ]
  for (const [what, more] of wrong)
    add(what, await sdkLock({ fields: [identityBytes], ...more }), invalid('OTHER_KEY'))

  /** A lock of our key, with the last field put in place of its signature. */
  const withSignature = async (signature: Uint8Array): Promise<Uint8Array> =>
    await sdkLock({ fields: [identityBytes, signature], isSigned: false })
  const signed = async (data: Uint8Array, by = key): Promise<Uint8Array> => {
    const { signature } = await new ProtoWallet(by).createSignature({
      data: Array.from(data),
      protocolID: [0, 'p 1sat'],
      keyID: bindingKeyId(spent),
      counterparty: 'anyone',
    })
    return Uint8Array.from(signature)
  }
  const right = await signed(identityBytes)
  add('a signature in its place', await withSignature(right), bound())
  add(
    'a signature of another key',
    await withSignature(await signed(identityBytes, other)),
    invalid('BAD_SIGNATURE'),
  )
  add('a signature of other fields', await withSignature(await signed(utf8('x'))), invalid('BAD_SIGNATURE'))
  add('a signature that is no DER', await withSignature(right.slice(1)), invalid('BAD_SIGNATURE'))
  add('no signature', await sdkLock({ fields: [identityBytes], isSigned: false }), unbound)
  const noPoint = concatBytes(Uint8Array.of(2), new Uint8Array(31), Uint8Array.of(5))
  add('a key that is no point', await sdkLock({ fields: [noPoint] }), invalid('BAD_KEY'))
  const beyond = fromHex(`02${'ff'.repeat(27)}fefffffc30`)
  add('a key whose coordinate is beyond the field', await sdkLock({ fields: [beyond] }), invalid('BAD_KEY'))

  const noBinding: [string, Uint8Array[]][] = [
    ['an identity of 32 bytes', pairs('identity', identityBytes.slice(1))],
    [
      'an identity that starts with 04',
      pairs('identity', concatBytes(Uint8Array.of(4), identityBytes.slice(1))),
    ],
    ['two identities', pairs('identity', identityBytes, 'identity', identityBytes)],
    ['a key without a value', pairs('identity', identityBytes, 'profile')],
    ['an identity by another key', pairs('Identity', identityBytes)],
    ['a profile alone', pairs('profile', encode({ name: 'A' }))],
  ]
  for (const [what, fields] of noBinding) add(what, await kv(fields), unbound)
  add(
    'as many fields as are read',
    await kv(pairs('identity', identityBytes, ...new Array<string>(252).fill('x'))),
    bound(keyValue),
  )
  add(
    'one pair more',
    await kv(pairs('identity', identityBytes, ...new Array<string>(254).fill('x'))),
    unbound,
  )
  const ended = plain.slice(0, -1)
  add('a field that is not dropped', concatBytes(ended, fromHex('75')), unbound)
  add('a drop too many', concatBytes(plain, fromHex('75')), unbound)
  add('no drops', ended, unbound)
  add('a true value at the end: anybody can spend it', concatBytes(plain, asm('OP_1')), unbound)
  add(
    'an alternative that runs: anybody can spend it',
    concatBytes(plain, asm('OP_0 OP_IF OP_ELSE OP_1 OP_ENDIF')),
    unbound,
  )
  add('an envelope that does not end', concatBytes(plain, envelope.slice(0, -1)), unbound)
  add('a push that breaks off', concatBytes(plain, fromHex('05aa')), unbound)
  add('an inscription before it', concatBytes(envelope, plain), unbound)
  const uncompressed = Utils.toArray(key.toPublicKey().encode(false, 'hex') as string, 'hex')
  add(
    'an uncompressed key in the lock',
    concatBytes(Uint8Array.of(65, ...uncompressed), plain.slice(34)),
    unbound,
  )
  return vectors
}
