import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { proofFact, transactionFact } from '../../../backend/src/facts/log.js'
import { INDEX_VERSION } from '../../../backend/src/index/schema.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { recordOf } from '../../support/protocol/block.js'
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { ask, submission, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { inLog } from '../../support/storage/fact-store.js'

// SWAP_TRANSACTIONS=90000 says how long the outage is at that size: it is printed, and must be below 5 s.

const TRANSACTIONS = Number(process.env.SWAP_TRANSACTIONS ?? 600)
const NEXT = INDEX_VERSION + 1

const servers = useServers()
const old = useBuiltCli()
const nextFolder = mkdtempSync(join(tmpdir(), 'minetree-next-'))
const next = useBuiltCli({ folder: () => nextFolder })

/** The same package with an index of another version. */
beforeAll(() => {
  for (const each of ['dist', 'package.json'])
    cpSync(join(old.folder(), each), join(nextFolder, each), { recursive: true })
  for (const shared of ['node_modules', 'assets'])
    symlinkSync(join(old.folder(), shared), join(nextFolder, shared))
  const programs = join(nextFolder, 'dist/cli')
  const version = `INDEX_VERSION=${INDEX_VERSION}`
  for (const name of readdirSync(programs)) {
    if (!name.endsWith('.program.cjs')) continue
    const program = readFileSync(join(programs, name), 'utf8')
    if (/^(?:main|writer-worker)/.test(name)) expect(program).toContain(version)
    writeFileSync(join(programs, name), program.replace(version, `INDEX_VERSION=${NEXT}`))
  }
})
afterAll(() => rmSync(nextFolder, { recursive: true }))

/** Facts of a chain: inscriptions, each of which is moved once. */
function fill(dataDir: string, chain: FakeChain): void {
  inLog(dataDir, (sql, log) => {
    sql.exec('begin')
    for (let n = 0; n < TRANSACTIONS / 2; n++) {
      const origin = inscribed(chain, `stored ${n}`)
      const moved = chain.spend({
        inputs: [{ transaction: origin, vout: 0 }],
        outputs: [{ satoshis: 1, lockingScript: p2pkh(n) }],
      })
      for (const each of [origin, moved]) {
        log.insert(transactionFact(each))
        const { proof } = recordOf(each, each.height)
        if (proof !== undefined) log.insert(proofFact(each.txid, proof))
      }
    }
    sql.exec('commit')
  })
}

const inscribed = (chain: FakeChain, text: string): FakeTransaction =>
  chain.inscribe({ contentType: 'text/plain', body: utf8(text) })

/** Waits until a process listens and is ready. */
async function ready({ url }: Running): Promise<string> {
  const address = await url
  await until(async () => (await ask(address, '/health/ready')).status === 200, 'the service is ready')
  return address
}

async function stopped({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
}

test('the index of a new version is built beside a service that writes, which the new version then replaces at once', async () => {
  const chain = new FakeChain()
  const DATA_DIR = join(await servers.folder(), 'store')
  const env = { ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only', DATA_DIR, PORT: '0' }
  await stopped(await started(old, env))
  fill(DATA_DIR, chain)
  expect((await old.run(['build-index', '--again'], env)).code).toBe(0)
  const index = (version: number): string => join(DATA_DIR, `index-${version}.db`)

  const first = old.start(['serve'], env)
  const url = await ready(first)
  const texts = new Map<string, string>()
  const submit = async (text: string): Promise<void> => {
    const each = inscribed(chain, text)
    expect((await ask(url, '/submit', submission(beefOf(each), ['tm_ordinals']))).status).toBe(200)
    texts.set(each.outpoint(0), text)
  }
  await submit('before')
  const building = next.run(['build-index'], env)
  let isBuilt = false
  void building.finally(() => {
    isBuilt = true
  })
  while (!isBuilt) await submit(`meanwhile ${texts.size}`)
  expect(await building).toMatchObject({ code: 0, stdout: 'built the index\n' })
  expect(texts.size).toBeGreaterThan(1)
  await submit('after it was built')

  // The old version may be started once more: it leaves the other index where it is.
  await stopped(first)
  const again = old.start(['serve'], env)
  await ready(again)
  expect([INDEX_VERSION, NEXT].map((version) => existsSync(index(version)))).toEqual([true, true])

  const from = monotonic()
  await stopped(again)
  const second = next.start(['serve'], env)
  const address = await ready(second)
  const outage = monotonic() - from
  if (process.env.SWAP_TRANSACTIONS !== undefined) {
    process.stdout.write(
      `outage at ${TRANSACTIONS} transactions: ${Math.round(outage)} ms, ${texts.size} written meanwhile\n`,
    )
    expect(outage).toBeLessThan(5000)
  }
  for (const [outpoint, text] of texts)
    expect((await ask(address, `/content/${outpoint}`)).body.toString()).toBe(text)
  await stopped(second)
  expect((await second.ended).stdout).not.toContain('rebuilding the index')
  expect([INDEX_VERSION, NEXT].map((version) => existsSync(index(version)))).toEqual([false, true])
  expect((await next.run(['check'], env)).stdout).toContain('and their index')
}, 900_000)

async function started(cli: typeof old, env: Record<string, string>): Promise<Running> {
  const running = cli.start(['serve'], env)
  await ready(running)
  return running
}
