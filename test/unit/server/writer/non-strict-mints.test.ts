import { isLooseMint } from '../../../../backend/src/graph/topic-rules.js'
import { encodeBeef } from '../../../../backend/src/graph/write-beef.js'
import { concatBytes } from '../../../../backend/src/protocol/bytes.js'
import { verifyNameProof, verifyNode } from '../../../../src/client/verify-name.js'
import {
  beefOf,
  FakeChain,
  type FakeNode,
  type FakeTransaction,
  type MintOverrides,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { NON_STRICT, nonStrictlyUnlocked } from '../../../support/protocol/non-strict-mints.js'
import { useHeaderWorlds } from '../../../support/server/header-world.js'
import { type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// Mints that a block may hold and not every node takes: by the form of their unlocking script. A mined one is
// followed in any form; an unmined one counts only in a form that every node takes (docs/spec/protocol.md, Mints).

const worlds = useHeaderWorlds()
const servers = useServers()

/** A tree whose covenant leaves the version free, with proven coins to pay for unproven mints. */
async function nonStrictWorld() {
  const world = await worlds.start({}, { chain: new FakeChain({ covenantVersion: 1, difficulty: 1 }) })
  const { chain, server, headers } = world
  const coins = Array.from({ length: 60 }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ outputs: coins })
  headers.mine([purse])
  let spent = 0
  const mint = (name: string, from: FakeNode, overrides: MintOverrides = {}): FakeTransaction =>
    chain.mint(name, { from, funding: [{ transaction: purse, vout: spent++ }], ...overrides })
  /** Submits with what stands behind it. What is mined has its path, unless it is to come bare. */
  const submit = async (
    transaction: FakeTransaction,
    before: FakeTransaction[] = [],
    { bare }: { bare?: FakeTransaction } = {},
  ) => {
    const all = [chain.genesis, purse, ...before, transaction].map(({ txid, raw }) => {
      const proof = txid === bare?.txid ? undefined : headers.branch.proof(txid)
      return { raw, ...(proof && { proof }) }
    })
    return await server.submit(encodeBeef(all))
  }
  return { world, chain, mint, submit }
}

const nodeAt = ({ txid, transaction }: FakeTransaction, vout: number): FakeNode => {
  const output = transaction.outputs[vout]
  if (output === undefined) throw new Error(`no output ${vout}`)
  return { satoshis: output.satoshis, lockingScript: output.lockingScript, outpoint: { txid, vout } }
}

const originOf = async (server: TestServer, name: string): Promise<unknown> =>
  ((await server.ask(`/svc/names/origin/${name}`)).json as { outpoint?: string }).outpoint
const nodeOf = async (server: TestServer, domain: string): Promise<unknown> =>
  (await server.ask(`/svc/names/mine/${domain}-`)).json

const NOT_STRICT = {
  status: 400,
  json: { code: 'BAD_BODY', error: expect.stringMatching(/five minimal pushes.* merkle proof.*NOT_STRICT/) },
}

test('the word of an operator is no proof: a non-strict mint is refused, a strict one is taken', async () => {
  const { world, mint, chain } = await nonStrictWorld()
  const { engine } = world.server.node.overlay
  for (const unlocking of NON_STRICT) {
    const { raw } = mint('a', chain.node(''), nonStrictlyUnlocked(unlocking))
    await expect(engine.submitTrusted(raw, ['tm_names'])).rejects.toThrow('NOT_STRICT')
  }
  const { raw } = mint('a', chain.node(''))
  const admitted = { tm_names: { outputsToAdmit: [0, 1, 2] } }
  expect(await engine.submitTrusted(raw, ['tm_names'])).toMatchObject(admitted)
})

test('where nobody is asked about blocks, a merkle path proves nothing of a non-strict mint', async () => {
  const chain = new FakeChain({ covenantVersion: 1, difficulty: 1 })
  const server = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
  await server.take(beefOf(chain.genesis))
  const root = chain.node('')
  for (const unlocking of NON_STRICT) {
    const one = chain.mint('a', { from: root, ...nonStrictlyUnlocked(unlocking) })
    // Of what is only large, a path says that it need not be relayed any more.
    if (unlocking.overrides !== undefined) {
      const unproven = beefOf(one, { proven: false, with: [chain.genesis] })
      expect(await server.submit(unproven)).toMatchObject(NOT_STRICT)
      continue
    }
    for (const beef of [beefOf(one), beefOf(one, { with: [chain.genesis] })])
      expect(await server.submit(beef)).toMatchObject(NOT_STRICT)
    // Nor does it come in behind something else.
    const next = chain.move(one, 2, OPEN_LOCK)
    expect(await server.submit(beefOf(next, { with: [one] }))).toMatchObject(NOT_STRICT)
  }
  const strict = chain.mint('a')
  await server.take(beefOf(strict))
  expect(await originOf(server, 'a')).toBe(strict.outpoint(2))
  const trailing = [{ satoshis: 1, lockingScript: new Uint8Array(10_000_000).fill(0x51) }]
  const large = chain.mint('b', { trailing })
  await server.take(beefOf(large))
  expect(await originOf(server, 'b')).toBe(large.outpoint(2))
})

test('a peer brings mints of every form, and one with 10,001 outputs, where its blocks are known', async () => {
  const { world, chain, mint, submit } = await nonStrictWorld()
  const { headers, server } = world
  let root = chain.node('')
  const minted: [name: string, origin: string][] = []
  for (const [at, unlocking] of NON_STRICT.entries()) {
    const one = mint(String.fromCharCode(97 + at), root, nonStrictlyUnlocked(unlocking))
    headers.mine([one])
    expect(await submit(one)).toMatchObject({ status: 200 })
    minted.push([String.fromCharCode(97 + at), one.outpoint(2)])
    root = nodeAt(one, 0)
  }
  const empty = { satoshis: 0, lockingScript: new Uint8Array() }
  const wide = mint('z', root, { trailing: new Array(9998).fill(empty) })
  headers.mine([wide])
  expect(await submit(wide)).toMatchObject({ status: 200 })
  minted.push(['z', wide.outpoint(2)])
  const { tracker } = world
  const settings = { ...treeOf(chain.deployment), SYNC_PEERS: server.url, SYNC_INTERVAL_MS: '100' }
  const late = await servers.start(settings, { tracker })
  await until(async () => (await originOf(late, 'z')) === wide.outpoint(2), 'the last mint has come')
  for (const [name, origin] of minted) expect(await originOf(late, name)).toBe(origin)
  expect(await nodeOf(late, '')).toEqual({ domain: '', outpoint: wide.outpoint(0) })
  await late.stop()
})

test('a mint with zero bytes after its character leaves the node restated, from which others are mined', async () => {
  const { world, chain, mint, submit } = await nonStrictWorld()
  const { headers } = world
  const zeros = mint('a', chain.node(''), { character: 'a\0' })
  const child = mint('?', nodeAt(zeros, 1), { character: 'b' })
  const coded = mint('c', nodeAt(zeros, 0), {
    ...{ character: 'c\0\0', version: 2 },
    unlockingScript: (right) => concatBytes(right, Uint8Array.of(0x6a)),
  })
  const next = mint('d', nodeAt(coded, 0))
  // No node relays it: the script reads the character as a number, which is not minimal.
  expect(await submit(zeros)).toMatchObject(NOT_STRICT)
  expect(await nodeOf(world.server, '')).toEqual({ domain: '', outpoint: chain.genesis.outpoint(0) })
  headers.mine([zeros, child, coded, next])
  for (const each of [next, child, coded, zeros, zeros])
    expect(await submit(each)).toMatchObject({ status: 200 })
  const { server: again } = await world.restart()
  expect(await nodeOf(again, '')).toEqual({ domain: '', outpoint: next.outpoint(0) })
  for (const name of ['a', 'c', 'b']) expect(await originOf(again, name)).toBeUndefined()
  expect(await originOf(again, 'd')).toBe(next.outpoint(2))
  // A client that checks the name finds the same, also where the child with zero bytes is shown, and spent.
  const { body } = await again.ask('/svc/names/proof/d')
  const { deployment } = chain
  const trust = { deployment, chainTracker: 'scripts only' as const }
  expect(await verifyNameProof({ ...trust, proof: body, name: 'd' })).toMatchObject({
    line: [{ name: 'a\0' }, { name: 'c\0\0' }, { name: 'd' }],
  })
  const { branch } = headers
  const shown = [chain.genesis, zeros, child, coded].map(({ txid, raw }) => {
    const proof = branch.proof(txid)
    return { raw, ...(proof && { proof }) }
  })
  const outpoint = { txid: coded.txid, vout: 0 }
  expect(await verifyNode({ ...trust, beef: encodeBeef(shown), outpoint })).toMatchObject({ domain: '' })
})

test('an output that many spend is read for a node once', () => {
  const { deployment, genesis } = new FakeChain()
  let reads = 0
  const output = {
    ...{ satoshis: 1, bytes: new Uint8Array() },
    get lockingScript() {
      reads++
      return new Uint8Array(100)
    },
  }
  const sources = { transaction: () => ({ ...genesis.transaction, outputs: [output] }) }
  const spender = genesis.transaction
  const others = new Set<string>()
  for (let times = 0; times < 3; times++)
    expect(isLooseMint(spender, { deployment, sources, others })).toBe(false)
  expect([reads, others.size]).toEqual([1, 1])
})

test('without a tree, a node of any counts, as one may be pinned later', () => {
  const chain = new FakeChain()
  const { genesis } = chain
  const sources = { transaction: (txid: string) => (txid === genesis.txid ? genesis.transaction : undefined) }
  const spends = (overrides: MintOverrides): boolean =>
    isLooseMint(chain.mint('a', { from: chain.node(''), ...overrides }).transaction, {
      deployment: undefined,
      sources,
    })
  expect(NON_STRICT.map((each) => spends(nonStrictlyUnlocked(each)))).toEqual(NON_STRICT.map(() => true))
  expect(spends({})).toBe(false)
})
