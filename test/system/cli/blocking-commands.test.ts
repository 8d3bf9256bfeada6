import { useBuiltCli } from '../../support/cli/built-cli.js'
import { type TestServer, useServers } from '../../support/server/test-server.js'

const cli = useBuiltCli()
const servers = useServers()
const ADMIN_TOKEN = 'a-token-of-the-operator'

let server: TestServer
beforeAll(async () => {
  server = await servers.start({ ADMIN_TOKEN })
})

const run = async (args: string[], env: Record<string, string> = { ADMIN_TOKEN }) =>
  await cli.call([...args, '--url', server.url], env)
const linesOf = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
const refused = (code: number, reason: string) => ({
  code,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^minetree: [^\\n]*${reason}[^\\n]*\\n$`)),
})

test('the operator blocks, sees what is blocked, and unblocks from a shell', async () => {
  const blocked = { kind: 'name', name: 'alice', reason: 'because', since: expect.any(String) }
  const block = await run(['block', 'name:alice', '--reason', 'because'])
  expect([block.code, linesOf(block.stdout)]).toEqual([0, [blocked]])
  expect((await server.ask('/svc/names/alice')).status).toBe(451)
  const outpoint = `${'ab'.repeat(32)}_0`
  await run(['block', `outpoint:${outpoint}`, '--reason', 'so'])
  expect(linesOf((await run(['blocked'])).stdout)).toEqual([blocked, expect.objectContaining({ outpoint })])
  expect(linesOf((await run(['unblock', 'name:alice'])).stdout)).toEqual([
    { kind: 'name', name: 'alice', wasBlocked: true },
  ])
  expect((await server.ask('/svc/names/alice')).status).toBe(404)
})

test('is shown what is wrong in one line', async () => {
  expect(await run(['blocked'], {})).toMatchObject(refused(2, 'set ADMIN_TOKEN'))
  expect(await run(['blocked'], { ADMIN_TOKEN: 'another-token-of-some' })).toMatchObject(
    refused(4, '401: this route requires'),
  )
  expect(await run(['block', 'alice', '--reason', 'x'])).toMatchObject(
    refused(2, '"alice" does not start with'),
  )
  expect(await run(['unblock', 'name:ALICE'])).toMatchObject(refused(4, '400: a name must be'))
  expect(await cli.run(['blocked', '--url', 'http://127.0.0.1:2'], { ADMIN_TOKEN })).toMatchObject(
    refused(5, 'does not answer'),
  )
})
