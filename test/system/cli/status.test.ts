import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { serving } from '../../support/server/connections.js'
import { useServers } from '../../support/server/test-server.js'

const cli = useBuiltCli()
const servers = useServers()
const run = promisify(execFile)

describe('minetree status', () => {
  test('of a node that runs and then is stopped, by its health and its folder', async () => {
    const env = { PORT: '0', DATA_DIR: await servers.folder(), SEED: 'none', GENESIS: `${'ab'.repeat(32)}_0` }
    const running = cli.start(['serve'], env)
    const url = await running.url
    const up = await cli.run(['status', '--url', url], env)
    expect([up.code, up.stderr]).toEqual([0, ''])
    expect(up.stdout).toMatch(new RegExp(`^${url}: ready, minetree \\d+\\.\\d+\\.\\d+\nup: 0 h \\d+ min\n`))
    expect(up.stdout).toContain(`store: ${env.DATA_DIR}, log `)
    expect(up.stdout).toContain(`tree: ${env.GENESIS}`)
    const { store } = JSON.parse((await cli.call(['status', '--url', url, '--json'], env)).stdout)
    // What was committed, and is not in the file itself yet.
    const { size } = statSync(join(env.DATA_DIR, 'log.db-wal'))
    expect(store.logBytes).toBe(statSync(join(env.DATA_DIR, 'log.db')).size + size)
    expect(size).toBeGreaterThan(0)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(0)
    const down = await cli.call(['status', '--url', url, '--json'], env)
    expect(down.code).toBe(5)
    const [status, error] = down.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(status).toMatchObject({ url, state: 'stopped', store: { folder: env.DATA_DIR } })
    expect(status.store.settings.genesis).toBe(env.GENESIS)
    expect(status.store.logBytes).toBeGreaterThan(0)
    expect(status.health).toBeUndefined()
    expect(error).toMatchObject({ code: 'UNAVAILABLE', error: 'the node is stopped' })
  })

  test('where there is no store, nothing is made', async () => {
    const folder = await servers.folder()
    const { code, stdout } = await cli.call([
      ...['status', '--url', 'http://127.0.0.1:2', '--data', join(folder, 'none')],
    ])
    expect(code).toBe(5)
    expect(stdout).toContain(`store: none in ${join(folder, 'none')}`)
    expect((await run('ls', [folder])).stdout).toBe('')
  })

  test('another program that listens there is said to be none', async () => {
    const other = await serving((_request, response) => response.end('{"status":"ok"}'))
    const { code, stderr } = await cli.call(['status', '--url', other.url], {
      DATA_DIR: await servers.folder(),
    })
    expect(stderr).toMatch(/is no minetree node: set --url or PORT\n$/)
    expect(code).toBe(2)
  })

  test('what a node quotes reaches the terminal escaped, and its address may have a path', async () => {
    const health = {
      ...{ version: '1.0.0\u001b[2J', service: { name: 'minetree', uptimeMs: 0 }, index: { state: 'equal' } },
      sources: [{ name: 'junglebus', state: 'failing', lastError: { message: 'no \u001b]0;title\u0007' } }],
    }
    const asked: unknown[] = []
    const node = await serving((request, response) => {
      asked.push(request.url)
      response.end(JSON.stringify(health))
    })
    const env = { DATA_DIR: await servers.folder() }
    const { code, stdout } = await cli.call(['status', '--url', `${node.url}/below/`], env)
    expect(code).toBe(0)
    expect(asked).toEqual(['/below/health'])
    expect(stdout).toContain('source: junglebus, failing: no ')
    expect([...stdout].filter((character) => character < ' ' && character !== '\n')).toEqual([])
    expect(await cli.call(['status', '--url', 'nowhere'])).toMatchObject({
      code: 2,
      stderr: 'minetree: not the URL of a server: "nowhere"\n',
    })
  })
})

describe('minetree complete', () => {
  test.each([
    [['ser'], 'serve'],
    [['serve', '--po'], '--port'],
  ])('of %j has %s', async (typed, expected) => {
    const { code, stdout } = await cli.run(['complete', '--', ...typed])
    expect(code).toBe(0)
    expect(stdout.split('\n').map((line) => line.split('\t')[0])).toContain(expected)
  })

  test.each(['bash', 'zsh', 'fish'])('writes a script for %s', async (shell) => {
    const { code, stdout, stderr } = await cli.run(['complete', shell])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('complete --')
    if (shell === 'bash') await run('bash', ['-n', '-c', stdout])
  })
})
