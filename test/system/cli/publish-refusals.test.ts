import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { type Files, writeFiles } from '../../support/cli/commands.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { serving } from '../../support/server/connections.js'
import { HeaderChain } from '../../support/server/header-chain.js'
import { HostTracker } from '../../support/server/host-tracker.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { storedRows } from '../../support/storage/fact-rows.js'

// What cannot be published is said in one line, after how much it is where that is known.

const cli = useBuiltCli()
const servers = useServers()

const folderOf = async (files: Files): Promise<string> => await writeFiles(await servers.folder(), files)

/** Runs a command that has to fail, and gives the one line that it says. */
async function failure(args: string[], env: Record<string, string> = {}, run = cli.call): Promise<string> {
  const { code, stdout, stderr } = await run(['publish', ...args], env)
  expect(stdout).toBe('')
  // Not one code for all: test/system/cli/exit-codes.test.ts has them.
  expect(code).toBeGreaterThan(0)
  expect(stderr).toMatch(/^(?:minetree: publishing [^\n]+\n)?minetree: [^\n]+\n$/)
  return stderr.replace(/^minetree: publishing [^\n]+\n/, '').slice('minetree: '.length, -1)
}

const server = await servers.start({ MAX_BODY_BYTES: '4096', CONTENT_TYPES: 'text/plain' })
const small = await folderOf({ 'a.txt': 'a', 'b.html': 'b' })

test('a path that is not there', async () => {
  const missing = join(small, 'missing')
  expect(await failure([missing])).toContain(`cannot read ${missing}: ENOENT`)
})

test('symbolic links that lead back to where they are, or nowhere', async () => {
  const folder = await folderOf({ 'below/a.txt': 'a' })
  await symlink('..', join(folder, 'below/up'))
  expect(await failure([folder])).toContain(`cannot publish ${join(folder, 'below/up')}: it leads back to`)
  const loop = join(await servers.folder(), 'loop')
  await symlink('loop', loop)
  expect(await failure([loop])).toContain(`cannot read ${loop}: ELOOP`)
})

test('what is neither a file nor a folder', async () => {
  expect(await failure(['/dev/null'])).toBe('cannot publish /dev/null: it is neither a file nor a folder')
})

test('folders that are nested too deep', async () => {
  const folder = await folderOf({ '2/3/4/5/6/7/8/9/a.txt': 'a' })
  expect(await failure([folder, '--url', server.url])).toBe('folders are nested more than 8 levels deep')
})

test('a stream of a folder', async () => {
  expect(await failure([small, '--stream'])).toContain('a stream is made of a file')
})

test.each(['abc', '', '3P14159f73E4gFr7JterCCQh9QjiTjiZrG', '1111111111111111111114oLvT3'])(
  'an owner %j',
  async (owner) => {
    const why = `not a P2PKH address: ${JSON.stringify(owner)}`
    expect(await failure([small, '--owner', owner])).toBe(why)
  },
)

test.each(['0', '-1', '1.5', 'many', '1073741825'])('chunks of %s bytes', async (size) => {
  const { code, stderr } = await cli.run(['publish', small, `--chunk-size=${size}`])
  expect(code).toBe(2)
  expect(stderr).toMatch(/^minetree: option '--chunk-size <bytes>' argument '[^\n]+' is invalid[^\n]+\n$/)
})

test('more than the server takes at once', async () => {
  const { url } = server
  const large = await folderOf({ 'large.txt': 'x'.repeat(3_000_000) })
  const path = join(large, 'large.txt')
  const why = '(413 TOO_LARGE): the body exceeds the limit of 4096 bytes'
  for (const [called, args] of [
    [large, [large]],
    [path, [path]],
    [`chunk 0 of ${path}`, [path, '--stream']],
  ] as const) {
    // As a process: in one with the server, the connection is reset before anybody has read the answer.
    expect(await failure([...args, '--url', url], {}, cli.run)).toBe(`${url} refuses ${called} ${why}`)
  }
})

test('content that the server does not take', async () => {
  const { url } = server
  const why = 'its log says why'
  const page = join(small, 'b.html')
  const one = await failure([page, '--url', url])
  expect(one).toBe(`${url} refuses 1 of 1 outputs of ${page}: ${why}`)
  const all = await failure([small, '--url', url])
  expect(all).toBe(`${url} refuses 2 of 3 outputs of ${small}: ${why}`)
})

