import { ascii, fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import { readMintUnlocking } from '../../backend/src/protocol/mint-unlocking.js'
import { parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../backend/src/protocol/profile.js'
import { solvePlan, unlockNode } from '../../src/mining/mint-plan.js'
import { FakeChain, p2pkh } from '../support/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../support/mainnet-vectors.js'

const vectors = mainnetVectors()
const mainnet = deploymentOf(PROFILES.mainnet)

if (vectors === undefined || mainnet === undefined) {
  test.skip('mints of the live chain (../shared/vectors/mainnet is absent)', () => undefined)
} else {
  describe.each(vectors.mineTree.mints)('the live mint $txid, made again', (vector) => {
    const transaction = mainnetTransaction(vector.txid)
    const outpoint = parseOutpoint(vector.spends)
    const spent = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
    if (spent === undefined) throw new Error(`no output ${vector.spends}`)
    const plan = {
      node: { ...spent, outpoint },
      deployment: mainnet,
      character: vector.char,
      nonce: fromHex(vector.nonce),
      ownerLock: fromHex(vector.name.lock),
    }

    test('has the same outputs 0 to 2', () => {
      const { outputs, mint } = solvePlan(plan)
      expect(mint.name).toBe(vector.name.name)
      expect(outputs.map(({ satoshis, lockingScript }) => [satoshis, toHex(lockingScript)])).toEqual(
        transaction.outputs
          .slice(0, 3)
          .map(({ satoshis, lockingScript }) => [satoshis, toHex(lockingScript)]),
      )
    })

    test('has the same unlocking script, which reads as what it was made of', () => {
      const script = unlockNode({ plan, transaction, input: 0 })
      expect(toHex(script)).toBe(toHex(transaction.inputs[0]?.unlockingScript ?? new Uint8Array()))
      expect(readMintUnlocking(script)).toMatchObject({
        character: ascii(plan.character),
        nonce: plan.nonce,
        ownerLock: plan.ownerLock,
      })
    })
  })
}

describe('a plan that cannot hold', () => {
  const chain = new FakeChain({ difficulty: 1 })
  chain.mint('a')
  const { deployment } = chain
  const root = chain.node('')
  const plan = { node: root, deployment, character: 'b', nonce: new Uint8Array(), ownerLock: p2pkh(1) }
  const hard = { ...deployment, difficulty: 60 }

  test.each([
    ['a character that is claimed', { character: 'a' }, 'CLAIMED'],
    ['a character of no name', { character: 'A' }, 'BAD_CHARACTER'],
    ['more than a character', { character: 'bc' }, 'BAD_CHARACTER'],
    ['no work', { deployment: hard }, 'BAD_WORK'],
    ['another tree', { deployment: new FakeChain({ codeSize: 65 }).deployment }, 'OTHER_TREE'],
    ['no node', { node: { ...root, lockingScript: p2pkh(1) } }, 'NOT_A_NODE'],
    ['a node of another value', { node: { ...root, satoshis: 2 } }, 'NOT_A_NODE'],
  ])('%s', (_, change, code) => {
    expect(() => solvePlan({ ...plan, ...change })).toThrow(
      expect.objectContaining({ name: 'MintError', code }),
    )
  })
})
