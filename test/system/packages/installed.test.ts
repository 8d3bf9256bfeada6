import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { dependencies } from '../../support/cli/installed-package.js'
import { installedBeside } from '../../support/plugin/installed-beside.js'
import { startServerProcess } from '../../support/server/server-process.js'
import { testAtNight } from '../../support/tests-at-night.js'

// The package as a consumer has it: installed from its tarball, beside other packages and other copies of the SDK.

const ROOT = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)
/** For a test, in milliseconds: the package is built and installed, and suites of minutes run in it. */
const PATIENCE = 900_000

/** What submits, looks up, mints, proves and serves. */
const SUITES = [
  'test/unit/server/writer/unsound.test.ts',
  'test/unit/server/routes/names-history.test.ts',
  'test/unit/server/routes/sdk-clients.test.ts',
  'test/unit/plugin/overlay-express.test.ts',
  'test/unit/mining/fund.test.ts',
  'test/unit/client/name-proof.test.ts',
  'test/unit/client/provenance.test.ts',
  'test/unit/gateway/content/content.test.ts',
]

/** The versions of a package that are installed, in any place. */
async function versionsOf(name: string): Promise<string[]> {
  const text = await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')
  const { packages } = JSON.parse(text) as { packages: Record<string, { version: string }> }
  const places = Object.entries(packages).filter(([place]) => place.endsWith(`node_modules/${name}`))
  return places.map(([, { version }]) => version)
}

const installed = await installedBeside('0.8')
const withRegistry = 'missing' in installed ? describe.skip : describe
const folder = 'missing' in installed ? '' : installed.folder

/** Mints with a key and coins of the SDK that this program depends on. */
const MINT = `
import { LockingScript, MerklePath, P2PKH, PrivateKey, Transaction } from '@bsv/sdk'
import * as mining from 'minetree/mining'
import * as payments from 'minetree/payments'
const key = new PrivateKey(5)
const own = new P2PKH().lock(key.toAddress())
const proven = (satoshis, lockingScript) => {
  const transaction = new Transaction(1, [], [{ satoshis, lockingScript }], 0)
  transaction.merklePath = new MerklePath(7, [[{ offset: 0, hash: transaction.id('hex'), txid: true }]])
  return transaction
}
const lockingScript = mining.rootLock(mining.termsOf(mining.PROFILES.local, { difficulty: 8 }))
const source = proven(1, LockingScript.fromBinary([...lockingScript]))
const genesis = { txid: source.id('hex'), vout: 0 }
const deployment = mining.deploymentOf(mining.PROFILES.local, { genesis, difficulty: 8 })
const ownerLock = Uint8Array.from(own.toBinary())
const noncePrefix = mining.ownerCommitment({ domain: '', ownerLock, deployment })
const search = { seed: new Uint8Array(), character: 'q', difficulty: 8, noncePrefix, workers: 1 }
const { nonce } = await mining.searchNonce(search)
const plan = { node: { outpoint: genesis, satoshis: 1, lockingScript }, deployment, character: 'q', nonce, ownerLock }
const { pay } = payments.payWithKey({ key, coins: [{ transaction: proven(20000, own), vout: 0 }] })
const { transaction, mint } = await payments.payForMint({ plan, source }, pay)
const received = Transaction.fromBEEF(transaction.toBEEF())
console.log(JSON.stringify([mint.name, transaction instanceof Transaction, await received.verify('scripts only')]))
`

withRegistry(`the package from its tarball${'missing' in installed ? ` (${installed.missing})` : ''}`, () => {
  test('depends on one copy of the SDK, and on no engine', async () => {
    const places = await dependencies()
    expect(places.filter((path) => path.endsWith('/@bsv/sdk'))).toEqual(['node_modules/@bsv/sdk'])
    expect(places.filter((path) => path.includes('/@bsv/overlay'))).toEqual([])
  })

  test('has a command that serves', async () => {
    const data = await mkdtemp(join(tmpdir(), 'minetree-installed-'))
    const main = join(folder, 'node_modules/.bin/minetree')
    const server = await startServerProcess({ main, env: { PORT: '0', DATA_DIR: data, SEED: 'none' } })
    try {
      expect((await fetch(`${server.url}/health/live`)).status).toBe(200)
    } finally {
      await server.kill('SIGTERM')
      await rm(data, { recursive: true })
    }
  })

  test(
    'mints for a program that has a copy of the SDK of its own, of the previous major version',
    async () => {
      const majors = (await versionsOf('@bsv/sdk')).map((version) => version[0])
      expect(majors.sort()).toEqual(['1', '2'])
      const args = ['--input-type=module', '-e', MINT]
      const { stdout } = await run(process.execPath, args, { cwd: folder })
      expect(JSON.parse(stdout)).toEqual(['q', false, true])
    },
    PATIENCE,
  )

  // By day, the program above and those of `plugin-example` and `examples` run on what tarballs have.
  testAtNight(
    'passes the suites that submit, look up, mint, prove and serve',
    async () => {
      const env = {
        ...process.env,
        INSTALLED_PACKAGE: join(folder, 'node_modules/minetree'),
      }
      const config = join(import.meta.dirname, 'installed.config.ts')
      const args = ['vitest', 'run', '--maxWorkers=1', '--no-color', `--config=${config}`]
      const { stdout } = await run('npx', [...args, ...SUITES], { cwd: ROOT, env, maxBuffer: 2 ** 26 })
      expect(stdout).toMatch(/^ *Tests +\d+ passed \(\d+\)$/m)
    },
    PATIENCE,
  )
})
