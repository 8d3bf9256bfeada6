import { rm } from 'node:fs/promises'
import { pino } from 'pino'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { openNode } from '../../../../src/server/node.js'
import type { Deploy } from '../../../../src/server/store/pinned-genesis.js'
import { covenantChain } from '../../../support/mining/covenant-mints.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { type Environment, SILENT, treeOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain({ difficulty: 22 })
const genesis = formatOutpoint(chain.deployment.genesis)
const deploy: Deploy = () => ({ genesis: chain.deployment.genesis, beef: beefOf(chain.genesis) })

/** Opens a store, gives the tree that is followed and whether its root is there, and closes it. */
async function opened(dataDir: string, env: Environment = {}, options: { deploy?: Deploy } = {}) {
  const node = await openNode({
    config: readConfig({ DATA_DIR: dataDir, ...env }),
    logger: SILENT,
    ...options,
  })
  try {
    const { deployment } = node.config
    return {
      genesis: deployment && formatOutpoint(deployment.genesis),
      root: (await node.graph.names.liveNode('')) !== undefined,
    }
  } finally {
    await node.close()
  }
}

test('an empty store gets a tree, and keeps it', async () => {
  const folder = await servers.folder()
  expect(await opened(folder, {}, { deploy })).toEqual({ genesis, root: true })
  expect(await opened(folder)).toEqual({ genesis, root: true })
  const another: Deploy = () => {
    throw new Error('there is a tree already')
  }
  expect(await opened(folder, {}, { deploy: another })).toEqual({ genesis, root: true })
})

test('a store whose index is gone, as of a copy, gets no other tree', async () => {
  const folder = await servers.folder()
  await opened(folder, {}, { deploy })
  for (const end of ['', '-wal', '-shm']) await rm(storeFiles(folder).index + end, { force: true })
  const another: Deploy = () => {
    throw new Error('there is a tree already')
  }
  expect(await opened(folder, {}, { deploy: another })).toEqual({ genesis, root: true })
})

test('a store gets none that nobody makes', async () => {
  expect(await opened(await servers.folder())).toEqual({ genesis: undefined, root: false })
})

test('a store that was opened with a tree goes on with it, and gets no other', async () => {
  const folder = await servers.folder()
  const other = new FakeChain({ codeSize: 70 }).deployment
  await opened(folder, { ...treeOf(other), DIFFICULTY: '22' })
  const { NAME_MARKER = '' } = treeOf(other)
  expect(await opened(folder, { NAME_MARKER }, { deploy })).toEqual({
    genesis: formatOutpoint(other.genesis),
    root: false,
  })
})

test('a store that holds something gets no tree', async () => {
  const folder = await servers.folder()
  const server = await servers.start({ DATA_DIR: folder })
  await server.submit(beefOf(chain.inscribe({ body: Uint8Array.of(1) })), ['tm_ordinals'])
  await server.stop()
  expect(await opened(folder, {}, { deploy })).toEqual({ genesis: undefined, root: false })
})

test('where the tree was never stored, another is made', async () => {
  const folder = await servers.folder()
  const lost: Deploy = () => ({ ...deploy(chain.deployment), beef: Uint8Array.of(1) })
  await expect(opened(folder, {}, { deploy: lost })).rejects.toThrow('cannot open the store')
  const other = new FakeChain({ codeSize: 80 })
  const again: Deploy = () => ({ genesis: other.deployment.genesis, beef: beefOf(other.genesis) })
  expect(await opened(folder, {}, { deploy: again })).toEqual({
    genesis: formatOutpoint(other.deployment.genesis),
    root: true,
  })
})

test.each([
  ['GENESIS', `${'ab'.repeat(32)}_0`, `GENESIS: the store in FOLDER holds the tree of ${genesis}, not of`],
  ['DIFFICULTY', '21', 'DIFFICULTY: the store in FOLDER holds a tree with "22", not "21"'],
  ['NAME_MARKER', 'another', 'NAME_MARKER: the store in FOLDER holds a tree with "1NhS'],
  ['NAME_TLD', 'x', 'NAME_TLD: the store in FOLDER holds a tree with "", not "x"'],
])('a store is not opened with another %s', async (name, value, message) => {
  const folder = await servers.folder()
  await opened(folder, {}, { deploy })
  await expect(opened(folder, { [name]: value })).rejects.toMatchObject({
    name: 'ConfigError',
    message: expect.stringContaining(message.replace('FOLDER', folder)),
  })
})

test('the version of a covenant is that of the log, and one line says so where the setting names another', async () => {
  const folder = await servers.folder()
  await opened(folder, { COVENANT_VERSION: '2' }, { deploy })
  const said: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => said.push(line) })
  const versions: (number | undefined)[] = []
  for (const COVENANT_VERSION of ['', '2', '1']) {
    const node = await openNode({ config: readConfig({ DATA_DIR: folder, COVENANT_VERSION }), logger })
    versions.push(node.config.deployment?.covenantVersion)
    await node.close()
  }
  expect(versions).toEqual([2, 2, 2])
  expect(said).toEqual([expect.stringContaining('COVENANT_VERSION: the log says 2')])
})

test.each([1, 2] as const)(
  'a tree of version %i is followed as one under a setting that is wrong, once its root comes',
  async (covenantVersion) => {
    const own = covenantChain({ covenantVersion })
    const server = await servers.start({
      ...treeOf(own.deployment),
      COVENANT_VERSION: String(3 - covenantVersion),
    })
    const version = async () => (await server.ask('/deployment.json')).json
    expect(await version()).toMatchObject({ covenantVersion: 3 - covenantVersion })
    await server.submit(beefOf(own.genesis))
    expect(await version()).toMatchObject({ covenantVersion })
    const mint = own.mint('a', {
      from: own.node(''),
      ...(covenantVersion === 1 && { version: 2, lockTime: 1 }),
    })
    expect((await server.submit(beefOf(mint))).json).toMatchObject({
      tm_names: { outputsToAdmit: [0, 1, 2] },
    })
  },
)
