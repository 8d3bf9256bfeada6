import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { isLoopback, KnownTrees } from '../../../src/cli/known-trees.js'
import { type ServerDeployment, serverDeployment } from '../../../src/mining/server-deployment.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { keptOutput } from '../../support/cli/commands.js'
import { startIndex } from '../../support/client/name-index.js'
import { namedWorld } from '../../support/client/name-proofs.js'
import { sampleOf } from '../../support/nightly.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// Trust on first use: the tree that a server names is remembered, and compared with what it says later.

const cli = useBuiltCli()
const servers = useServers()

const { deployment, line } = namedWorld()
const genesis = formatOutpoint(deployment.genesis)
const OTHER_GENESIS = `${'ab'.repeat(32)}_0`
let server: TestServer

beforeAll(async () => {
  server = await servers.start(treeOf(deployment))
  for (const mint of line) await server.submit(beefOf(mint))
})

/** Another machine, as far as the command can tell: an address of this one that is not the loopback. */
const elsewhere = (url: string): string => url.replace('127.0.0.1', '0.0.0.0')
const fileIn = (config: string): string => join(config, 'minetree/known-trees.json')
const saying = (changed: object) => ({
  '/deployment.json': { change: (json: unknown) => ({ ...(json as object), ...changed }) },
})
const resolving = async (config: string, urls: string[], more: Record<string, string> = {}) =>
  await cli.call(['resolve', 'abc', '--json', '--url', ...urls], { XDG_CONFIG_HOME: config, ...more })
const stopped = (...parts: string[]) => ({
  code: 2,
  stdout: expect.stringContaining('"exitCode":2'),
  stderr: expect.stringMatching(
    new RegExp(
      `^minetree: ${parts.map((part) => `[^\\n]*${part.replace(/[.*+?^$()[\]{}|]/g, '\\$&')}`).join('')}[^\\n]*\\n$`,
    ),
  ),
})

test('a server is trusted once, with a note, and without one from then on', async () => {
  const config = await servers.folder()
  const url = elsewhere(server.url)
  const first = await resolving(config, [url])
  expect(first).toMatchObject({
    code: 0,
    stderr: `minetree: trusting ${url} for the genesis ${genesis} from now on: remembered in ${fileIn(config)}\n`,
  })
  expect(JSON.parse(first.stdout)).toMatchObject({ genesis, genesisFrom: 'servers' })
  const written = await readFile(fileIn(config), 'utf8')
  expect(JSON.parse(written)).toEqual({
    [url]: { profile: 'local', network: 'main', genesis, ...terms() },
  })
  expect((await stat(fileIn(config))).mode & 0o777).toBe(0o600)
  expect((await stat(dirname(fileIn(config)))).mode & 0o777).toBe(0o700)
  const second = await resolving(config, [`${url}/`])
  expect(second).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(second.stdout)).toMatchObject({ genesis, genesisFrom: 'remembered' })
  // Nothing was written again, and no partial file is left.
  expect(await readFile(fileIn(config), 'utf8')).toBe(written)
  expect((await readdir(dirname(fileIn(config)))).sort()).toEqual([
    'known-trees.json',
    'known-trees.json.lock',
  ])
  const verified = await cli.run(['verify', 'abc', '--url', url], { XDG_CONFIG_HOME: config })
  expect(verified.stdout).toContain(
    `genesis  ${genesis}, as remembered from the first contact with the servers\n`,
  )
})

const terms = () => {
  const { COVENANT_VERSION, DIFFICULTY, NAME_MARKER: marker, NAME_TLD: tld } = treeOf(deployment)
  return {
    covenantVersion: Number(COVENANT_VERSION),
    difficulty: Number(DIFFICULTY),
    marker,
    ...(tld !== undefined && { tld }),
  }
}

