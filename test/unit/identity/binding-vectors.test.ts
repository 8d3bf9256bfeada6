import { readFileSync } from 'node:fs'
import { PrivateKey, ProtoWallet } from '@bsv/sdk'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { verifyBinding } from '../../../src/client/verify-binding.js'
import { type BindingTerms, bindingLock } from '../../../src/identity/index.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'

/** A script of a name's output, and what it binds the name to. */
interface BindingVector {
  /** What is special about it. */
  title: string
  /** The locking script, in hex. */
  script: string
  /** What its key ID may name, as `<txid>_<vout>`: the output that the name was in before, then the first input. */
  spent: string[]
  expected: { state: string }
}

const file = new URL('../../vectors/identity-bindings.json', import.meta.url)
const vectors: BindingVector[] = JSON.parse(readFileSync(file, 'utf8'))

/** By title, so that a failure names the vector. */
const byTitle = (result: (vector: BindingVector) => unknown) =>
  Object.fromEntries(vectors.map((vector) => [vector.title, result(vector)]))

test('the client agrees with each', () => {
  const found = byTitle(({ script, spent }) => {
    const binding = verifyBinding({ lockingScript: fromHex(script), spent: spent.map(parseOutpoint) })
    if (binding.state !== 'bound') return binding
    const { keyId, lockingKey, ...rest } = binding
    expect(spent.map((each) => `opns:${each}`)).toContain(keyId)
    expect(script).toContain(lockingKey)
    return rest
  })
  expect(found).toEqual(byTitle(({ expected }) => expected))
  expect(Object.keys(found)).toHaveLength(vectors.length)
})

const AVATAR_ALONE = 'by position: an avatar alone, an unset slot signed as a zero byte'
const NOT_KNOWN = 'by key and value: pairs and members that are not known'
const avatar = { txid: 'ef'.repeat(32), vout: 1 }
const profile = { domain: 'Names.Example', name: 'Alice', avatar }

test.each<[title: string, terms: BindingTerms, replaces?: string]>([
  ['by position: a key', { layout: 'positional' }],
  ['by position: a name and an avatar', { layout: 'positional', profile: { name: 'Añjali', avatar } }],
  [AVATAR_ALONE, { layout: 'positional', profile: { avatar } }],
  ['by position, under the later protocol', { layout: 'positional', protocol: 'onesat' }],
  ['by key and value: an identity', {}],
  ['by key and value: a profile', { profile }],
  ['by key and value, under the earlier protocol', { protocol: 'p 1sat' }],
  ['by key and value: the same, rebuilt with another name', { profile: { name: 'B' } }, NOT_KNOWN],
])('our builder makes it, always the same: %s', async (title, terms, replaces) => {
  const vector = (wanted: string | undefined) => vectors.find((each) => each.title === wanted)
  const [outpoint, firstInput] = [
    { txid: 'ab'.repeat(32), vout: 2 },
    { txid: 'cd'.repeat(32), vout: 0 },
  ]
  const before = vector(replaces)?.script
  const lockingScript = before === undefined ? p2pkh(1) : fromHex(before)
  const lock = await bindingLock({
    coin: { outpoint, lockingScript, bindingInputs: [outpoint, firstInput] },
    signer: new ProtoWallet(new PrivateKey(4242)),
    ...terms,
  })
  expect(toHex(lock)).toBe(vector(title)?.script)
})
