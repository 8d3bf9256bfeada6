import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { CommanderError } from 'commander'
import { CommandError, EXIT_CODES, InterruptedError } from '../../../src/cli/command.js'
import { failureOf } from '../../../src/cli/exit-codes.js'
import { ResolutionError } from '../../../src/client/resolve.js'
import { MiningError } from '../../../src/mining/mining-error.js'
import { ConfigError } from '../../../src/server/config/config.js'
import { StartError } from '../../../src/server/config/errors.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { useServers } from '../../support/server/test-server.js'

const cli = useBuiltCli()
const servers = useServers()

test.each<[number, string, Error]>([
  [1, 'FAILED', new CommandError('x')],
  [1, 'INTERNAL', new TypeError('x')],
  [1, 'NO_FUNDS', new MiningError('NO_FUNDS', 'x')],
  [2, 'USAGE', new ConfigError('x')],
  [2, 'USAGE', new CommanderError(1, 'commander.unknownOption', 'x')],
  [2, 'BAD_NAME', new ResolutionError('BAD_NAME', 'x')],
  [3, 'NOT_CLAIMED', new ResolutionError('NOT_CLAIMED', 'x')],
  [3, 'NO_TREE', new MiningError('NO_TREE', 'x')],
  [4, 'TAKEN', new MiningError('TAKEN', 'x')],
  [4, 'REFUSED', new CommandError('x', { exit: 'refused' })],
  [5, 'UNAVAILABLE', new StartError('x')],
  [5, 'NO_ANSWER', new MiningError('NO_ANSWER', 'x')],
  [130, 'INTERRUPTED', new InterruptedError('SIGINT')],
  [143, 'INTERRUPTED', new InterruptedError('SIGTERM')],
])('the process exits with %i, %s', (exitCode, code, error) => {
  expect(failureOf(error)).toMatchObject({ exitCode, code })
})

test('docs/cli.md lists every exit code', async () => {
  const page = await readFile(resolve(import.meta.dirname, '../../../docs/cli.md'), 'utf8')
  const listed = [...page.matchAll(/^\| `(\d+)` \|/gm)].map(([, code]) => Number(code))
  expect(listed).toEqual([...Object.values(EXIT_CODES), 130, 143])
})

test('--version says which version it is', async () => {
  const { version } = JSON.parse(await readFile(join(cli.folder(), 'package.json'), 'utf8'))
  expect(await cli.run(['--version'])).toEqual({ code: 0, signal: null, stdout: `${version}\n`, stderr: '' })
})

test('help says what is required, and is no failure', async () => {
  const { code, stdout, stderr } = await cli.call(['block', '--help'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/--reason <text> +required/)
  expect(stdout).toContain('--json')
  expect((await cli.call([])).code).toBe(2)
})

describe('a failure is one line', () => {
  const failed = async (args: string[], env?: Record<string, string>) => {
    const { code, stdout, stderr } = await cli.call(args, env)
    expect(stderr).toMatch(/^minetree: [^\n]+\n$/)
    return { code, stdout, line: stderr.slice('minetree: '.length, -1) }
  }

  test('of a command line', async () => {
    const line = "unknown command 'serv' (Did you mean serve?)"
    expect(await failed(['serv'])).toEqual({ code: 2, stdout: '', line })
    const missing = await failed(['block', 'name:a'])
    expect(missing).toMatchObject({ code: 2, line: expect.stringContaining('--reason') })
  })

  test('of a setting, and with --json one document on standard output as well', async () => {
    const { code, stdout, line } = await failed(['verify', 'a', '--json'], { PROFIL: 'mainnet' })
    const error = 'PROFIL: unknown setting; did you mean PROFILE?'
    expect({ code, line }).toEqual({ code: 2, line: error })
    expect(JSON.parse(stdout)).toEqual({ error, code: 'USAGE', exitCode: 2 })
  })

  test('of a folder in which SQLite can make no file, with what that means', async () => {
    const folder = await servers.folder()
    await mkdir(join(folder, 'minetree.lock'))
    const { code, line } = await failed(['serve'], { DATA_DIR: folder, PORT: '0' })
    expect(code).toBe(5)
    expect(line).toContain(
      `SQLite cannot open or create ${join(folder, 'minetree.lock')}: is the folder writable?`,
    )
    expect(line).not.toContain('ConnectionFailed')
  })

  test('of a folder that can never be made, at once', async () => {
    expect(await failed(['serve'], { DATA_DIR: '/proc/x/y', PORT: '0' })).toMatchObject({
      ...{ code: 5, line: expect.stringContaining('cannot open the store in /proc/x/y: ENOENT') },
    })
  })

  test('without a stack, which LOG_LEVEL=debug shows', async () => {
    const file = join(await servers.folder(), 'file')
    await writeFile(file, '')
    await failed(['serve'], { DATA_DIR: file, PORT: '0' })
    const { stderr } = await cli.run(['serve'], { DATA_DIR: file, PORT: '0', LOG_LEVEL: 'debug' })
    expect(stderr).toMatch(/^minetree: StartError: cannot open the store [^\n]+\n {4}at /)
  })

  test('that never shows what opens a database', async () => {
    const { line } = await failed(['serve'], {
      ...{ PORT: '0', DATA_DIR: await servers.folder() },
      KNEX_URL: 'mysql://user:a-password@127.0.0.1:9/db?ssl=token-in-a-query',
    })
    expect(line).toContain('mysql://127.0.0.1:9/db')
    expect(line).not.toMatch(/a-password|token-in-a-query/)
  })
})
