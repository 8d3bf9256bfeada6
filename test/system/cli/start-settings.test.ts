import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { builtPackage } from '../../support/cli/built-package.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const main = join(await builtPackage(), 'dist/cli/main.js')

/** Runs a command that ends by itself, in a folder. */
async function run(cwd: string, args: string[], env: Record<string, string> = {}) {
  const { PATH = '' } = process.env
  const options = { cwd, env: { PATH, HOME: cwd, ...env } }
  return await promisify(execFile)(process.execPath, [main, ...args], options).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      stdout,
      stderr,
    }),
  )
}

describe('minetree.env in the folder of a start', () => {
  test('has settings, which the environment and the options replace', async () => {
    const folder = await servers.folder()
    await writeFile(join(folder, 'minetree.env'), 'HOST=256.0.0.1\nPORT=70000\nDATA_DIR=from-file\n')
    const started = (args: string[], env = {}) => run(folder, ['serve', ...args], env)
    expect((await started([])).stderr).toMatch(/^minetree: PORT: must be a whole number .* not 70000\n$/)
    expect((await started([], { PORT: '70001' })).stderr).toContain('not 70001')
    expect((await started(['--port', '70002'], { PORT: '70001' })).stderr).toContain('not 70002')
    await mkdir(join(folder, 'from-option'))
    await writeFile(join(folder, 'from-option/log.db'), 'garbage '.repeat(2000))
    const { stderr } = await started(['--port', '0', '--data', 'from-option'])
    expect(stderr).toContain('the store in from-option is damaged')
  })

  test('of a stranger says to commands of names and money where the node listens, and nothing else', async () => {
    const folder = await servers.folder()
    const theirs = join(folder, 'theirs')
    const settings = `PORT=1\nXDG_DATA_HOME=${theirs}\nNODE_OPTIONS=--require=${theirs}\nCHAIN_TRACKER=none\n`
    await writeFile(join(folder, 'minetree.env'), settings)
    expect(await run(folder, ['payments'])).toMatchObject({ code: 0, stderr: '' })
    expect((await readdir(folder)).sort()).toEqual(['.local', 'minetree.env'])
    const { stderr } = await run(folder, ['resolve', 'alice'])
    expect(stderr).toContain('http://127.0.0.1:1')
    expect((await run(folder, ['check'])).stderr).toMatch(/^minetree: CHAIN_TRACKER: /)
  })

  test('that cannot be read is said in one line', async () => {
    const folder = await servers.folder()
    await mkdir(join(folder, 'minetree.env'))
    const { code, stderr } = await run(folder, ['serve'])
    expect(stderr).toMatch(/^minetree: minetree\.env cannot be read: .*\n$/)
    expect(code).toBe(2)
  })

  test('is not passed over where a line is no setting, and the line is not shown', async () => {
    const folder = await servers.folder()
    await writeFile(join(folder, 'minetree.env'), 'SEED=none\nADMIN_TOKEN a-long-secret-token\n')
    expect(await run(folder, ['serve', '--port', '0'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'minetree: minetree.env: line 2 is not NAME=value: correct or remove it\n',
    })
  })
})

describe('a start that fails says what to do, in one line', () => {
  test.each<[string, string[], RegExp]>([
    ['an address that this machine lacks', ['--host', '192.0.2.1'], /no such address: choose one/],
    ['a host without an address', ['--host', 'nowhere.invalid'], /no host has this name: correct it/],
    ['a file for the folder', ['--data', 'file'], /a file is in its place: choose another folder/],
  ])('%s', async (_, args, said) => {
    const folder = await servers.folder()
    await writeFile(join(folder, 'file'), '')
    const { code, stderr } = await run(folder, ['serve', '--port', '0', ...args], { SEED: 'none' })
    expect(stderr).toMatch(said)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(code).toBe(5)
  })

  const isRoot = process.getuid?.() === 0
  ;(isRoot ? test.skip : test)('a folder of somebody else', async () => {
    const folder = await servers.folder()
    await mkdir(join(folder, 'closed'))
    await chmod(join(folder, 'closed'), 0o500)
    const { stderr } = await run(folder, ['serve', '--port', '0', '--data', 'closed/data'])
    expect(stderr).toMatch(/no permission: grant it/)
  })

  test('a Node.js that is too old', async () => {
    const folder = await servers.folder()
    const start = (await readFile(main, 'utf8')).replaceAll('process.versions.node', '"18.20.4"')
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'start.js'), start)
    const ended = await promisify(execFile)(process.execPath, ['start.js'], { cwd: folder }).catch(
      (error) => error,
    )
    expect([ended.code, ended.stderr]).toEqual([
      2,
      'minetree: this is Node.js 18.20.4: install 20.12 or later\n',
    ])
  })
})
