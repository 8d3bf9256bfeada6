import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../../backend/src/protocol/profile.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { HOST_KEY } from '../../../support/server/advertised-host.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const sitesBelow = (zone: string, scheme = 'http') => ({
  name: `${scheme}://{name}.${zone}/`,
  outpoint: `${scheme}://{label}.c.${zone}/`,
})

test('a host says which tree it follows, and by what rules', async () => {
  const { deployment } = new FakeChain({ difficulty: 9, nameMarker: 'a marker', tld: 'test' })
  const { ask, url } = await servers.start(treeOf(deployment))
  const { status, json } = await ask('/deployment.json')
  expect(status).toBe(200)
  expect(json).toEqual({
    ...{ profile: 'local', network: 'main', genesis: formatOutpoint(deployment.genesis), covenantVersion: 2 },
    ...{ difficulty: 9, nameContentType: PROFILES.local.nameContentType, marker: 'a marker' },
    ...{ maxNameLength: 70, tld: 'test' },
    minting: expect.objectContaining({
      isGood: 'read byte by byte from its end, it starts with 9 zero bits',
      noncePrefix: 'first(8, sha256(domain || 0x24 || genesis || sha256(owner)))',
      ...{ transactionVersion: 1, lockTime: 0 },
    }),
    sites: sitesBelow(`localhost:${new URL(url).port}`),
  })
})

test('a host of the live network names the live tree', async () => {
  const { ask } = await servers.start({ PROFILE: 'mainnet', NETWORK: 'test', CHAIN_TRACKER: 'scripts-only' })
  const { genesis, difficulty, nameContentType, nameMarker: marker } = PROFILES.mainnet
  expect((await ask('/deployment.json')).json).toEqual({
    ...{
      profile: 'mainnet',
      network: 'test',
      genesis,
      covenantVersion: 1,
      difficulty,
      nameContentType,
      marker,
    },
    maxNameLength: 255,
    minting: expect.not.objectContaining({ noncePrefix: expect.anything() }),
  })
})

test('a host that follows none names none', async () => {
  const { ask } = await servers.start({ GATEWAY_HOST: 'none' })
  expect((await ask('/deployment.json')).json).toEqual({ profile: 'local', network: 'main' })
})

test.each([
  [{ GATEWAY_HOST: 'sites.test', HOSTING_URL: 'https://names.example/' }, sitesBelow('sites.test', 'https')],
  [{ GATEWAY_HOST: 's.test', HOSTING_URL: 'https://names.example:8443' }, sitesBelow('s.test:8443', 'https')],
])('a host with %j says where sites are', async (settings, sites) => {
  const { ask } = await servers.start(settings)
  expect((await ask('/deployment.json')).json).toMatchObject({ sites })
})

test('a host says where sites are to a client that names a port that is none', async () => {
  const { ask } = await servers.start()
  const { status, json } = await ask('/deployment.json', { headers: { Host: 'localhost:99999' } })
  expect({ status, json }).toMatchObject({ status: 200, json: { sites: sitesBelow('localhost:99999') } })
})

test('a host that advertises itself says under which key and URL', async () => {
  const settings = { SERVER_PRIVATE_KEY: HOST_KEY.toHex(), HOSTING_URL: 'https://names.example/' }
  const { ask } = await servers.start(settings)
  const advertisedAs = { identityKey: HOST_KEY.toPublicKey().toString(), url: 'https://names.example' }
  expect((await ask('/deployment.json')).json).toMatchObject({ advertisedAs })
})
