import { encodeBeef } from '../../backend/src/graph/assemble-beef.js'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { blockOfTwo, proofIn } from '../support/block.js'
import { useBuiltCli } from '../support/built-cli.js'
import { FakeChain } from '../support/fake-chain.js'
import { listening } from '../support/other-server.js'
import { ask, posted, submission, treeOf, useServers } from '../support/test-server.js'

// The command as it is installed: what it writes, whatever it is set to and told.

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
    CHAIN_TRACKER: 'http://user:a-password-in-a-url@127.0.0.1:9/',
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
  expect(unanswered.body.toString()).not.toContain('a-password-in-a-url')
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
  for (const secret of [...Object.values(SECRETS), 'a-password-in-a-url'])
    for (const text of [stdout, metrics]) expect(text).not.toContain(secret)
  expect(HARMFUL.test(stdout)).toBe(false)
  const records = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(records).toContainEqual(expect.objectContaining({ code: 'NOT_READY', level: 40 }))
  expect(records).toContainEqual(expect.objectContaining({ url: '/admin/[hidden]?token=[hidden]' }))
  // It is the server's own process, so that it tells of that.
  expect(metrics).toMatch(/^process_resident_memory_bytes [1-9]/m)
  expect(metrics).toMatch(/^nodejs_eventloop_lag_seconds /m)
})

test.each([
  ['resolve', ['resolve', 'alice'], 1],
  ['mine', ['mine', 'alice'], 1],
  ['publish', ['publish', 'package.json'], 4],
])('%s writes in one line what a server says, and no more than text', async (_, args, exit) => {
  const { url, close } = await listening((request, response) => {
    const isDocument = request.url === '/openapi.json'
    const document = { info: { title: 'minetree' }, paths: {} }
    response.writeHead(isDocument ? 200 : 400, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(isDocument ? document : { error: HOSTILE, code: HOSTILE }))
  })
  try {
    const { code, stdout, stderr } = await cli.run([...args, '--url', url], SECRETS)
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' })
    expect(stderr).toMatch(/^minetree: [^\n]+\n$/)
    expect(HARMFUL.test(stderr)).toBe(false)
  } finally {
    await close()
  }
})
