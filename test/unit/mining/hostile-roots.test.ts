import { concatBytes, fromHex } from '../../../backend/src/protocol/bytes.js'
import {
  claim,
  decodeMineNode,
  encodeMineNode,
  isClaimed,
  UNCLAIMED,
} from '../../../backend/src/protocol/mine-node.js'
import { checkMint, encodeNameOutput } from '../../../backend/src/protocol/mint.js'
import { decodeOutpoint, encodeOutpoint } from '../../../backend/src/protocol/outpoint.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import {
  type CovenantSpend,
  covenantChain,
  covenantMint,
  refusalByCheck,
  refusalByScript,
  refusingPart,
} from '../../support/mining/covenant-mints.js'
import {
  beefOf,
  type FakeChain,
  type FakeOutput,
  type FakeTransaction,
} from '../../support/protocol/fake-chain.js'

// Who deploys a tree writes its root, and the covenant takes a root at its word, as a script sees no past. What keeps
// hostile ones out is that the operator sets the genesis outpoint, and that the index reads nodes strictly.

const A = 'a'.charCodeAt(0)

/** What a host that follows the chain's tree admits of a transaction that spends the coins at `previousCoins`. */
async function admitted(chain: FakeChain, subject: FakeTransaction, previousCoins: number[] = []) {
  const codes: string[] = []
  const { deployment } = chain
  const manager = new NamesTopicManager({ deployment, onRefusal: ({ code }) => codes.push(code) })
  const beef = beefOf(subject, { with: subject === chain.genesis ? [] : [chain.genesis] })
  const { outputsToAdmit } = await manager.identifyAdmissibleOutputs(beef, previousCoins)
  return { outputs: outputsToAdmit, codes }
}

const verdicts = (mint: CovenantSpend) => ({ script: refusingPart(mint), check: refusalByCheck(mint) })

test('with claims from the start: those characters are gone for good, and the others are minted', async () => {
  const chain = covenantChain({ root: { claimed: claim(UNCLAIMED, A) } })
  expect((await admitted(chain, chain.genesis)).outputs).toEqual([0])
  const from = chain.node('')
  expect(verdicts(covenantMint(chain, 'a', { from }))).toEqual({ script: 'character', check: 'CLAIMED' })
  expect(verdicts(covenantMint(chain, 'b', { from }))).toEqual({ script: 'none', check: undefined })
  const mint = chain.mint('b')
  expect((await admitted(chain, mint, [0])).outputs).toEqual([0, 1, 2])
  expect(isClaimed(decodeMineNode(chain.node('').lockingScript).claimed, A)).toBe(true)
})

test('with claims beyond the characters that there are: nothing can ever be minted', () => {
  const chain = covenantChain({ root: { claimed: claim(UNCLAIMED, 128) } })
  expect(refusingPart(covenantMint(chain, 'a', { from: chain.node('') }))).toBe('character')
})

test('with a domain: its names all start with that', async () => {
  const chain = covenantChain({ root: { domain: 'bank' } })
  const mint = covenantMint(chain, 'a', { from: chain.node('') })
  expect(verdicts(mint)).toEqual({ script: 'none', check: undefined })
  expect(checkMint(mint).name).toBe('banka')
})

test('with a seed: the covenant would mint, and the index does not follow', () => {
  const chain = covenantChain({ root: { seed: new Uint8Array(32) } })
  const mint = covenantMint(chain, 'a', { from: chain.node('') })
  expect(verdicts(mint)).toEqual({ script: 'none', check: 'OTHER_TREE' })
})

test('with more than 1 satoshi: the covenant would mint, and the index does not follow', () => {
  const chain = covenantChain()
  const mint = covenantMint(chain, 'a', { from: { ...chain.node(''), satoshis: 2 } })
  expect(verdicts(mint)).toEqual({ script: 'none', check: 'NOT_A_NODE' })
})

test('a node that says it is of a tree: the covenant mints from it, and the index knows that it is not', async () => {
  const chain = covenantChain()
  const forged = { genesis: chain.deployment.genesis, domain: 'b', seed: new Uint8Array(32) }
  const state = { ...decodeMineNode(chain.node('').lockingScript), ...forged }
  const output = { satoshis: 1, lockingScript: encodeMineNode(state) }
  const copy = chain.spend({ inputs: [], outputs: [output] })
  const from = { ...output, outpoint: { txid: copy.txid, vout: 0 } }
  expect(verdicts(covenantMint(chain, 'a', { from }))).toEqual({ script: 'none', check: undefined })
  // The engine names as previous coins only what the topic has admitted, and it admitted no copy.
  expect((await admitted(chain, copy)).outputs).toEqual([])
  const refused = { outputs: [], codes: ['NO_NODE_SPENT'] }
  expect(await admitted(chain, chain.mint('a', { from }), [])).toEqual(refused)
})

describe('with a genesis field of another length', () => {
  const chain = covenantChain()
  const honest = chain.node('')
  const { length: codeSize } = decodeMineNode(honest.lockingScript).code
  const field = fromHex('0102030405')
  // After the code come the OP_RETURN and the first field, then the genesis field; the state is 5 bytes longer.
  const lockingScript = concatBytes(
    honest.lockingScript.subarray(0, codeSize + 2),
    Uint8Array.of(field.length),
    field,
    honest.lockingScript.subarray(codeSize + 3, -5),
    Uint8Array.of(6 + field.length, 0, 0, 0, 0),
  )
  const genesis = decodeOutpoint(concatBytes(field, encodeOutpoint(honest.outpoint)).subarray(0, 36))

  /** A mint from it, with the genesis that the covenant makes of that field. */
  function mintFromIt(): CovenantSpend {
    const ownerLock = new Uint8Array()
    const deployment = { ...chain.deployment, genesis }
    const inOtherTree = ({ lockingScript }: FakeOutput) =>
      encodeMineNode({ ...decodeMineNode(lockingScript), genesis })
    const mint = covenantMint(chain, 'a', {
      ...{ from: honest, nonceFor: genesis, ownerLock },
      outputs: ([restated, child, name, ...rest]) => [
        ...[restated, child].map((node) => ({ satoshis: 1, lockingScript: inOtherTree(node as FakeOutput) })),
        { ...(name as FakeOutput), lockingScript: encodeNameOutput({ ownerLock, name: 'a', deployment }) },
        ...rest,
      ],
      unlocking: (pushes) => {
        const { length } = lockingScript
        const size = Uint8Array.of(0xfd, length & 0xff, length >> 8)
        const [before, after] = [pushes.preimage.subarray(0, 104), pushes.preimage.subarray(-52)]
        return { ...pushes, preimage: concatBytes(before, size, lockingScript, after) }
      },
    })
    return { ...mint, spent: { ...honest, lockingScript } }
  }

  test('the covenant would mint, from a genesis that is no outpoint', () => {
    expect(refusalByScript(mintFromIt())).toBeUndefined()
  })

  test('the index reads no node in it, neither as genesis nor as what a mint spends', async () => {
    const mint = mintFromIt()
    expect(refusalByCheck(mint)).toBe('NOT_A_NODE')
    const deployed = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
    const deployment = { ...chain.deployment, genesis: { txid: deployed.txid, vout: 0 } }
    const manager = new NamesTopicManager({ deployment })
    const { outputsToAdmit } = await manager.identifyAdmissibleOutputs(beefOf(deployed), [])
    expect(outputsToAdmit).toEqual([])
  })
})
