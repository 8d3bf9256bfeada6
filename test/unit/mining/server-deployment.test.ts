import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { TermsOverrides } from '../../../backend/src/protocol/profile.js'
import { serverDeployment } from '../../../src/mining/server-deployment.js'
import { startIndex } from '../../support/client/name-index.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

const servers = useServers()
const { deployment } = new FakeChain({ covenantVersion: 1, tld: 'test' })
const genesis = formatOutpoint(deployment.genesis)

/** A server that describes its tree so. */
const describing = async (body: object): Promise<string> =>
  (await startIndex({ '/deployment.json': { body } })).url

const said = { profile: 'local', network: 'main', genesis, difficulty: 4, marker: 'fake marker', tld: 'test' }

test.each([1, 2] as const)(
  'a server says that its tree has version %i of the covenant',
  async (covenantVersion) => {
    const tree = new FakeChain({ covenantVersion }).deployment
    const { url } = await servers.start(treeOf(tree))
    const { deployment } = await serverDeployment(url)
    expect(deployment).toMatchObject({ covenantVersion, genesis: tree.genesis })
    expect(await serverDeployment(url, { deployment })).toMatchObject({ deployment })
  },
)

test('one that says nothing of it is older, and its tree has version 1', async () => {
  const url = await describing(said)
  expect((await serverDeployment(url)).deployment).toMatchObject({ covenantVersion: 1, tld: 'test' })
  expect((await serverDeployment(url, { deployment })).deployment).toBe(deployment)
})

test.each<[setting: string, terms: TermsOverrides, message: string]>([
  ['COVENANT_VERSION', { covenantVersion: 2 }, 'is 2, and'],
  ['DIFFICULTY', { difficulty: 5 }, 'is 5, and'],
  ['NAME_MARKER', { nameMarker: 'x' }, 'is x, and'],
  ['NAME_TLD', { nameTld: 'x' }, 'is x, and'],
])('%s alone is compared, and nothing that is not set', async (setting, terms, message) => {
  const url = await describing(said)
  await expect(serverDeployment(url, { terms })).rejects.toMatchObject({
    code: 'OTHER_TREE',
    message: expect.stringMatching(`^${setting} ${message} ${url} follows `),
  })
  const same = { covenantVersion: 1, difficulty: 4, nameMarker: 'fake marker', nameTld: 'test' } as const
  expect(await serverDeployment(url, { terms: same })).toMatchObject({ deployment: { difficulty: 4 } })
  expect(await serverDeployment(url, { genesis: deployment.genesis })).toMatchObject({
    deployment: { covenantVersion: 1, difficulty: 4, tld: 'test' },
  })
})

test('another version than is configured is a difference, and a later one has rules that are not known', async () => {
  const url = await describing({ ...said, covenantVersion: 2 })
  await expect(serverDeployment(url, { deployment })).rejects.toMatchObject({
    ...{ code: 'OTHER_TREE', message: `COVENANT_VERSION is 1, and ${url} follows 2` },
  })
  const later = await describing({ ...said, covenantVersion: 3 })
  await expect(serverDeployment(later)).rejects.toMatchObject({
    code: 'NEWER_COVENANT',
    message: `${later} names the covenant version 3 for the tree of ${genesis}, but this release knows 1 and 2: upgrade minetree`,
  })
})

test.each([
  ['a genesis that is no outpoint', { genesis: 'here' }],
  ['a covenant version that is no number', { covenantVersion: '2' }],
  ['covenant version 0', { covenantVersion: 0 }],
  ['covenant version 1.5', { covenantVersion: 1.5 }],
  ['a difficulty of 65', { difficulty: 65 }],
  ['a marker of 256 characters', { marker: 'm'.repeat(256) }],
])('a tree with %s cannot be', async (_, wrong) => {
  const url = await describing({ ...said, ...wrong })
  await expect(serverDeployment(url)).rejects.toMatchObject({ code: 'BAD_INDEX' })
})
