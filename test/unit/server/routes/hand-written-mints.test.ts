import { Transaction } from '@bsv/sdk'
import { deployTree } from '../../../../src/cli/fake-transactions.js'
import { compute } from '../../../support/mining/formulas.js'
import {
  beefOfMint,
  countTo,
  hash256,
  isGood,
  minimalPush,
  push,
  readNode,
  withBit,
  writeNode,
} from '../../../support/mining/hand-written-mint.js'
import { type Environment, type TestServer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const TOPICS = ['tm_names', 'tm_ordinals']
const BITS = 10
/** Of nobody's key. */
const OWNER = Buffer.from(`76a914${'07'.repeat(20)}88ac`, 'hex')

/** A server with a tree deployed as the first start of a local network does. */
async function localNetwork(env: Environment = {}): Promise<TestServer> {
  return await servers.start({ DIFFICULTY: String(BITS), ...env }, { deploy: deployTree })
}

interface Stated {
  genesis: string
  marker: string
  covenantVersion: number
  difficulty: number
  minting: {
    characters: string
    values: Record<string, string>
    work: string
    noncePrefix?: string
    nodeScript: string
    nameScript: string
    unlockingScript: string
    paths: { node: string; transaction: string }
  }
}

async function stated(server: TestServer): Promise<Stated> {
  return (await server.ask('/deployment.json')).json as Stated
}

async function nodeFor(server: TestServer, path: string): Promise<{ domain: string; outpoint: string }> {
  return (await server.ask(path)).json as { domain: string; outpoint: string }
}

async function sourceOf(
  server: TestServer,
  outpoint: string,
): Promise<{ source: Transaction; vout: number }> {
  const [txid = '', vout = ''] = outpoint.split('_')
  const { body } = await server.ask(`/svc/beef/${txid}`)
  return { source: Transaction.fromBEEF([...body], txid), vout: Number(vout) }
}

async function expectMinted(
  server: TestServer,
  name: string,
  { transaction, beef }: ReturnType<typeof beefOfMint>,
) {
  const { status, json } = await server.submit(beef, TOPICS)
  expect({ status, json }).toMatchObject({
    status: 200,
    json: { tm_names: { outputsToAdmit: [0, 1, 2] }, tm_ordinals: { outputsToAdmit: [2] } },
  })
  const origin = `${transaction.id('hex')}_2`
  expect((await server.ask(`/svc/names/origin/${name}`)).json).toMatchObject({ name, outpoint: origin })
  const proof = await server.ask(`/svc/names/proof/${name}`)
  expect([proof.status, proof.body.subarray(0, 4).toString('hex')]).toEqual([200, '16a7beef'])
}

/** One mint, written from service.md 2.6, 2.7 and 4.5 and protocol.md 6 and 7. */
function mintByHand(
  { source, vout }: { source: Transaction; vout: number },
  { character, genesis, marker }: { character: string; genesis: string; marker: string },
): ReturnType<typeof beefOfMint> {
  const [txid = '', index = ''] = genesis.split('_')
  const tree = Buffer.concat([Buffer.from(txid, 'hex').reverse(), Buffer.alloc(4)])
  tree.writeUInt32LE(Number(index), 32)
  const node = readNode(Buffer.from(source.outputs[vout]?.lockingScript.toBinary() ?? []))
  const letter = Buffer.from(character)
  const { nonce, pow } = countTo(BITS, { hash: (tried) => hash256(Buffer.concat([node.pow, letter, tried])) })
  const restated = { ...node, genesis: tree, claimed: withBit(node.claimed, character), pow }
  const child = { ...restated, claimed: Buffer.of(0), domain: node.domain + character }
  const nameOutput = Buffer.concat([
    OWNER,
    Buffer.from([0x00, 0x63]),
    push(Buffer.from('ord')),
    Buffer.of(0x51),
    push(Buffer.from('application/name-claim')),
    Buffer.of(0x00),
    push(Buffer.from(child.domain)),
    Buffer.from([0x68, 0x6a]),
    push(Buffer.from(marker)),
    push(tree),
  ])
  return beefOfMint({
    source,
    vout,
    outputs: [writeNode(restated), writeNode(child), nameOutput],
    unlocking: ({ trailing, preimage }) =>
      Buffer.concat([letter, nonce, OWNER, trailing, preimage].map((item) => minimalPush(item))),
  })
}

test('a local network by default takes mints that are written from the specification alone', async () => {
  const server = await localNetwork()
  const { genesis, marker } = await stated(server)
  for (const name of ['a', 'ab', 'b', 'ab-']) {
    const { domain, outpoint } = await nodeFor(server, `/svc/names/mine/${name}`)
    expect(domain).toBe(name.slice(0, -1))
    const mint = mintByHand(await sourceOf(server, outpoint), { character: name.slice(-1), genesis, marker })
    await expectMinted(server, name, mint)
  }
})

test('version 2 refuses such a mint, whose nonce is for nobody', async () => {
  const server = await localNetwork({ COVENANT_VERSION: '2' })
  const { genesis, marker } = await stated(server)
  const { outpoint } = await nodeFor(server, '/svc/names/mine/a')
  const { beef } = mintByHand(await sourceOf(server, outpoint), { character: 'a', genesis, marker })
  expect((await server.submit(beef, TOPICS)).status).not.toBe(200)
  expect((await server.ask('/svc/names/origin/a')).status).toBe(404)
})

/** Mints a name with what `/deployment.json` says, and nothing else about the tree. */
async function mintAsStated(server: TestServer, name: string): Promise<ReturnType<typeof beefOfMint>> {
  const { minting, difficulty } = await stated(server)
  const path = minting.paths.node.replace('GET ', '').replace('{name}', name)
  const { domain, outpoint } = await nodeFor(server, path)
  const [txid = '', vout = ''] = outpoint.split('_')
  const raw = await server.ask(minting.paths.transaction.replace('GET ', '').replace('{txid}', txid))
  const source = Transaction.fromBinary([...raw.body])
  // Its ancestors, which only a transaction's BEEF needs.
  const whole = (await sourceOf(server, outpoint)).source
  const script = Buffer.from(source.outputs[Number(vout)]?.lockingScript.toBinary() ?? [])
  const { code, claimed, pow } = readNode(script)
  const character = name.slice(-1)
  expect(minting.characters).toContain(character)
  const given = Object.entries(minting.values).filter(([, value]) => /^(?:[0-9a-f]{2})+$/.test(value))
  const constants = Object.fromEntries(given.map(([word, value]) => [word, Buffer.from(value, 'hex')]))
  const owner = OWNER
  const values = {
    ...constants,
    ...{ code, owner, seed: pow, claimed },
    domain: Buffer.from(domain),
    character: Buffer.from(character),
    name: Buffer.from(domain + character),
  }
  const prefix = minting.noncePrefix === undefined ? undefined : compute(minting.noncePrefix, values)
  const solved = countTo(difficulty, {
    ...(prefix && { prefix }),
    hash: (nonce) => compute(minting.work, { ...values, nonce }),
  })
  expect(isGood(solved.pow, difficulty)).toBe(true)
  const node = (parts: Record<string, Buffer>) =>
    compute(minting.nodeScript, { ...values, seed: solved.pow, ...parts })
  return beefOfMint({
    source: whole,
    vout: Number(vout),
    outputs: [
      node({ claimed: withBit(claimed, character) }),
      node({ claimed: Buffer.of(0), domain: values.name }),
      compute(minting.nameScript, values),
    ],
    unlocking: (parts) => compute(minting.unlockingScript, { ...values, nonce: solved.nonce, ...parts }),
  })
}

describe.each([
  ['by default', {}, 1],
  ['of version 2', { COVENANT_VERSION: '2' }, 2],
  ['of version 2 with a TLD', { COVENANT_VERSION: '2', NAME_TLD: 'test' }, 2],
  ['of version 1 with a TLD', { COVENANT_VERSION: '1', NAME_TLD: 'test' }, 1],
])('a local network %s', (_, env, version) => {
  test('takes mints that are written from /deployment.json alone', async () => {
    const server = await localNetwork(env)
    const { covenantVersion, minting } = await stated(server)
    expect(covenantVersion).toBe(version)
    expect(minting.noncePrefix !== undefined).toBe(version === 2)
    for (const name of ['x', 'y', 'xy']) await expectMinted(server, name, await mintAsStated(server, name))
  })
})
