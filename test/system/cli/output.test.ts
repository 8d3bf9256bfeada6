import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { CommandOutput } from '../../../src/cli/output.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { blockOfTwo, proofIn } from '../../support/protocol/block.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { serving } from '../../support/server/connections.js'
import { ask, posted, submission, treeOf, useServers } from '../../support/server/test-server.js'

// The command as it is installed: what it writes, with any settings and input.

const cli = useBuiltCli()
const servers = useServers()
const SECRETS = {
  ADMIN_TOKEN: 'a-token-of-the-operator',
  ARC_CALLBACK_TOKEN: 'a-token-of-the-callback',
  SERVER_PRIVATE_KEY: 'c0ffee'.repeat(10),
  ARC_API_KEY: 'mainnet_0123456789abcdef',
}
const HOSTILE = 'gone\x1b[2J\x1b]0;owned\x07\x7f\u009b31m\u202e\u2028\nminetree: all is well'
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for.
const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/u

test('a server writes no secret, and of strangers nothing but text, in one line of JSON each', async () => {
  const chain = new FakeChain()
  const running = cli.start(['serve'], {
    ...SECRETS,
    ...treeOf(chain.deployment),
    PORT: '0',
    DATA_DIR: await servers.folder(),
    CHAIN_TRACKER: 'headers',
    HEADERS_SOURCES: 'junglebus=http://127.0.0.1:9/a-key-in-a-url',
    LOG_LEVEL: 'debug',
    LOG_REQUESTS: 'true',
  })
  const url = await running.url
  // The second of its block: nothing but a coinbase is the first.
  const coin = chain.spend({ inputs: [], outputs: [] })
  const block = blockOfTwo(coin, chain.genesis, 800_000)
  const mined = encodeBeef([{ raw: chain.genesis.raw, proof: proofIn(block, chain.genesis) }])
  const unanswered = await ask(url, '/submit', submission(mined))
  expect(unanswered.status).toBe(503)
  expect(unanswered.body.toString()).not.toContain('a-key-in-a-url')
  for (const secret of Object.values(SECRETS)) {
    const headers = { Authorization: `Bearer ${secret}`, 'X-Request-Id': secret, Cookie: secret }
    const { status } = await ask(url, `/admin/${secret}?token=${secret}`, { headers })
    expect(status).toBe(secret === SECRETS.ADMIN_TOKEN ? 404 : 401)
  }
  await ask(url, '/submit', submission(utf8(HOSTILE), ['tm_names']))
  await ask(url, '/lookup', posted({ service: HOSTILE, query: HOSTILE }))
  const metrics = (await ask(url, '/metrics')).body.toString()
  running.child.kill('SIGTERM')
  const { code, stdout, stderr } = await running.ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const secret of [...Object.values(SECRETS), 'a-key-in-a-url'])
    for (const text of [stdout, metrics]) expect(text).not.toContain(secret)
  expect(HARMFUL.test(stdout)).toBe(false)
  const records = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(records).toContainEqual(expect.objectContaining({ code: 'NOT_READY', level: 40 }))
  expect(records).toContainEqual(expect.objectContaining({ url: '/admin/[hidden]?token=[hidden]' }))
  // The server's own process has it.
  expect(metrics).toMatch(/^process_resident_memory_bytes [1-9]/m)
  expect(metrics).toMatch(/^nodejs_eventloop_lag_seconds /m)
})

/** What a server of a local network answers a client that publishes, before anything is submitted. */
const LOCAL_DEPLOYMENT = JSON.stringify({ profile: 'local', network: 'main' })

test.each([
  ['resolve', ['resolve', 'alice'], 3],
  ['mine', ['mine', 'alice'], 3],
  ['publish', ['publish', 'package.json'], 4],
])('%s writes in one line what a server says, and no more than text', async (command, args, exit) => {
  const { url } = await serving((request, response) => {
    // A client that publishes goes on to submit only where this is a server of a local network.
    const isDeployment = command === 'publish' && request.url === '/deployment.json'
    response.writeHead(isDeployment ? 200 : 400, { 'Content-Type': 'application/json' })
    response.end(isDeployment ? LOCAL_DEPLOYMENT : JSON.stringify({ error: HOSTILE, code: HOSTILE }))
  })
  const { code, stdout, stderr } = await cli.call([...args, '--url', url], SECRETS)
  expect({ code, stdout }).toEqual({ code: exit, stdout: '' })
  expect(stderr).toMatch(/^(?:minetree: publishing [^\n]+\n)?minetree: [^\n]+\n$/)
  expect(HARMFUL.test(stderr)).toBe(false)
})

