import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { type Ended, useBuiltCli } from '../../support/cli/built-cli.js'
import { CrawledTree } from '../../support/follow/crawled-tree.js'
import { type JungleBusService, startJungleBus } from '../../support/follow/junglebus.js'
import { recordOf } from '../../support/protocol/block.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'
import { type Environment, treeOf, useServers } from '../../support/server/test-server.js'
import { storedRows } from '../../support/storage/fact-rows.js'

// The command as it is installed, against a local service that speaks as the source does.

const cli = useBuiltCli()
const servers = useServers()
const vectors = mainnetVectors()

interface Case {
  tree: CrawledTree
  service: JungleBusService
  env: Environment & { DATA_DIR: string }
  args: string[]
}

async function setUp(): Promise<Case> {
  const tree = new CrawledTree()
  const { url, service } = await startJungleBus()
  service.know(...tree.records)
  const env = {
    ...treeOf(tree.chain.deployment),
    CHAIN_SOURCE_RATE: '10000',
    DATA_DIR: await servers.folder(),
  }
  return { tree, service, env, args: ['crawl', '--source', url] }
}

/** A run of the command, without the lines that say now and then how far it is. */
async function run(args: string[], env: Environment): Promise<Ended> {
  return quietly(await cli.call(args, env))
}

function quietly(ended: Ended): Ended {
  const progress = /^\d+ mints, \d+ transfers; \d+ requests, \d+ retries\n/gm
  return { ...ended, stderr: ended.stderr.replace(progress, '') }
}

/** What the names of a store are. */
const namesIn = (dataDir: string): string[] => storedRows(dataDir).names ?? []

test('the tree is followed to its end, and the result is reported', async () => {
  const { tree, service, env, args } = await setUp()
  const { code, stdout, stderr } = await run(args, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [first = '', ...others] = stdout.split('\n')
  // What another transaction brought along is not counted.
  expect(first).toMatch(/^admitted \d+ mints and \d+ transfers \(\d+ outputs\), 0 already known$/)
  expect(others.join('\n')).toBe(
    [
      `requests: ${service.asked.length}, 0 of them without a usable answer`,
      'nodes spent by transactions other than mints: 1; ordinals burnt, or moved to outputs that are not admitted: 1',
      'unconfirmed: 3',
      'transactions needed to place ordinals, but unknown to the source: 0',
      'not followed: 0',
      '',
    ].join('\n'),
  )
  expect(namesIn(env.DATA_DIR)).toHaveLength(11)
  const server = await servers.start(env)
  // Twice it moved together with another name, which had come another way.
  const { json } = await server.ask('/svc/names/abc')
  expect(json).toMatchObject({ sequence: 3, tip: { outpoint: tree.others.paired?.outpoint(0) } })
  await server.stop()
})

test('ended by a signal it says that it goes on, and goes on', async () => {
  const { service, env, args } = await setUp()
  const running = cli.start([...args, '--parallel', '2'], env)
  service.onQuestion = () => {
    if (service.asked.length === 20) running.child.kill('SIGINT')
    // What comes after the signal takes its time, so that it is not over before the signal is heard.
    if (service.asked.length >= 20) service.delay = 2000
  }
  const ended = quietly(await running.ended)
  expect(ended).toMatchObject({ code: 130, signal: null })
  expect(ended.stderr).toBe('minetree: stopped: run the same command again to continue\n')
  expect(ended.stdout).toContain('admitted ')
  service.onQuestion = () => undefined
  service.delay = 0
  const again = await run(args, env)
  expect(again).toMatchObject({ code: 0, stderr: '' })
  expect(namesIn(env.DATA_DIR)).toHaveLength(11)
})

test('branches that cannot be followed are reported, and the command exits with 1', async () => {
  const { tree, service, env, args } = await setUp()
  service.say({ txid: tree.mintOf('ba').txid, vout: 1 }, '12'.repeat(32))
  const { code, stdout, stderr } = await run([...args, '--names-only'], env)
  expect(code).toBe(1)
  expect(stderr).toBe(
    'minetree: some branches could not be followed: run the same command again to retry those\n',
  )
  expect(stdout).toContain(
    `says that ${tree.mintOf('ba').outpoint(1)} is spent by ${'12'.repeat(32)}, which no source knows\n`,
  )
  expect(stdout).toContain('not followed: 1\n')
  expect(stdout).toContain('and 0 transfers')
  const few = await run([...args, '--most', '3'], { ...env, DATA_DIR: await servers.folder() })
  expect(few).toMatchObject({ code: 1 })
  expect(few.stderr).toBe(
    'minetree: stopped at --most 3 transactions: run the same command again to continue\n',
  )
})

test('invalid arguments are reported in one line', async () => {
  const { env, args } = await setUp()
  const noTree = await run(args, { DATA_DIR: await servers.folder() })
  expect(noTree).toMatchObject({ code: 2, stdout: '' })
  expect(noTree.stderr).toBe('minetree: there is no tree to follow: set PROFILE=mainnet or GENESIS\n')
  const noUrl = await run(['crawl', '--source', 'nowhere'], env)
  expect(noUrl).toMatchObject({ code: 2, stdout: '' })
  expect(noUrl.stderr).toMatch(/^minetree: --source: must be junglebus, [^\n]+; not nowhere\n$/)
  const server = await servers.start(env)
  const second = await run(args, env)
  expect(second.code).toBe(5)
  expect(second.stderr).toMatch(/^minetree: cannot open the store in [^\n]+\n$/)
  await server.stop()
})

if (vectors === undefined) {
  test.skip('the live tree as recorded (../shared/vectors/mainnet is absent)', () => undefined)
} else {
  const { genesis, mints } = vectors.mineTree
  test('the live tree as recorded is followed, and is what an import of it is', async () => {
    const { url, service } = await startJungleBus()
    const recorded = [genesis.slice(0, 64), ...mints.map(({ txid }) => txid)].map(
      (txid, place): TransactionRecord => {
        const transaction = mainnetTransaction(txid)
        const height = 800_000 + place
        const outpoint = (vout: number): string => formatOutpoint({ txid, vout })
        return recordOf({ txid, raw: transaction.raw, transaction, height, outpoint }, height)
      },
    )
    service.know(...recorded)
    // No block is made of these.
    const env = { PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only', CHAIN_SOURCE_RATE: '10000' }
    const [crawled, imported] = [await servers.folder(), await servers.folder()]
    const { code, stdout, stderr } = await run(['crawl', '--source', url], {
      ...env,
      DATA_DIR: crawled,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`admitted ${mints.length} mints and 0 transfers`)
    // What pays for them was not recorded.
    expect(stdout).toContain(`unknown to the source: ${mints.length}\n`)
    const file = join(await servers.folder(), 'all.beef')
    await writeFile(file, encodeBeef(recorded))
    await run(['import', file], { ...env, DATA_DIR: imported })
    expect(storedRows(crawled)).toEqual(storedRows(imported))
    expect(namesIn(crawled)).toHaveLength(mints.length)
  })
}
