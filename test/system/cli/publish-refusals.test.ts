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

const { url, dataDir } = await servers.start({ MAX_BODY_BYTES: '4096', CONTENT_TYPES: 'text/plain' })
const small = await folderOf({ 'a.txt': 'a', 'b.html': 'b', 'xy.txt': 'xy' })
const missing = join(small, 'missing')
const deep = await folderOf({ '2/3/4/5/6/7/8/9/a.txt': 'a' })
const long = join(await folderOf({ 'large.bin': 'x'.repeat(20_000) }), 'large.bin')
const isNone = 'as it has a user, a query or a fragment: "http'

test.each<[what: string, args: string[], says: string]>([
  ['a path that is not there', [missing], `cannot read ${missing}: ENOENT`],
  ['what is neither a file nor a folder', ['/dev/null'], 'it is neither a file nor a folder'],
  ['folders that are nested too deep', [deep, '--url', url], 'folders are nested more than 8 levels deep'],
  ['a stream of a folder', [small, '--stream'], 'only a file can be a stream'],
  ...['abc', '', '3P14159f73E4gFr7JterCCQh9QjiTjiZrG', '1111111111111111111114oLvT3'].map(
    (owner): [string, string[], string] => [
      `the owner ${JSON.stringify(owner)}`,
      [small, '--owner', owner],
      `not a P2PKH address: ${JSON.stringify(owner)}`,
    ],
  ),
  ...['0', '-1', '1.5', 'many', '1073741825'].map((size): [string, string[], string] => [
    `chunks of ${size} bytes`,
    [small, `--chunk-size=${size}`],
    `option '--chunk-size <bytes>' argument '${size}' is invalid`,
  ]),
  ...['nowhere', 'ftp://127.0.0.1/', ''].map((text): [string, string[], string] => [
    `the server ${JSON.stringify(text)}`,
    [small, '--url', text],
    `not the URL of a server: ${JSON.stringify(text)}`,
  ]),
  ['a URL with a query', [small, '--url', 'http://127.0.0.1:8080/?x'], isNone],
  ['a URL with a fragment', [small, '--url', 'http://127.0.0.1:8080/#x'], isNone],
  [
    'a type that the server does not take',
    [join(small, 'b.html'), '--url', url],
    'refuses 1 of 1 outputs of',
  ],
  [
    'a folder with such a file',
    [small, '--url', url],
    `refuses 2 of 4 outputs of ${small}: its log says why`,
  ],
  [
    'too many transactions, before any server hears of it',
    [long, '--chunk-size', '10', '--url', 'http://127.0.0.1:9'],
    'that takes 2,000 transactions, but --max-transactions allows 1,024',
  ],
  [
    'more transactions than are allowed',
    [long, '--chunk-size', '1000', '--max-transactions', '19', '--url', url],
    'that takes 20 transactions, but --max-transactions allows 19',
  ],
])('%s', async (_, args, says) => {
  expect(await failure(args)).toContain(says)
})

test('symbolic links that lead back to where they are, or nowhere', async () => {
  const folder = await folderOf({ 'below/a.txt': 'a' })
  await symlink('..', join(folder, 'below/up'))
  expect(await failure([folder])).toContain(`cannot publish ${join(folder, 'below/up')}: it leads back to`)
  const loop = join(await servers.folder(), 'loop')
  await symlink('loop', loop)
  expect(await failure([loop])).toContain(`cannot read ${loop}: ELOOP`)
})

test('more than the server takes at once', async () => {
  const large = await folderOf({ 'large.txt': 'x'.repeat(3_000_000) })
  const path = join(large, 'large.txt')
  const why = '(413 TOO_LARGE): the body exceeds the limit of 4096 bytes'
  for (const [called, args] of [
    [large, [large]],
    [`chunk 0 of ${path}`, [path, '--stream']],
  ] as const) {
    // As a process: in one with the server, the connection is reset before anybody has read the answer.
    expect(await failure([...args, '--url', url], {}, cli.run)).toBe(`${url} refuses ${called} ${why}`)
  }
})

test('a chunk that the server does not take, after one that it has', async () => {
  const path = join(small, 'xy.txt')
  const before = storedRows(dataDir).transactions?.length ?? 0
  expect(await failure([path, '--chunk-size', '1', '--url', url])).toBe(
    `${url} refuses 1 of 1 outputs of chunk 1 of ${path}: its log says why`,
  )
  expect(storedRows(dataDir).transactions?.length).toBeGreaterThan(before)
})

test('a live network, by what is set, and a server that follows one, though it would believe anything', async () => {
  expect(await failure([small, '--url', url], { PROFILE: 'mainnet' })).toBe(
    'PROFILE is mainnet: without --name, you can publish only to a local network',
  )
  const live = await servers.start({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
  expect(await failure([small, '--url', live.url])).toBe(
    `${live.url} follows the live network: publish to a server of a local network, which accepts fake funding`,
  )
  expect(storedRows(live.dataDir).transactions).toEqual([])
})

test('a server that is gone, that hangs up while it is sent to, or that is another service', async () => {
  const gone = await serving(() => {})
  await gone.close()
  expect(await failure([small, '--url', gone.url])).toMatch(/ does not answer: .*ECONNREFUSED/)
  const hangingUp = await serving((request, response) => {
    if (request.method === 'GET') response.end(JSON.stringify({ profile: 'local', network: 'main' }))
    else request.socket.destroy()
  })
  expect(await failure([small, '--url', hangingUp.url])).toMatch(
    / hung up on \d+ bytes, which may be too many: .+$/,
  )
  for (const answer of ['hello', '{"profile": "another", "network": "main"}']) {
    const other = await serving((_request, response) => response.end(answer))
    expect(await failure([small, '--url', other.url])).toBe(`${other.url} is not a minetree server`)
  }
})

test('a server that checks proofs', async () => {
  const tracker = new HostTracker(new HeaderChain())
  const checking = await servers.start(treeOf(new FakeChain().deployment), { tracker })
  expect(await failure([small, '--url', checking.url])).toMatch(
    new RegExp(`^${checking.url} refuses ${small} \\(400 BAD_BODY\\): the transaction could not be verified`),
  )
  expect(storedRows(checking.dataDir).transactions).toEqual([])
})

test('as many transactions as are allowed are none of that', async () => {
  const most = ['--chunk-size', '10000', '--max-transactions', '2', '--json']
  const { code, stdout, stderr } = await cli.call([
    'publish',
    long,
    ...most,
    '--url',
    (await servers.start()).url,
  ])
  expect(code).toBe(0)
  expect(stderr).toContain('minetree: publishing 1 file, 19.5 KiB, in 2 transactions of 20,')
  expect(JSON.parse(stdout)).toMatchObject({
    transactions: 2,
    bytes: 20_000,
    url: expect.stringMatching(/^http/),
  })
})
