import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { installedPackage } from '../../support/cli/installed-package.js'

// The package as a consumer has it: installed from its tarball, beside other packages and other copies of the SDK.

const ROOT = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)
/** For a test, in milliseconds: the package is built and installed, and suites of minutes run in it. */
const PATIENCE = 900_000

/** What submits, looks up, mints, proves and serves. */
const SUITES = [
  'test/unit/server/submission/conflicts.test.ts',
  'test/unit/server/submission/unsound.test.ts',
  'test/unit/server/routes/names-history.test.ts',
  'test/unit/server/routes/sdk-clients.test.ts',
  'test/unit/plugin',
  'test/unit/mining/fund.test.ts',
  'test/unit/mining/mine-name.test.ts',
  'test/unit/client/name-proof.test.ts',
  'test/unit/client/provenance.test.ts',
  'test/unit/gateway/content',
  'test/system/server/lifecycle.test.ts',
]

/** The versions of a package that are installed in a folder, in any place. */
async function versionsOf(name: string, folder: string): Promise<string[]> {
  const text = await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')
  const { packages } = JSON.parse(text) as { packages: Record<string, { version: string }> }
  const places = Object.entries(packages).filter(([place]) => place.endsWith(`node_modules/${name}`))
  return places.map(([, { version }]) => version)
}

const installed = await installedPackage()
const withRegistry = 'missing' in installed ? describe.skip : describe
const folder = 'missing' in installed ? '' : installed.folder

withRegistry(`the package from its tarball${'missing' in installed ? ` (${installed.missing})` : ''}`, () => {
  test('comes with one copy of the SDK', async () => {
    expect(await versionsOf('@bsv/sdk', folder)).toEqual([expect.stringMatching(/^2\./)])
    expect(await versionsOf('@bsv/overlay', folder)).toEqual([])
  })

  test(
    'passes the suites that submit, look up, mint, prove and serve',
    async () => {
      const env = {
        ...process.env,
        TEST_TIER: 'all',
        INSTALLED_PACKAGE: join(folder, 'node_modules/minetree'),
      }
      const args = [
        'run',
        '--silent',
        'jest',
        '--',
        '-w',
        '1',
        '-c',
        join(import.meta.dirname, 'installed.config.mjs'),
      ]
      const { stderr } = await run('npm', [...args, ...SUITES], { cwd: ROOT, env, maxBuffer: 2 ** 26 })
      expect(stderr).toMatch(/^Tests: +\d+ passed, \d+ total$/m)
    },
    PATIENCE,
  )
})
