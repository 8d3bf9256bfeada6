import { MerklePath } from '@bsv/sdk'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { concatBytes, fromHex } from '../../../backend/src/protocol/bytes.js'
import { encodeMineNode, UNCLAIMED } from '../../../backend/src/protocol/mine-node.js'
import type { MintErrorCode } from '../../../backend/src/protocol/mint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { HeadersError, type ProofErrorCode } from '../../../src/client/errors.js'
import { verifyNameProof } from '../../../src/client/verify-name.js'
import {
  at,
  FakeHeaders,
  namedWorld,
  outpointBeef,
  proofOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { blockOfTwo, proofIn, recordOf } from '../../support/protocol/block.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  type MintOverrides,
} from '../../support/protocol/fake-chain.js'
import { varint } from '../../support/protocol/raw-transaction.js'

const world = namedWorld()
const { chain, deployment, line, mints } = world

const verify = async (
  proof: Uint8Array,
  more: Partial<Parameters<typeof verifyNameProof>[0]> = {},
): ReturnType<typeof verifyNameProof> =>
  await verifyNameProof({ proof, name: 'abc', deployment, chainTracker: world.headers, ...more })

const refused = (code: ProofErrorCode, message?: unknown) => ({
  name: 'ProofError',
  code,
  message: message ?? expect.stringMatching(/^[^\n]{10,400}$/),
})

describe('a proof that holds', () => {
  test('shows the origin, and every mint on the way from the genesis', async () => {
    expect(await verify(proofOf(line))).toEqual({
      name: 'abc',
      origin: at(mints.abc, 2),
      line: ['b', 'a', 'ax', 'ab', 'abc'].map((name, index) => {
        const { txid, height } = line[index + 1] as FakeTransaction
        return { txid, name, height }
      }),
      proven: true,
      height: mints.abc.height,
    })
  })

  test('asks for each block header once, and for none that says nothing of the name', async () => {
    const headers = new FakeHeaders(line)
    await verify(proofOf(line), { chainTracker: headers })
    expect(headers.asked).toEqual(line.slice(1).map(({ txid }) => txid))
  })

  test('may hold more than the name rests on: that is read, and not believed', async () => {
    const stranger = chain.inscribe({ contentType: 'text/plain' })
    const records = [recordOf(stranger, 1), ...recordsOf(line)]
    expect(await verify(outpointBeef(world.origin, records))).toMatchObject({ proven: true })
  })

  test('may lead past a mint whose unlocking script has code, however much', async () => {
    const other = new FakeChain({ covenantVersion: 1 })
    const nops = new Uint8Array(400_000).fill(0x61)
    const mint = other.mint('a', { version: 2, unlockingScript: (script) => concatBytes(script, nops) })
    const all = [other.genesis, mint]
    const shown = {
      proof: outpointBeef(at(mint, 2), recordsOf(all)),
      name: 'a',
      deployment: other.deployment,
      chainTracker: new FakeHeaders(all),
    }
    expect(await verifyNameProof(shown)).toMatchObject({ origin: at(mint, 2), proven: true })
    // The block proves its work.
    await expect(verifyNameProof({ ...shown, chainTracker: new FakeHeaders([]) })).rejects.toThrow()
  })

  test.each([
    ['a', [chain.genesis, mints.b, mints.a]],
    ['b', [chain.genesis, mints.b]],
  ])('of the name %s is no longer than its line', async (name, transactions) => {
    expect(await verify(proofOf(transactions), { name })).toMatchObject({ name, proven: true })
  })

  test('of a tree with a TLD is of the name without it', async () => {
    const other = new FakeChain({ tld: 'test' })
    const transactions = [other.genesis, other.mint('x')]
    const more = { name: 'x', deployment: other.deployment, chainTracker: new FakeHeaders(transactions) }
    expect(await verify(proofOf(transactions), more)).toMatchObject({ name: 'x', proven: true })
  })
})

