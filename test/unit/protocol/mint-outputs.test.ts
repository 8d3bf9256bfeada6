import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { MintError, possibleMintInputs, readMintOutputs } from '../../../backend/src/protocol/mint.js'
import { encodeMinimalPush, readPushes } from '../../../backend/src/protocol/script-walk.js'
import { hash256, readTransaction } from '../../../backend/src/protocol/transaction.js'
import { brokenMints, nodeWith } from '../../support/protocol/broken-mints.js'
import {
  FakeChain,
  type FakeTransaction,
  type MintOverrides,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'

const chain = new FakeChain()
chain.mintAll('ab')
const { deployment } = chain
const PARENT = chain.node('a')

/** A mint of `ac`, from the live node of `a`, which stays live. */
function attempt(overrides: MintOverrides = {}): FakeTransaction {
  return chain.mint('ac', { from: PARENT, ...overrides })
}

/** What its outputs say of a mint, whatever unlocks the node: the name, or the code of the error. */
function nameOrCode(
  { transaction }: FakeTransaction,
  more: Partial<Parameters<typeof readMintOutputs>[0]> = {},
): string {
  try {
    return readMintOutputs({ transaction, input: 0, deployment, spent: PARENT, ...more }).name
  } catch (error) {
    if (!(error instanceof MintError)) throw error
    return error.code
  }
}

const unlockingScript = () => new Uint8Array()

test.each<[string, MintOverrides]>([
  ['as it is', {}],
  ['with no outputs after the name', { trailing: [] }],
  ['with an empty owner lock', { ownerLock: new Uint8Array() }],
  ['with a long owner lock', { ownerLock: new Uint8Array(70_000) }],
])('a mint is recognised by its outputs, %s', (_, overrides) => {
  const mint = attempt({ unlockingScript, ...overrides })
  expect([nameOrCode(mint), nameOrCode(mint, { spent: undefined })]).toEqual(['ac', 'ac'])
})

test('a mint with zero bytes after the character is recognised, from a node of either domain', () => {
  const mint = attempt({ unlockingScript, character: 'c\0' })
  expect([nameOrCode(mint), nameOrCode(mint, { spent: undefined })]).toEqual(['ac\0', 'ac\0'])
  const [, child] = mint.transaction.outputs
  const from = { outpoint: { txid: mint.txid, vout: 1 }, satoshis: 1, lockingScript: Uint8Array.of() }
  const spent = { ...from, ...(child && { lockingScript: child.lockingScript }) }
  const next = chain.mint('?', { unlockingScript, from: spent, character: 'd' })
  expect([nameOrCode(next, { spent }), nameOrCode(next, { spent: undefined })]).toEqual(['ac\0d', 'ac\0d'])
})

test('a mint from the root as deployed is recognised too', () => {
  const tree = new FakeChain({ tld: 'test' })
  const spent = tree.node('')
  const mint = tree.mint('x', { unlockingScript })
  expect(nameOrCode(mint, { spent, deployment: tree.deployment })).toBe('x')
})

/** For another owner than the unlocking script says: any lock will do where only the outputs are read. */
const FOR_ANOTHER = 'the name for another owner'
const WRONG = brokenMints(chain).filter(
  ({ has, overrides }) => overrides.outputs !== undefined && has !== FOR_ANOTHER,
)

test('the outputs can be wrong in many ways', () => expect(WRONG.length).toBeGreaterThan(20))

test.each(WRONG)('$has is no mint by its outputs', ({ overrides }) => {
  expect(nameOrCode(attempt(overrides))).toBe('BAD_OUTPUT')
})

test.each<[string, string, MintOverrides]>([
  ['too little work', 'BAD_WORK', { badWork: true }],
  ['a character that was claimed', 'CLAIMED', { character: 'b' }],
  ['a character that names do not have', 'BAD_OUTPUT', { character: 'C' }],
])('%s is no mint by its outputs', (_, code, overrides) => {
  expect(nameOrCode(attempt(overrides))).toBe(code)
})

test('what was spent must be a node of the tree, and the one that is restated', () => {
  const mint = attempt()
  expect(nameOrCode(mint, { spent: { ...PARENT, lockingScript: p2pkh(1) } })).toBe('NOT_A_NODE')
  expect(nameOrCode(mint, { spent: nodeWith(chain, { domain: 'b' }) })).toBe('BAD_OUTPUT')
  expect(
    nameOrCode(mint, { deployment: { ...deployment, genesis: { ...deployment.genesis, vout: 1 } } }),
  ).toBe('OTHER_TREE')
  expect(nameOrCode(mint, { input: 9 })).toBe('BAD_UNLOCKING')
})

test('a name or an output beyond the limits of the covenant is refused', () => {
  const limits = { nameBytes: 2, nameScriptBytes: 1000 }
  expect(nameOrCode(attempt(), { deployment: { ...deployment, limits } })).toBe('ac')
  for (const less of [{ nameBytes: 1 }, { nameScriptBytes: 1 }]) {
    const limited = { ...deployment, limits: { ...limits, ...less } }
    expect(nameOrCode(attempt(), { deployment: limited })).toBe('TOO_LONG')
  }
})

test('that many inputs look like spends of a node costs no more than the bytes that they have', () => {
  const trailing = [{ satoshis: 1, lockingScript: new Uint8Array(300_000) }]
  const { transaction } = attempt({ trailing })
  const [real] = transaction.inputs
  if (real === undefined) throw new Error('a mint without inputs')
  // Each has the five pushes of a mint, but for the outputs after index 2 and with a preimage that is not its own.
  const unlocking = readPushes(real.unlockingScript, { limit: 5 })
  const short = joinBytes(
    [...unlocking.slice(0, 3), Uint8Array.of(), ...unlocking.slice(4)].map(encodeMinimalPush),
  )
  const inputs = Array.from({ length: 200 }, (_, vout) => ({
    outpoint: { txid: '11'.repeat(32), vout },
    unlockingScript: short,
  }))
  const raw = encodeTransaction({
    inputs: [...inputs, { outpoint: real, unlockingScript: real.unlockingScript }],
    outputs: transaction.outputs,
  })
  let hashed = 0
  const hash = (bytes: Uint8Array): Uint8Array => {
    hashed += bytes.length
    return hash256(bytes)
  }
  expect(possibleMintInputs({ transaction: readTransaction(raw), deployment, hash })).toEqual([200])
  expect(hashed).toBeLessThan(2 * raw.length)
})
