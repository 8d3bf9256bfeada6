import { ascii, concatBytes, fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { ownerCommitment } from '../../../backend/src/protocol/mint.js'
import { readMintUnlocking } from '../../../backend/src/protocol/mint-unlocking.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import { type MintPlan, solvePlan, unlockNode } from '../../../src/mining/mint-transaction.js'
import { searchNonce } from '../../../src/mining/search/search-nonce.js'
import { FakeChain, type FakeOutput, p2pkh } from '../../support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'

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
      const shown = ({ satoshis, lockingScript }: FakeOutput) => [satoshis, toHex(lockingScript)]
      expect(outputs.map(shown)).toEqual(transaction.outputs.slice(0, 3).map(shown))
    })

    test('has the same unlocking script, which reads as what it was made of', () => {
      const script = unlockNode({ plan, transaction, input: 0 })
      expect(toHex(script)).toBe(toHex(transaction.inputs[0]?.unlockingScript ?? new Uint8Array()))
      const { nonce, ownerLock } = plan
      expect(readMintUnlocking(script)).toMatchObject({ character: ascii(plan.character), nonce, ownerLock })
    })
  })
}

describe('a plan that cannot hold', () => {
  const chain = new FakeChain({ difficulty: 1 })
  chain.mint('a')
  const { deployment } = chain
  const root = chain.node('')
  const ownerLock = p2pkh(1)
  const nonce = concatBytes(ownerCommitment({ domain: '', ownerLock, deployment }), Uint8Array.of(0))
  const plan = { node: root, deployment, character: 'b', nonce, ownerLock }
  const hard = { ...deployment, difficulty: 60 }

  test.each([
    ['a character that is claimed', { character: 'a' }, 'CLAIMED'],
    ['a nonce for nobody', { nonce: new Uint8Array() }, 'BAD_NONCE'],
    ['no work', { deployment: hard }, 'BAD_WORK'],
    ['no node', { node: { ...root, lockingScript: p2pkh(1) } }, 'NOT_A_NODE'],
  ])('%s', (_, change, code) => {
    const refused = expect.objectContaining({ name: 'MintError', code })
    expect(() => solvePlan({ ...plan, ...change })).toThrow(refused)
  })
})

describe('a solution that somebody else has seen', () => {
  /** Found for the root, whose restated node and child have one seed after the first mint. */
  async function seen(covenantVersion: 1 | 2) {
    const chain = new FakeChain({ difficulty: 6, covenantVersion })
    chain.mint('a')
    const { deployment } = chain
    const [node, sibling] = [chain.node(''), chain.node('a')]
    const ownerLock = p2pkh(1)
    const { seed } = decodeMineNode(node.lockingScript)
    expect(decodeMineNode(sibling.lockingScript).seed).toEqual(seed)
    const noncePrefix = ownerCommitment({ domain: '', ownerLock, deployment })
    const { nonce } = await searchNonce({ seed, character: 'b', difficulty: 6, noncePrefix, workers: 0 })
    const plan: MintPlan = { node, deployment, character: 'b', nonce, ownerLock }
    expect(solvePlan(plan).mint.name).toBe('b')
    return { plan, taken: { ...plan, ownerLock: p2pkh(2) }, elsewhere: { ...plan, node: sibling } }
  }

  test('is of no use for another owner, or at another node', async () => {
    const { taken, elsewhere } = await seen(2)
    const refused = expect.objectContaining({ name: 'MintError', code: 'BAD_NONCE' })
    expect(() => solvePlan(taken)).toThrow(refused)
    expect(() => solvePlan(elsewhere)).toThrow(refused)
  })

  test('serves any owner, and every node with that seed, in a tree of the first covenant', async () => {
    const { taken, elsewhere } = await seen(1)
    expect(solvePlan(taken).mint).toMatchObject({ name: 'b', ownerLock: p2pkh(2) })
    expect(solvePlan(elsewhere).mint.name).toBe('ab')
  })
})