describe('a lie is refused', () => {
  const { b, a, ax, ab, abc } = mints

  test('a wrong origin: an inscription of the same name', async () => {
    const [, , output] = abc.transaction.outputs
    const { lockingScript = new Uint8Array() } = output ?? {}
    const outputs = new Array(3).fill({ satoshis: 1, lockingScript })
    const lookalike = chain.spend({ inputs: [], outputs })
    const headers = new FakeHeaders([...line, lookalike])
    const proof = proofOf([...line, lookalike])
    await expect(verify(proof, { chainTracker: headers })).rejects.toMatchObject(refused('NOT_IN_TREE'))
    const alone = proofOf([lookalike])
    await expect(verify(alone, { chainTracker: headers })).rejects.toMatchObject(refused('NO_GENESIS'))
  })

  test.each([
    ['its first mint', [chain.genesis, a, ax, ab, abc]],
    ['a mint in its midst', [chain.genesis, b, a, ab, abc]],
    ['the mint before the last', [chain.genesis, b, a, ax, abc]],
  ])('a lineage that is cut: without %s', async (_, transactions) => {
    await expect(verify(proofOf(transactions))).rejects.toMatchObject(refused('NOT_IN_TREE'))
  })

  test('a lineage that is cut off at its root', async () => {
    await expect(verify(proofOf(line.slice(1)))).rejects.toMatchObject(refused('NO_GENESIS'))
  })

  test('another genesis, with its own tree', async () => {
    const otherTree = new FakeChain()
    otherTree.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: inscriptionScript({}) }] })
    const root = otherTree.spend({
      inputs: [],
      outputs: [{ satoshis: 1, lockingScript: otherTree.node('').lockingScript }],
    })
    const node = { ...otherTree.node(''), outpoint: at(root, 0) }
    const mint = otherTree.mint('x', { from: node })
    const chainTracker = new FakeHeaders([...line, root, mint])
    const check = { name: 'x', chainTracker }
    await expect(verify(proofOf([root, mint]), check)).rejects.toMatchObject(refused('NO_GENESIS'))
    // Nor does it help to show the real one beside it.
    const both = proofOf([chain.genesis, root, mint])
    await expect(verify(both, check)).rejects.toMatchObject(refused('NOT_IN_TREE'))
  })

  test('the genesis transaction with another output for a root', async () => {
    const other = { ...deployment, genesis: { ...deployment.genesis, vout: 1 } }
    await expect(verify(proofOf(line), { deployment: other })).rejects.toMatchObject(refused('NOT_IN_TREE'))
  })

  test('a forged node: a copy of the covenant with a state that nobody mined', async () => {
    const { lockingScript } = chain.node('ab')
    const code = lockingScript.subarray(0, 64)
    const state = { code, genesis: deployment.genesis, claimed: UNCLAIMED, seed: new Uint8Array(32) }
    const forged = encodeMineNode({ ...state, domain: 'victor' })
    const copy = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: forged }] })
    const node = { satoshis: 1, lockingScript: forged, outpoint: at(copy, 0) }
    const mint = chain.mint('victory', { from: node })
    const chainTracker = new FakeHeaders([...line, copy, mint])
    const proof = proofOf([...line, copy, mint])
    const check = { name: 'victory', chainTracker }
    await expect(verify(proof, check)).rejects.toMatchObject(refused('NOT_IN_TREE'))
  })

  test('a node output that was never left: output 3 of a mint, with the covenant in it', async () => {
    const node = chain.node('abc')
    const trailing = [{ satoshis: 1, lockingScript: node.lockingScript }]
    const mint = chain.mint('abcd', { trailing, from: node })
    const forged = chain.mint('abcde', {
      from: { satoshis: 1, lockingScript: node.lockingScript, outpoint: at(mint, 3) },
      character: 'e',
    })
    const chainTracker = new FakeHeaders([...line, mint, forged])
    const proof = proofOf([...line, mint, forged])
    await expect(verify(proof, { name: 'abce', chainTracker })).rejects.toMatchObject(refused('NOT_IN_TREE'))
  })

  test('swapped names: the proof of another', async () => {
    const proof = proofOf(line.slice(0, -1))
    await expect(verify(proof)).rejects.toMatchObject(refused('OTHER_NAME', 'the proof is of ab, not of abc'))
  })

  test.each([0, 1, 3])('output %i of the mint for the name', async (vout) => {
    await expect(verify(proofOf(line, { vout }))).rejects.toMatchObject(refused('OTHER_NAME'))
  })

  test('an owner lock with an envelope that says another name', async () => {
    const other = new FakeChain()
    const decoy = inscriptionScript({ contentType: 'application/name-claim', body: fromHex('616263') })
    const transactions = [other.genesis, other.mint('x', { ownerLock: decoy })]
    const check = { deployment: other.deployment, chainTracker: new FakeHeaders(transactions) }
    await expect(verify(proofOf(transactions), check)).rejects.toMatchObject(
      refused('OTHER_NAME', 'the proof is of x, not of abc'),
    )
    expect(await verify(proofOf(transactions), { ...check, name: 'x' })).toMatchObject({ proven: true })
  })

  test('a block that the chain tracker does not know', async () => {
    for (const liar of line.slice(1)) {
      const chainTracker = new FakeHeaders(line.filter((each) => each !== liar))
      await expect(verify(proofOf(line), { chainTracker })).rejects.toMatchObject(refused('BAD_PATH'))
    }
  })

  test('a merkle path of another transaction, or of another height', async () => {
    const path = (txid: string, height: number): Uint8Array =>
      Uint8Array.from(new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]]).toBinary())
    const given = (merklePath: Uint8Array) =>
      outpointBeef(world.origin, [
        ...recordsOf(line.slice(0, -1)),
        { ...abc, proof: { height: abc.height, root: abc.txid, merklePath } },
      ])
    await expect(verify(given(path(abc.txid, abc.height + 1)))).rejects.toMatchObject(refused('BAD_PATH'))
    const beside = blockOfTwo(abc, ax, abc.height).toBinary()
    await expect(verify(given(Uint8Array.from(beside)))).rejects.toMatchObject(refused('BAD_PATH'))
    // A path in which it is not leaves it without a block.
    await expect(verify(given(path(a.txid, abc.height)))).rejects.toMatchObject(refused('UNVERIFIED'))
  })

  test.each([ab, abc])('another height for one of two transactions of a block (%#)', async (liar) => {
    const blockAt = (height: number): MerklePath =>
      new MerklePath(height, [
        [ab, b, abc, ax].map(({ txid: hash }, offset) => ({ offset, hash, txid: offset % 2 === 0 })),
      ])
    const inBlock = (transaction: FakeTransaction): TransactionRecord => {
      const block = blockAt(transaction === liar ? abc.height + 1 : abc.height)
      return { ...transaction, proof: proofIn(block, transaction) }
    }
    const proof = outpointBeef(world.origin, [...recordsOf(line.slice(0, -2)), inBlock(ab), inBlock(abc)])
    const root = blockAt(abc.height).computeRoot(abc.txid)
    const chainTracker = new FakeHeaders([...line.slice(0, -2), { ...abc, txid: root }])
    await expect(verify(proof, { chainTracker })).rejects.toMatchObject(refused('BAD_PATH'))
  })

  test('a coin that is spent twice: two mints of one node', async () => {
    const conflicting = chain.mint('abz', { from: chain.node('abc'), character: 'z' })
    const other = chain.mint('aby', { from: chain.node('abc'), character: 'y' })
    const chainTracker = new FakeHeaders([...line, conflicting, other])
    await expect(verify(proofOf([...line, conflicting, other]), { chainTracker })).rejects.toMatchObject(
      refused('DOUBLE_SPEND'),
    )
  })
})