/** Output to streams, and what was written to each. */
function keptStreams(json = false) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const read = (stream: PassThrough): string => String(stream.read(stream.readableLength) ?? '')
  const output = new CommandOutput({ stdout, stderr, json, env: { NO_COLOR: '1' } })
  return { output, out: () => read(stdout), err: () => read(stderr) }
}

test('a command says in one line that its output cannot be written', () => {
  const main = join(cli.folder(), 'dist/cli/main.js')
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [main, '--help'], {
    ...{ stdio: ['ignore', full, 'pipe'], encoding: 'utf8' },
  })
  closeSync(full)
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'minetree: cannot write its output: ENOSPC: no space left on device, write\n',
  })
})

test('a command goes on when nobody reads what it says any more', async () => {
  const submitted: (string | undefined)[] = []
  const { url } = await serving((request, response) => {
    if (request.method === 'POST') submitted.push(request.url)
    response.writeHead(request.method === 'GET' ? 200 : 400, { 'Content-Type': 'application/json' })
    response.end(request.method === 'GET' ? LOCAL_DEPLOYMENT : '{"error":"no","code":"X"}')
  })
  const { child, ended } = cli.start(['publish', 'package.json', '--url', url])
  child.stderr?.destroy()
  expect((await ended).code).toBe(4)
  expect(submitted).toEqual(['/submit'])
})

describe('a long text', () => {
  const LONG = 'x'.repeat(30_000_000)

  test.each(['note', 'warn'] as const)('is cut in a remark (%s), and what is left out is counted', (kind) => {
    const { output, err } = keptStreams()
    output[kind]('x'.repeat(500))
    output[kind](LONG)
    expect(err()).toBe(
      `minetree: ${'x'.repeat(500)}\nminetree: ${'x'.repeat(500)}… (29,999,500 more characters)\n`,
    )
  })

  test('is cut in an error, in JSON as well', () => {
    const { output, out, err } = keptStreams(true)
    output.fail(LONG, { isExpected: true, code: 'REFUSED', exitCode: 4 })
    const error = `${'x'.repeat(500)}… (29,999,500 more characters)`
    expect(err()).toBe(`minetree: ${error}\n`)
    expect(JSON.parse(out())).toEqual({ error, code: 'REFUSED', exitCode: 4 })
  })

  test('is cut in every line of a stack, of which there are fifty at most', () => {
    const { output, err } = keptStreams()
    const failure = { isExpected: false, code: 'INTERNAL', exitCode: 1 }
    output.fail(Array.from({ length: 1000 }, (_, i) => `${i} ${'x'.repeat(1000)}`).join('\n'), failure)
    const lines = err().trimEnd().split('\n')
    expect(lines).toHaveLength(50)
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(600)
  })

  test('is cut between characters: no pair and no escape is cut in half', () => {
    const { output, err } = keptStreams()
    output.note(`${'x'.repeat(499)}\u{1f600}more`)
    output.note(`${'x'.repeat(497)}\x1bmore`)
    expect(err()).toBe(
      `minetree: ${'x'.repeat(499)}… (6 more characters)\nminetree: ${'x'.repeat(497)}… (5 more characters)\n`,
    )
  })
})

test.each([
  ['publish', ['publish', 'package.json'], {}],
  ['blocked', ['blocked'], { ADMIN_TOKEN: SECRETS.ADMIN_TOKEN }],
])('%s follows no redirect, and reads no endless answer', async (_, args, env) => {
  const asked: string[] = []
  const inside = await serving((request, response) => {
    asked.push(request.url ?? '')
    response.end(LOCAL_DEPLOYMENT)
  })
  const redirecting = await serving((request, response) => {
    response.writeHead(307, { Location: inside.url + (request.url ?? '') }).end()
  })
  const redirected = await cli.run([...args, '--url', redirecting.url], env)
  expect(redirected).toMatchObject({
    code: 5,
    stdout: '',
    stderr: expect.stringContaining('does not answer'),
  })
  expect(asked).toEqual([])
  const endless = await serving((_request, response) => {
    const chunk = Buffer.alloc(65_536, ' ')
    const more = (): void => {
      while (response.write(chunk)) if (response.destroyed) return
    }
    response.on('drain', more)
    more()
  })
  const flooded = await cli.run([...args, '--url', endless.url], env)
  expect(flooded).toMatchObject({
    code: 5,
    stdout: '',
    stderr: expect.stringMatching(/^[^\n]*answered more than \d+ bytes\n$/),
  })
})
