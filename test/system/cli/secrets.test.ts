import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { PrivateKey } from '@bsv/sdk'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { useServers } from '../../support/server/test-server.js'

// What commands print of their own command line, and what they do with files that are none.

const cli = useBuiltCli()
const servers = useServers()

const PASSWORD = 'hunter2-of-the-user'
const TOKEN = 'tok-0123456789'
const PATH_KEY = 'aVeryLongKeyInThePath0123'
/** A server that answers nonsense, so that errors quote it. */
const broken = createServer((_, response) => response.writeHead(500).end('no')).listen(0, '127.0.0.1')
await once(broken, 'listening')
const { port } = broken.address() as AddressInfo
afterAll(() => broken.close())

const withPassword = (host: string): string => `http://user:${PASSWORD}@${host}`
const FORMS: [what: string, url: (host: string) => string][] = [
  ['a user and a password', withPassword],
  ['a password with signs', (host) => `http://user:${PASSWORD}%40x@${host}/`],
  ['a token for a user', (host) => `http://${TOKEN}@${host}`],
  ['a query', (host) => `http://${host}/?token=${TOKEN}`],
  ['a key in the path', (host) => `http://${host}/v1/${PATH_KEY}/`],
  ['no scheme', (host) => `user:${PASSWORD}@${host}`],
  ['no scheme, and a token for a user', (host) => `${TOKEN}:x@${host}`],
  ['slashes and no scheme', (host) => `//user:${PASSWORD}@${host}`],
  ['a scheme and one slash', (host) => `http:/user:${PASSWORD}@${host}`],
  ['a fragment', (host) => `http://${host}/#${TOKEN}`],
  ['another scheme', (host) => `ftp://user:${PASSWORD}@${host}`],
]
const COMMANDS: [what: string, args: (url: string) => string[]][] = [
  ['resolve --url', (url) => ['resolve', 'alice', '--url', url]],
  ['resolve --url --json', (url) => ['resolve', 'alice', '--url', url, '--json']],
  ['verify --url=', (url) => ['verify', 'alice', `--url=${url}`]],
  ['mine --url', (url) => ['mine', 'alice', '--url', url]],
  ['bind --wallet', (url) => ['bind', 'alice', '--wallet', url, '--url', url]],
  ['advertise --tracker', (url) => ['advertise', '--url', url, '--wallet', url, '--tracker', url]],
  ['mine --arc', (url) => ['mine', 'alice', '--url', url, '--arc', url, '--arc-api-key', TOKEN]],
  ['an option that is none', (url) => ['resolve', 'alice', `--ulr=${url}`]],
  ['publish', (url) => ['publish', import.meta.filename, '--url', url]],
  ['block', (url) => ['block', 'name', 'alice', '--reason', 'x', '--url', url]],
]
const SETTINGS = { HOSTING_URL: 'https://names.example', SERVER_PRIVATE_KEY: '11'.repeat(32) }

/** Every form with a command of its own; at night, with every one. */
const RUNS = FORMS.flatMap(([what, form], at) =>
  COMMANDS.filter((_, other) => IS_NIGHTLY || (at + other) % COMMANDS.length === 0).map(
    ([command, args]) => ({ what, command, args: args(form(`127.0.0.1:${port}`)) }),
  ),
)
test.each([
  ...RUNS,
  ...COMMANDS.slice(0, IS_NIGHTLY ? 5 : 1).map(([command, args]) => ({
    ...{ what: 'a user and a password, at a server that is not there', command },
    args: args(withPassword('127.0.0.1:1')),
  })),
])('an address with $what is not printed with its secret by $command', async ({ args }) => {
  const { code, stdout, stderr } = await cli.call(args, { ...SETTINGS, LOG_LEVEL: 'debug' })
  expect(code).not.toBe(0)
  for (const secret of [PASSWORD, TOKEN, PATH_KEY]) expect(stdout + stderr).not.toContain(secret)
})

const WIF = new PrivateKey(5).toWif()
const HEX = '0123456789abcdef'.repeat(4)

test.each([
  ['for a file', ['bind', 'alice', '--key-file', WIF]],
  ['in hex for a file', ['bind', 'alice', '--key-file', HEX]],
  ['to an option that is none', ['mine', 'alice', `--key=${WIF}`]],
  ['in hex to an option that is none', ['mine', 'alice', `--key=${HEX}`]],
  ['for an address', ['mine', 'alice', '--owner', WIF]],
  ['for a server', ['mine', 'alice', '--url', WIF]],
  ['for a count', ['mine', 'alice', '--max-fee', WIF]],
  ['for coins', ['mine', 'alice', '--key-file', import.meta.filename, '--coins', WIF]],
  ['for a command', [WIF]],
  ['for a copy', ['copy', WIF, WIF]],
  ['for a folder', ['import', WIF]],
  ['right behind an option of one letter', ['mine', 'alice', `-k${WIF}`]],
  ['as the name of an option', ['mine', 'alice', `--${WIF}`]],
  ['in the path of a file', ['bind', 'alice', '--key-file', `./${WIF}/x`]],
  ['with a letter before it', ['mine', 'alice', `--owner=x${WIF}`]],
])('a private key %s is not printed', async (_, args) => {
  const env = { ...SETTINGS, DATA_DIR: await servers.folder(), LOG_LEVEL: 'debug' }
  const { code, stdout, stderr } = await cli.call(args, env)
  expect(code).not.toBe(0)
  for (const key of [WIF, HEX]) expect(stdout + stderr).not.toContain(key)
})

const pipe = async (): Promise<string> => {
  const path = join(await servers.folder(), 'pipe')
  await promisify(execFile)('mkfifo', [path])
  return path
}

/** Whether a process has a file open. */
async function holds(pid: number | undefined, path: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  const open = await readdir(folder).catch(() => [])
  const targets = await Promise.all(open.map((fd) => readlink(join(folder, fd)).catch(() => '')))
  return targets.includes(path)
}

describe('a pipe', () => {
  const begin = (path: string) =>
    cli.start(['bind', 'alice', '--key-file', path, '--url', `http://127.0.0.1:${port}`])

  test.each(['SIGINT', 'SIGTERM'] as const)('without a writer is not waited for after %s', async (signal) => {
    const path = await pipe()
    const { child, ended } = begin(path)
    while (!(await holds(child.pid, path))) await sleep(20)
    child.kill(signal)
    expect((await ended).code).toBe(signal === 'SIGINT' ? 130 : 143)
  })

  test('is read to its end for a key, and not further than a key is long', async () => {
    const path = await pipe()
    const { child, ended } = begin(path)
    while (!(await holds(child.pid, path))) await sleep(20)
    await writeFile(path, `${new PrivateKey(5).toWif()}\n`)
    expect((await ended).stderr).not.toMatch(/does not hold a key|cannot read/)
    const long = begin(path)
    while (!(await holds(long.child.pid, path))) await sleep(20)
    await writeFile(path, 'x'.repeat(1_000_000)).catch(() => undefined)
    expect(await long.ended).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('more than 65536 bytes'),
    })
  })

  test('is not for import, which reads its file twice', async () => {
    const { code, stderr } = await cli.run(['import', await pipe()], { DATA_DIR: await servers.folder() })
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/neither a file nor a folder/)
  })
})