describe('a mint that breaks a rule', () => {
  const badMint = (code: MintErrorCode) => ({ ...refused('BAD_MINT'), cause: { code } })
  const broken: [code: MintErrorCode, overrides: MintOverrides][] = [
    ['BAD_UNLOCKING', { unlockingScript: () => Uint8Array.of(0x51) }],
    ['CLAIMED', { character: 'a' }],
    ['BAD_WORK', { badWork: true }],
    ['BAD_OUTPUT', { outputs: (all) => all.map((one, i) => (i === 2 ? { ...one, satoshis: 2 } : one)) }],
  ]

  test.each(broken)('is no mint: %s (%#)', async (code, overrides) => {
    const tree = new FakeChain()
    const first = tree.mint('a')
    const bad = tree.mint('c', { from: tree.node(''), ...overrides })
    const transactions = [tree.genesis, first, bad]
    const check = { name: 'c', deployment: tree.deployment, chainTracker: new FakeHeaders(transactions) }
    await expect(verify(proofOf(transactions), check)).rejects.toMatchObject(badMint(code))
  })

  test('or spends two nodes', async () => {
    const tree = new FakeChain()
    const first = tree.mint('a')
    const both = tree.mint('b', { from: tree.node(''), funding: [tree.node('a').outpoint] })
    const transactions = [tree.genesis, first, both]
    const check = { name: 'b', deployment: tree.deployment, chainTracker: new FakeHeaders(transactions) }
    await expect(verify(proofOf(transactions), check)).rejects.toMatchObject(refused('BAD_MINT'))
  })

  test.each<[MintErrorCode, Partial<typeof deployment>]>([
    ['BAD_WORK', { difficulty: 30 }],
    ['BAD_OUTPUT', { marker: fromHex('00') }],
    ['BAD_OUTPUT', { nameContentType: 'text/plain' }],
    ['BAD_OUTPUT', { tld: 'test' }],
  ])('of the tree as it was deployed: %s', async (code, changed) => {
    const other = { deployment: { ...deployment, ...changed } }
    await expect(verify(proofOf(line), other)).rejects.toMatchObject(badMint(code))
  })
})