test('a chunk that the server does not take, after one that it has', async () => {
  const { url, dataDir } = server
  const path = join(await folderOf({ 'a.txt': 'xy' }), 'a.txt')
  const before = storedRows(dataDir).transactions?.length ?? 0
  expect(await failure([path, '--chunk-size', '1', '--url', url])).toBe(
    `${url} refuses 1 of 1 outputs of chunk 1 of ${path}: its log says why`,
  )
  expect(storedRows(dataDir).transactions?.length).toBeGreaterThan(before)
})

test('a server that does not answer, and what is no URL of one', async () => {
  const { url, close } = await serving(() => {})
  await close()
  expect(await failure([small, '--url', url])).toMatch(new RegExp(`^${url} does not answer: .*ECONNREFUSED`))
  for (const [text, why] of [
    ['nowhere', ''],
    ['ftp://127.0.0.1/', ''],
    ['', ''],
    ['http://127.0.0.1:8080/?x', ', as it has a user, a query or a fragment'],
    ['http://127.0.0.1:8080/#x', ', as it has a user, a query or a fragment'],
  ] as const)
    expect(await failure([small, '--url', text])).toBe(
      `not the URL of a server${why}: ${JSON.stringify(text)}`,
    )
})

test('a live network, by what is set', async () => {
  expect(await failure([small, '--url', server.url], { PROFILE: 'mainnet' })).toBe(
    'PROFILE is mainnet: without --name, only a local network is published to',
  )
})

test('a server that hangs up while it is sent to', async () => {
  const deployment = { profile: 'local', network: 'main' }
  const other = await serving((request, response) => {
    if (request.method === 'GET') response.end(JSON.stringify(deployment))
    else request.socket.destroy()
  })
  expect(await failure([small, '--url', other.url])).toMatch(
    new RegExp(`^${other.url} hung up on \\d+ bytes, which may be too many: .+$`),
  )
})

test.each([
  ['text', 'hello'],
  ['the deployment of another service', '{"profile": "another", "network": "main"}'],
])('a server of another kind, which answers with %s', async (_, answer) => {
  const other = await serving((_request, response) => response.end(answer))
  expect(await failure([small, '--url', other.url])).toBe(`${other.url} is not a minetree server`)
})

test('a server that follows the live network, though it would believe anything', async () => {
  const live = await servers.start({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
  expect(await failure([small, '--url', live.url])).toBe(
    `${live.url} follows the live network: publish to a server of a local network, which accepts fake funding`,
  )
  expect(storedRows(live.dataDir).transactions).toEqual([])
})

test('a server that checks proofs', async () => {
  const tracker = new HostTracker(new HeaderChain())
  const checking = await servers.start(treeOf(new FakeChain().deployment), { tracker })
  expect(await failure([small, '--url', checking.url])).toMatch(
    new RegExp(`^${checking.url} refuses ${small} \\(400 BAD_BODY\\): the transaction could not be verified`),
  )
  expect(storedRows(checking.dataDir).transactions).toEqual([])
})

test('a stream of more transactions than are asked for, before any server hears of it', async () => {
  const folder = await folderOf({ 'large.bin': 'x'.repeat(20_000) })
  const path = join(folder, 'large.bin')
  const many = await failure([path, '--chunk-size', '10', '--url', 'http://127.0.0.1:9'])
  expect(many).toContain('that takes 2,000 transactions, and --max-transactions allows 1,024')
  const few = await failure([path, '--chunk-size', '1000', '--max-transactions', '19', '--url', server.url])
  expect(few).toContain('that takes 20 transactions, and --max-transactions allows 19')
  const { code, stdout, stderr } = await cli.run([
    ...['publish', path, '--chunk-size', '10000', '--max-transactions', '2', '--json'],
    ...['--url', (await servers.start()).url],
  ])
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('minetree: publishing 1 file, 19.5 KiB, in 2 transactions of 20,'),
  })
  expect(JSON.parse(stdout)).toMatchObject({
    transactions: 2,
    bytes: 20_000,
    url: expect.stringMatching(/^http/),
  })
})