describe('a server that names something else than it did first', () => {
  test.each(
    sampleOf(
      [
        [
          'another genesis',
          { genesis: OTHER_GENESIS },
          `names GENESIS ${OTHER_GENESIS}, and named ${genesis} before`,
        ],
        ['another covenant', { covenantVersion: 1 }, 'names COVENANT_VERSION 1, and named 2 before'],
        [
          'a covenant of rules to come',
          { covenantVersion: 3 },
          `names the covenant version 3 for the tree of ${genesis}, but this release knows 1 and 2: upgrade`,
        ],
        ['an easier tree', { difficulty: 1 }, 'names DIFFICULTY 1, and named'],
        ['another network', { network: 'test' }, 'names NETWORK test, and named main'],
      ],
      2,
    ),
  )('%s stops the command', async (_, changed, message) => {
    const config = await servers.folder()
    let lie = {}
    const { url } = await startIndex(
      { '/deployment.json': { change: (json) => ({ ...(json as object), ...lie }) } },
      server.url,
    )
    const at = elsewhere(url)
    expect(await resolving(config, [at])).toMatchObject({ code: 0 })
    lie = changed
    const after = await resolving(config, [at])
    const way =
      'covenantVersion' in changed && changed.covenantVersion === 3
        ? []
        : ['set GENESIS or --genesis', `remove ${at} from`]
    expect(after).toMatchObject(stopped(at, message, ...way))
    // The way out that the line names.
    if (!('genesis' in changed)) return
    lie = {}
    expect(await resolving(config, [at], treeOf(deployment))).toMatchObject({ code: 0, stderr: '' })
  })

  test('stops nothing where another one still says the same, and is named', async () => {
    const config = await servers.folder()
    let lie = {}
    const { url } = await startIndex(
      { '/deployment.json': { change: (json) => ({ ...(json as object), ...lie }) } },
      server.url,
    )
    const urls = [elsewhere(url), elsewhere(server.url)]
    expect(await resolving(config, urls)).toMatchObject({ code: 0 })
    expect(Object.keys(JSON.parse(await readFile(fileIn(config), 'utf8')))).toEqual(urls)
    lie = { genesis: OTHER_GENESIS }
    const { code, stderr } = await resolving(config, urls)
    expect(code).toBe(0)
    expect(stderr).toMatch(
      new RegExp(`^minetree: ignoring ${urls[0]} \\(failed\\): [^\\n]*${OTHER_GENESIS}[^\\n]*\\n$`),
    )
  })
})

test('a server that joins later has to follow the tree that is remembered', async () => {
  const config = await servers.folder()
  const known = elsewhere(server.url)
  await resolving(config, [known])
  const other = await startIndex(saying({ genesis: OTHER_GENESIS }), server.url)
  const lying = await resolving(config, [known, elsewhere(other.url)])
  expect(lying.code).toBe(0)
  expect(lying.stderr).toContain(
    `follows the tree of ${OTHER_GENESIS}, but the other servers follow ${genesis}`,
  )
  expect(Object.keys(JSON.parse(await readFile(fileIn(config), 'utf8')))).toEqual([known])
  const honest = await startIndex({}, server.url)
  const joined = await resolving(config, [known, elsewhere(honest.url)])
  expect(joined).toMatchObject({ code: 0, stderr: expect.stringContaining('trusting') })
  expect(Object.keys(JSON.parse(await readFile(fileIn(config), 'utf8')))).toEqual([
    known,
    elsewhere(honest.url),
  ])
})

describe('a file that names no covenant version, or a later one', () => {
  /** What `known-trees.json` has, and then a command reads it. */
  async function withEntry(changed: object) {
    const config = await servers.folder()
    const url = elsewhere(server.url)
    await mkdir(dirname(fileIn(config)))
    const { covenantVersion: _, ...older } = terms()
    const entry = { profile: 'local', network: 'main', genesis, ...older, ...changed }
    await writeFile(fileIn(config), JSON.stringify({ [url]: entry }))
    return { config, url }
  }

  test('was written when there was only version 1', async () => {
    const { config, url } = await withEntry({})
    expect(await new KnownTrees({ XDG_CONFIG_HOME: config }).treeOf(url)).toMatchObject({
      deployment: { covenantVersion: 1 },
    })
    // The server says 2 now: it does not follow that tree any more.
    const mined = await cli.run(['mine', 'q', '--url', url], { XDG_CONFIG_HOME: config })
    expect(mined.code).toBe(2)
    expect(mined.stderr).toContain('names COVENANT_VERSION 2, and named 1 before')
  })

  test('was written by a later release', async () => {
    const { config } = await withEntry({ covenantVersion: 3 })
    const { code, stderr } = await resolving(config, [elsewhere(server.url)])
    expect(code).toBe(2)
    expect(stderr).toContain(`${fileIn(config)} has the covenant version 3 for the tree of ${genesis}`)
    expect(stderr).toContain('upgrade minetree')
  })
})

