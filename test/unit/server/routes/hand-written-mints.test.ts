import { Transaction } from '@bsv/sdk'
import { deployTree } from '../../../../src/cli/fake-transactions.js'
import { compute } from '../../../support/mining/formulas.js'
import { beefOfMint, countTo, isGood, readNode, withBit } from '../../../support/mining/hand-written-mint.js'
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
  minting: Record<'characters' | 'work' | 'nodeScript' | 'nameScript' | 'unlockingScript', string> & {
    values: Record<string, string>
    noncePrefix?: string
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
  const admitted = { tm_names: { outputsToAdmit: [0, 1, 2] }, tm_ordinals: { outputsToAdmit: [2] } }
  expect([status, json]).toMatchObject([200, admitted])
  const origin = `${transaction.id('hex')}_2`
  expect((await server.ask(`/svc/names/origin/${name}`)).json).toMatchObject({ name, outpoint: origin })
  const proof = await server.ask(`/svc/names/proof/${name}`)
  expect([proof.status, proof.body.subarray(0, 4).toString('hex')]).toEqual([200, '16a7beef'])
}

/** Mints a name with what `/deployment.json` says, and nothing else about the tree. */
async function mintAsStated(
  server: TestServer,
  name: string,
  { isForAnybody = false } = {},
): Promise<ReturnType<typeof beefOfMint>> {
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
  const { noncePrefix } = minting
  const prefix = noncePrefix === undefined || isForAnybody ? undefined : compute(noncePrefix, values)
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

test('version 2 refuses a mint whose nonce is for nobody', async () => {
  const server = await localNetwork({ COVENANT_VERSION: '2' })
  const { beef } = await mintAsStated(server, 'a', { isForAnybody: true })
  expect((await server.submit(beef, TOPICS)).status).not.toBe(200)
  expect((await server.ask('/svc/names/origin/a')).status).toBe(404)
})