describe('bytes that are no proof', () => {
  const proof = proofOf(line)
  const records = recordsOf(line)

  test.each([
    ['nothing', new Uint8Array()],
    ['another magic', concatBytes(fromHex('16a7beee'), proof.subarray(4))],
    ['a byte short', proof.subarray(0, -1)],
    ['a transaction twice', outpointBeef(world.origin, [...records, ...records.slice(-1)])],
    ['children before parents', outpointBeef(world.origin, [...records].reverse())],
    ['a subject that is not in it', outpointBeef({ txid: 'ab'.repeat(32), vout: 2 }, records)],
    ['an output that the subject has not', outpointBeef({ ...world.origin, vout: 9 }, records)],
  ])('%s', async (_, bytes) => {
    await expect(verify(bytes)).rejects.toMatchObject(refused('BAD_BEEF'))
  })

  test('too many of them', async () => {
    await expect(verify(proof, { maxBytes: proof.length - 1 })).rejects.toMatchObject(refused('TOO_LARGE'))
  })

  test('more inputs than can be held by name, in a few bytes each; outputs are no matter', async () => {
    const padded = (count: { inputs: number; outputs: number }): Uint8Array => {
      const raw = wideTransaction(count)
      return outpointBeef(world.origin, [readTransaction(raw), ...records])
    }
    expect(await verify(padded({ inputs: 1, outputs: 400_000 }))).toMatchObject({ origin: world.origin })
    await expect(verify(padded({ inputs: 500_001, outputs: 1 }))).rejects.toMatchObject(refused('TOO_LARGE'))
    expect(await verify(proof, { maxBytes: proof.length })).toMatchObject({ proven: true })
  })
})

test('a chain tracker that does not answer does not refute the proof', async () => {
  const chainTracker = { isValidRootForHeight: () => Promise.reject(new Error('out of order')) }
  const failure = await verify(proofOf(line), { chainTracker }).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(HeadersError)
  expect(failure).toMatchObject({ code: 'NO_HEADERS', message: expect.stringContaining('out of order') })
})

/** A transaction with as many inputs and outputs of no bytes, written without an object for each. */
function wideTransaction({ inputs, outputs }: { inputs: number; outputs: number }): Uint8Array {
  const ins = [varint(inputs), new Uint8Array(41 * inputs)]
  const outs = [varint(outputs), new Uint8Array(9 * outputs)]
  return concatBytes(Uint8Array.of(1, 0, 0, 0), ...ins, ...outs, new Uint8Array(4))
}