test.each([
  ['no JSON', '{"http://x": '],
  ['another shape', '{"http://x": {"genesis": "y"}}'],
  ['nothing', ''],
])('a file that is damaged (%s) stops the command, and trusts no server again', async (_, content) => {
  const config = await servers.folder()
  await mkdir(dirname(fileIn(config)))
  await writeFile(fileIn(config), content)
  expect(await resolving(config, [elsewhere(server.url)])).toMatchObject(
    stopped(fileIn(config), 'is damaged'),
  )
  expect(await readFile(fileIn(config), 'utf8')).toBe(content)
})

test('a file that cannot be read stops the command; one that cannot be written is a warning', async () => {
  const unreadable = await servers.folder()
  await mkdir(fileIn(unreadable), { recursive: true })
  expect(await resolving(unreadable, [elsewhere(server.url)])).toMatchObject(stopped('cannot read', 'EISDIR'))
  // A link to nowhere: no folder can be made there, not even by root.
  const unwritable = await servers.folder()
  await symlink('nowhere', join(unwritable, 'minetree'))
  const { code, stderr } = await resolving(unwritable, [elsewhere(server.url)])
  expect(code).toBe(0)
  expect(stderr).toMatch(
    new RegExp(
      `^minetree: trusting [^\\n]* for the genesis ${genesis} this time only, [^\\n]*set GENESIS\\n$`,
    ),
  )
})

describe('what the user configured', () => {
  test('leaves the other rules of the tree to the servers, where they agree', async () => {
    const GENESIS = genesis
    const config = await servers.folder()
    const alone = await resolving(config, [server.url], { GENESIS })
    expect(alone).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(alone.stdout)).toMatchObject({ genesis, genesisFrom: 'settings' })
    const { url } = await startIndex(saying({ difficulty: 60 }), server.url)
    const unlike = await resolving(config, [server.url, url], { GENESIS })
    expect(unlike.stderr).toContain(
      `the servers name different rules for the tree of ${genesis}: set COVENANT_VERSION, DIFFICULTY and NAME_MARKER`,
    )
    const set = await resolving(config, [server.url, url], treeOf(deployment))
    expect(set).toMatchObject({ code: 0 })
    expect(set.stderr).toContain(`DIFFICULTY is ${deployment.difficulty}, and ${url} follows 60`)
  })

  test('decides, where one of two servers contradicts it', async () => {
    const other = await servers.start(treeOf(new FakeChain({ codeSize: 65 }).deployment))
    const { code, stderr } = await resolving(
      await servers.folder(),
      [other.url, server.url],
      treeOf(deployment),
    )
    expect(code).toBe(0)
    expect(stderr).toContain(
      `ignoring ${other.url} (failed): GENESIS is ${genesis}, and ${other.url} follows`,
    )
  })
})

describe('the file', () => {
  const at = (config: string): KnownTrees => new KnownTrees({ XDG_CONFIG_HOME: config })
  const treeSaid = async (): Promise<ServerDeployment> => await serverDeployment(server.url)

  test('is found by the environment', () => {
    expect(new KnownTrees({ XDG_CONFIG_HOME: '/x' }).file.path).toBe('/x/minetree/known-trees.json')
    for (const XDG_CONFIG_HOME of ['', 'relative', undefined])
      expect(new KnownTrees({ XDG_CONFIG_HOME, HOME: '/home/a' }).file.path).toBe(
        '/home/a/.config/minetree/known-trees.json',
      )
  })

  test('gives a tree back as it was said', async () => {
    const trees = at(await servers.folder())
    const said = await treeSaid()
    expect(await trees.treeOf('https://a.example')).toBeUndefined()
    await trees.trust({ url: 'https://a.example/', said, output: keptOutput().output })
    expect(await trees.treeOf('https://a.example')).toEqual(said)
    expect(await trees.treeOf('https://a.example/b')).toBeUndefined()
  })

  test('keeps servers that are trusted at once, each', async () => {
    const trees = at(await servers.folder())
    const said = await treeSaid()
    const { output } = keptOutput()
    const urls = Array.from({ length: 20 }, (_, i) => `https://${i}.example`)
    await Promise.all(urls.map((url) => trees.trust({ url, said, output })))
    for (const url of urls) expect(await trees.treeOf(url)).toEqual(said)
  })
})

test.each([
  ['http://localhost:8080', true],
  ['http://127.0.0.1', true],
  ['http://127.1:80', true],
  ['http://[::1]:1', true],
  ['http://0.0.0.0', false],
  ['http://127.0.0.1.example', false],
  ['http://localhost.example', false],
  ['http://10.0.0.1', false],
])('%s is this machine: %s', (url, expected) => {
  expect(isLoopback(url)).toBe(expected)
})
