import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import type { ReadBeef } from '../../../backend/src/graph/read-beef.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope } from '../../../backend/src/protocol/inscription.js'
import {
  decodeMineNode,
  encodeMineNode,
  type MineNode,
  UNCLAIMED,
} from '../../../backend/src/protocol/mine-node.js'
import { encodeNameOutput } from '../../../backend/src/protocol/mint.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import NamesTopicManager, {
  type NamesTopicManagerOptions,
} from '../../../backend/src/topic-managers/NamesTopicManager.js'
import {
  beefOf,
  FakeChain,
  type FakeNode,
  type FakeOutput,
  type FakeTransaction,
  type MintOverrides,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

/** What the topic says of a transaction, and which refusals it reported. */
async function judge(
  chain: FakeChain,
  subject: FakeTransaction,
  options: Partial<NamesTopicManagerOptions> & { previousCoins?: number[]; with?: FakeTransaction[] } = {},
) {
  const { previousCoins = [], with: ancestors = [], ...rest } = options
  const refusals: TopicRefusal[] = []
  const onRefusal = (refusal: TopicRefusal): unknown => refusals.push(refusal)
  const manager = new NamesTopicManager({ deployment: chain.deployment, onRefusal, ...rest })
  const beef = beefOf(subject, { with: ancestors })
  const said = await manager.identifyAdmissibleOutputs(beef, previousCoins, undefined, 'current-tx')
  const { outputsToAdmit, coinsToRetain } = said
  expect(coinsToRetain).toEqual(previousCoins)
  for (const refusal of refusals) expect(refusal).toMatchObject({ topic: 'tm_names', txid: subject.txid })
  return { admitted: outputsToAdmit, codes: refusals.map(({ code }) => code) }
}

const refused = (code: string) => ({ admitted: [], codes: [code] })
const ADMITTED = { admitted: [0, 1, 2], codes: [] }
/** Of a mint that leaves no name behind. */
const ONLY_RESTATED = { admitted: [0], codes: ['NO_NAME'] }

/** A coin locked to a copy of a node that says what the forger likes. */
function nodeCopy(node: FakeNode, state: Partial<MineNode>): FakeOutput {
  return { satoshis: 1, lockingScript: encodeMineNode({ ...decodeMineNode(node.lockingScript), ...state }) }
}

const asNode = (transaction: FakeTransaction, vout: number): FakeNode => {
  const output = transaction.transaction.outputs[vout]
  if (output === undefined) throw new RangeError(`no output ${vout}`)
  const { satoshis, lockingScript } = output
  return { satoshis, lockingScript, outpoint: { txid: transaction.txid, vout } }
}

describe('the genesis', () => {
  test('is admitted, and nothing else of its transaction', async () => {
    const chain = new FakeChain()
    expect(chain.genesis.transaction.outputs).toHaveLength(2)
    expect(await judge(chain, chain.genesis)).toEqual({ admitted: [0], codes: [] })
  })

  test('is not what only looks like it', async () => {
    const chain = new FakeChain()
    const copy = chain.spend({ outputs: [chain.node('')] })
    expect(await judge(chain, copy)).toEqual(refused('NO_NODE_SPENT'))
  })

  test.each([1, 2])('is refused where the outpoint set for it is no node: output %i', async (vout) => {
    const chain = new FakeChain()
    const deployment = { ...chain.deployment, genesis: { txid: chain.genesis.txid, vout } }
    expect(await judge(chain, chain.genesis, { deployment })).toEqual(refused('NOT_A_NODE'))
  })

  test('is needed: without one, nothing is admitted', async () => {
    const chain = new FakeChain()
    const none = { deployment: undefined }
    expect(await judge(chain, chain.genesis, none)).toEqual(refused('NO_GENESIS'))
    const mint = chain.mint('a')
    expect(await judge(chain, mint, { ...none, previousCoins: [0] })).toEqual(refused('NO_GENESIS'))
  })

  test('is the live network’s where nothing is said', async () => {
    const text = await new NamesTopicManager().getDocumentation()
    expect(text).toContain('58b7558ea379f24266c7e2f5fe321992ad9a724fd7a87423ba412677179ccb25_0')
    expect(text).toContain('difficulty 22')
  })
})

describe('a mint', () => {
  test.each([0, 1, 2])('is admitted with the node as input %i', async (nodeInputPosition) => {
    const chain = new FakeChain({ tld: 'test' })
    const funding = [chain.madeUpCoin(), chain.madeUpCoin()]
    const mint = chain.mint('a', { funding, nodeInputPosition })
    expect(await judge(chain, mint, { previousCoins: [nodeInputPosition] })).toEqual(ADMITTED)
  })

  test('is admitted from the root, from a restated node and from a child', async () => {
    const chain = new FakeChain()
    for (const mint of [...chain.mintAll('abc'), ...chain.mintAll('abd'), ...chain.mintAll('b-0')])
      expect(await judge(chain, mint, { previousCoins: [0] })).toEqual(ADMITTED)
  })

  test('may be paid for by names, which are retained', async () => {
    const chain = new FakeChain()
    const [a, b] = [chain.mint('a'), chain.mint('b')]
    const funding = [a, b].map((transaction) => ({ transaction, vout: 2 }))
    const mint = chain.mint('c', { funding, nodeInputPosition: 1 })
    expect(await judge(chain, mint, { previousCoins: [2, 0, 1] })).toEqual(ADMITTED)
  })

  test('is admitted up to a name of 255 characters', async () => {
    const chain = new FakeChain({ difficulty: 0, codeSize: 2 })
    const mints = chain.mintAll('a'.repeat(256)).slice(-2)
    const [last, beyond] = mints
    if (!last || !beyond) throw new Error('no mints')
    expect(await judge(chain, last, { previousCoins: [0] })).toEqual(ADMITTED)
    expect(await judge(chain, beyond, { previousCoins: [0] })).toEqual(ONLY_RESTATED)
  })

  test('has the restated node alone admitted where zero bytes follow the character', async () => {
    const chain = new FakeChain()
    const mint = chain.mint('a', { character: 'a\0' })
    expect(await judge(chain, mint, { previousCoins: [0] })).toEqual(ONLY_RESTATED)
  })

  test('that spends nothing known here is refused', async () => {
    const chain = new FakeChain()
    expect(await judge(chain, chain.mint('a'))).toEqual(refused('NO_NODE_SPENT'))
  })

  test('with a second node among its inputs is refused', async () => {
    const chain = new FakeChain()
    chain.mint('a')
    const other = chain.node('a').outpoint
    const mint = chain.mint('b', { funding: [other] })
    expect(await judge(chain, mint, { previousCoins: [0, 1] })).toEqual(refused('MORE_THAN_ONE_NODE'))
  })
})

describe('a broken mint is refused:', () => {
  // Each rule of a mint: test/unit/protocol/mint.test.ts.
  test.each<[string, MintOverrides, string]>([
    ['too little work', { badWork: true }, 'BAD_WORK'],
    ['no output 2', { outputs: (outputs) => outputs.slice(0, 2) }, 'BAD_OUTPUT'],
    ['an unlocking script of another kind', { unlockingScript: () => Uint8Array.of(0x51) }, 'BAD_UNLOCKING'],
  ])('%s', async (_, overrides, code) => {
    const chain = new FakeChain()
    const mint = chain.mint('a', overrides)
    const asked = { previousCoins: [0], with: [chain.genesis] }
    expect(await judge(chain, mint, asked)).toEqual(refused(code))
  })

  test('a character that was claimed', async () => {
    const chain = new FakeChain()
    chain.mint('a')
    const again = chain.mint('a', { from: chain.node('') })
    expect(await judge(chain, again, { previousCoins: [0] })).toEqual(refused('CLAIMED'))
  })

  test('the tree of somebody else', async () => {
    const chain = new FakeChain()
    const other = new FakeChain({ codeSize: 65 })
    other.mint('a')
    const mint = other.mint('b')
    expect(await judge(chain, mint, { previousCoins: [0] })).toEqual(refused('OTHER_TREE'))
  })
})

describe('a forgery is never admitted:', () => {
  test('a copy of a node that says something else, and what is mined from it', async () => {
    const chain = new FakeChain()
    chain.mint('a')
    const state = { domain: 'ban', claimed: UNCLAIMED }
    const copy = chain.spend({ outputs: [nodeCopy(chain.node('a'), state)] })
    expect(await judge(chain, copy)).toEqual(refused('NO_NODE_SPENT'))
    const mint = chain.mint('bank', { from: asNode(copy, 0) })
    expect(await judge(chain, mint, { with: [copy] })).toEqual(refused('NO_NODE_SPENT'))
  })

  test('a transferred name locked to a copy of a node, and what is mined from that', async () => {
    const chain = new FakeChain()
    const name = chain.mint('a')
    const outputs = [nodeCopy(chain.node('a'), { domain: 'ban', claimed: UNCLAIMED })]
    const copy = chain.spend({ inputs: [{ transaction: name, vout: 2 }], outputs })
    // The name is a coin of the topic; its transfer is none.
    expect(await judge(chain, copy, { previousCoins: [0], with: [name] })).toEqual(refused('NO_NODE_SPENT'))
    const mint = chain.mint('bank', { from: asNode(copy, 0) })
    expect(await judge(chain, mint, { with: [copy] })).toEqual(refused('NO_NODE_SPENT'))
  })

  test('a name spent as though it were a node', async () => {
    const chain = new FakeChain()
    const name = chain.mint('a')
    const pretended = nodeCopy(chain.node('a'), { domain: 'ban', claimed: UNCLAIMED })
    const mint = chain.mint('bank', { from: { ...pretended, outpoint: { txid: name.txid, vout: 2 } } })
    for (const ancestors of [[], [name]]) {
      const asked = { previousCoins: [0], with: ancestors }
      expect(await judge(chain, mint, asked)).toEqual(refused('NO_NODE_SPENT'))
    }
  })

  test('a name beside a node copy that stands where a mint has its node', async () => {
    const chain = new FakeChain()
    const name = chain.mint('a')
    const state = { domain: 'ban', claimed: UNCLAIMED }
    const copy = chain.spend({ outputs: [nodeCopy(chain.node('a'), state)] })
    const mint = chain.mint('bank', { from: asNode(copy, 0), funding: [{ transaction: name, vout: 2 }] })
    const asked = { previousCoins: [1], with: [copy, name] }
    expect(await judge(chain, mint, asked)).toEqual(refused('NO_NODE_SPENT'))
  })

  test('another output of the genesis transaction, locked to a node', async () => {
    const chain = new FakeChain()
    const outpoint = { txid: chain.genesis.txid, vout: 1 }
    const mint = chain.mint('a', { from: { ...chain.node(''), outpoint } })
    expect(await judge(chain, mint, { previousCoins: [0] })).toEqual(refused('NO_NODE_SPENT'))
  })

  test('an envelope of a name with the genesis in its tail, and no lineage', async () => {
    const chain = new FakeChain()
    const { deployment } = chain
    const name = encodeNameOutput({ ownerLock: p2pkh(1), name: 'a', deployment })
    const node = chain.node('')
    const forged = chain.spend({ outputs: [node, node, name] })
    expect(await judge(chain, forged)).toEqual(refused('NO_NODE_SPENT'))
  })

  test('an envelope in the owner’s lock is no reason to refuse a mint', async () => {
    const chain = new FakeChain()
    const { deployment } = chain
    const decoy = encodeEnvelope({ contentType: deployment.nameContentType, body: utf8('bank') })
    const mint = chain.mint('a', { ownerLock: concatBytes(p2pkh(1), decoy) })
    expect(await judge(chain, mint, { previousCoins: [0] })).toEqual(ADMITTED)
  })
})

describe('the node that a mint spends', () => {
  /** A mint whose preimage says that a node is something else than it is. */
  function lie(name: string, state: Partial<MineNode>) {
    const chain = new FakeChain()
    const parent = chain.mint('a')
    const node = chain.node('')
    const mint = chain.mint(name, { from: { ...nodeCopy(node, state), outpoint: node.outpoint } })
    return { chain, parent, mint }
  }
  const LIES: [what: string, name: string, state: Partial<MineNode>][] = [
    ['the claimed characters', 'a', { claimed: UNCLAIMED }],
    ['the seed', 'b', { seed: new Uint8Array(32).fill(7) }],
    ['the domain', 'b', { domain: 'x' }],
  ]

  test.each(LIES)('is the BEEF’s, whatever the preimage says of %s', async (_, name, state) => {
    const { chain, parent, mint } = lie(name, state)
    const asked = { previousCoins: [0], with: [parent] }
    expect(await judge(chain, mint, asked)).toEqual(refused('BAD_UNLOCKING'))
  })

  test.each(LIES)('is the store’s where no BEEF has it, else the preimage’s: %s', async (_, name, state) => {
    const { chain, parent, mint } = lie(name, state)
    const { store } = await openStore()
    // Scripts were verified.
    expect(await judge(chain, mint, { previousCoins: [0], store })).toEqual(ADMITTED)
    await store.record([parent])
    expect(await judge(chain, mint, { previousCoins: [0], store })).toEqual(refused('BAD_UNLOCKING'))
  })

  test('is requested through GASP for a mint, at any input position', async () => {
    const chain = new FakeChain()
    const manager = new NamesTopicManager({ deployment: chain.deployment })
    const { txid } = chain.mint('a')
    for (const nodeInputPosition of [0, 1]) {
      const mint = chain.mint('b', { from: chain.node(''), nodeInputPosition })
      expect(await manager.identifyNeededInputs(beefOf(mint))).toEqual([{ txid, outputIndex: 0 }])
      expect(await manager.identifyNeededInputs(Array.from(beefOf(mint)))).toHaveLength(1)
    }
  })

  test('is not asked for by transactions that cannot belong to the tree', async () => {
    const chain = new FakeChain()
    const manager = new NamesTopicManager({ deployment: chain.deployment })
    const name = chain.mint('a')
    const outputs = [{ satoshis: 1, lockingScript: p2pkh(2) }]
    const transfer = chain.spend({ inputs: [{ transaction: name, vout: 2 }], outputs })
    const asName = chain.mint('b', { from: { ...chain.node(''), outpoint: parseOutpoint(name.outpoint(2)) } })
    const broken = chain.mint('b', { badWork: true })
    for (const unrelated of [chain.spend({ outputs }), transfer, asName, broken])
      await expect(manager.identifyNeededInputs(beefOf(unrelated))).rejects.toThrow('can spend a node')
    const none = new NamesTopicManager({ deployment: undefined })
    await expect(none.identifyNeededInputs(beefOf(chain.genesis))).rejects.toThrow('no genesis')
  })
})

test('bytes that are no BEEF are the sender’s fault', async () => {
  const manager = new NamesTopicManager({ deployment: new FakeChain().deployment })
  for (const bytes of [[], [1, 0, 0xbe], new Uint8Array(40)])
    await expect(manager.identifyAdmissibleOutputs(bytes, [])).rejects.toMatchObject({ code: 'BAD_BEEF' })
})

test('a dry run of an engine decides the same, remembers nothing and reports nothing', async () => {
  const chain = new FakeChain()
  const mint = chain.mint('a')
  const refusals: TopicRefusal[] = []
  const seen = new Set<string>()
  const submissions = {
    see: ({ subject }: ReadBeef) => void seen.add(subject.txid),
    refuse: (txid: string) => void seen.delete(txid),
  }
  const manager = new NamesTopicManager({
    ...{ deployment: chain.deployment, store: Object.assign((await openStore()).store, { submissions }) },
    onRefusal: (refusal) => refusals.push(refusal),
  })
  const plain = chain.spend({ outputs: [{ satoshis: 5, lockingScript: p2pkh(1) }] })
  const judge = async (subject: FakeTransaction, dryRun: boolean): Promise<number[]> => {
    const beef = Array.from(beefOf(subject, { with: [chain.genesis] }))
    const said = await manager.identifyAdmissibleOutputs(beef, [], undefined, 'current-tx', { dryRun })
    return said.outputsToAdmit
  }
  expect([await judge(mint, true), await judge(plain, true)]).toEqual([[0, 1, 2], []])
  expect([seen, refusals]).toEqual([new Set(), []])
  expect(await judge(mint, false)).toEqual([0, 1, 2])
  expect(seen).toEqual(new Set([mint.txid]))
  expect(await judge(mint, true)).toEqual([0, 1, 2])
  expect(seen).toEqual(new Set([mint.txid]))
  manager.abortAdmissibleOutputs(beefOf(mint))
  expect(seen).toEqual(new Set())
})
