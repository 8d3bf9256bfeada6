import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readdir, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { MongoClient } from 'mongodb'
import { createConnection } from 'mysql2/promise'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { typescript } from '../../support/cli/dependent.js'
import { sampleOf } from '../../support/nightly.js'
import {
  type DeploymentInfo,
  deploymentInfo,
  fillContainer,
  installContainer,
  larsProgram,
  nameOf,
  onKnex,
  packagesIn,
  packagesOfHostAlone,
} from '../../support/plugin/lars.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'
import { type Answer, ask, posted, submission, useServers } from '../../support/server/test-server.js'
import { untilListening } from '../../support/server/until-listening.js'
import { eventually } from '../../support/server/waiting.js'
import { MISSING_FOR_MARIADB, mariadbUrl } from '../../support/services/mariadb.js'
import { MISSING_FOR_MONGO, mongoUrl } from '../../support/services/mongo.js'
import { freshDatabaseName, portOfShared } from '../../support/services/shared.js'

// The plugin as LARS runs it: `backend/src` and its dependencies alone, the program that LARS writes, a host that is none of
// ours, and the one copy of the SDK that it brings along.

const { folder } = useServers()
const ROOT = resolve(import.meta.dirname, '../../..')

const container = await installContainer()
const info = await deploymentInfo()
let running: ChildProcess | undefined
/** Ends the program that runs. */
async function ended(): Promise<void> {
  const child = running
  running = undefined
  if (child?.kill('SIGKILL')) await once(child, 'close')
}

/** Starts a program in a container, and waits until it listens. */
async function started(cwd: string, program: string, env: Record<string, string>): Promise<string> {
  await writeFile(join(cwd, 'index.ts'), program)
  const child = spawn(process.execPath, ['--import', 'tsx', 'index.ts'], {
    cwd,
    env: { PATH: process.env.PATH, HOSTING_URL: 'overlay.test', SERVER_PRIVATE_KEY: '11', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running = child
  return await untilListening(child)
}

async function filled(): Promise<string> {
  if ('missing' in container) throw new Error(container.missing)
  const path = await folder()
  await fillContainer(path, container)
  return path
}

/** The bytes of all files in a folder. */
async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

const submitted = (url: string, beef: Uint8Array, topics: string[]): Promise<Answer> =>
  ask(url, '/submit', submission(beef, topics))

/** The outpoints that a lookup service answers with. */
async function found(url: string, service: string, query: unknown): Promise<string[]> {
  const answer = await ask(url, '/lookup', posted({ service, query }))
  expect(answer).toMatchObject({ status: 200, json: { type: 'output-list' } })
  const { outputs } = answer.json as { outputs: { beef: number[]; outputIndex: number }[] }
  return outputs.map(({ beef, outputIndex }) => `${readBeef(beef).subject.txid}_${outputIndex}`)
}

/** A host stores what it admits after its answer, so that it may take a moment until it is found. */
async function expectFound(
  url: string,
  service: string,
  query: unknown,
  outpoints: (string | undefined)[],
): Promise<void> {
  await eventually(async () => expect(await found(url, service, query)).toEqual(outpoints))
}

interface HostDatabase {
  /** The programmes that this machine lacks for it. */
  missing: string[]
  info: DeploymentInfo
  /** An empty one. */
  open(): Promise<OpenedDatabase>
}

interface OpenedDatabase {
  KNEX_URL: string
  MONGO_URL: string
  /** Empties the index, where it is apart from what the engine keeps. */
  emptyIndex?(): Promise<void>
  close(): Promise<void>
}

/** By day, that of `deployment-info.json`: `plugin-in-hosts.test.ts` has the others. */
const DATABASES: [name: string, database: HostDatabase][] = sampleOf(
  [
    ['MongoDB', { missing: [...MISSING_FOR_MARIADB, ...MISSING_FOR_MONGO], info, open: openMongo }],
    ['MariaDB', { missing: MISSING_FOR_MARIADB, info: onKnex(info), open: openMariadb }],
    ['SQLite', { missing: [], info: onKnex(info), open: openSqlite }],
  ],
  3,
)

async function openSqlite(): Promise<OpenedDatabase> {
  return { KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '', close: async () => {} }
}

async function openMariadb(): Promise<OpenedDatabase> {
  const port = await portOfShared('mariadb')
  const name = freshDatabaseName()
  const root = await createConnection(mariadbUrl(port, ''))
  await root.query(`create database ${name}`)
  const close = async () => {
    await root.query(`drop database ${name}`)
    await root.end()
  }
  return { KNEX_URL: mariadbUrl(port, name), MONGO_URL: '', close }
}

/** The engine's own storage is on SQL all the same. The host calls its database after itself, whatever the URL says. */
async function openMongo(): Promise<OpenedDatabase> {
  const engine = await openMariadb()
  const MONGO_URL = mongoUrl(await portOfShared('mongo'), 'LARS_lookup_services')
  const client = await new MongoClient(MONGO_URL).connect()
  const emptyIndex = async () => {
    await client.db().dropDatabase()
  }
  const close = async () => {
    await emptyIndex()
    await client.close()
    await engine.close()
  }
  return { KNEX_URL: engine.KNEX_URL, MONGO_URL, emptyIndex, close }
}

const chain = new FakeChain()
const mints = ['a', 'ab', 'b'].map((name) => chain.mint(name))

/** The same program, but for the tree that it follows: the genesis of the live one is not ours to mint from. */
function onOurTree(program: string): string {
  const { genesis, difficulty, marker, nameContentType } = chain.deployment
  const deployment = JSON.stringify({ genesis, difficulty, nameContentType, marker: [...marker] })
  return program
    .replace(
      'const main',
      `const deployment = { ...${deployment}, marker: Uint8Array.from([${marker}]) }\n\nconst main`,
    )
    .replace('new tm_tm_names()', 'new tm_tm_names({ deployment })')
    .replace('lsf_ls_names)', '(database) => lsf_ls_names(database, { deployment }))')
}

async function expectNames(url: string): Promise<void> {
  for (const each of [chain.genesis, ...mints]) {
    const { status, json } = await submitted(url, beefOf(each), ['tm_names', 'tm_ordinals'])
    const outputsToAdmit = each === chain.genesis ? [0] : [0, 1, 2]
    expect({ status, json }).toMatchObject({ status: 200, json: { tm_names: { outputsToAdmit } } })
  }
  const [a, ab, b] = mints
  await expectFound(url, 'ls_names', { name: 'ab' }, [ab?.outpoint(2)])
  await expectFound(url, 'ls_names', { mine: 'abc' }, [ab?.outpoint(1)])
  await expectFound(url, 'ls_names', { node: '' }, [b?.outpoint(0)])
  await expectFound(
    url,
    'ls_names',
    { prefix: 'a' },
    [a, ab].map((mint) => mint?.outpoint(2)),
  )
}

async function expectOrdinals(url: string): Promise<void> {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('kept') })
  const said = Uint8Array.from([...lockingScript, ...mapTail({ app: 'shop' })])
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
  const origin = chain.spend({
    inputs: [{ transaction: purse, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: said }],
  })
  const moved = chain.spend({
    inputs: [{ transaction: origin, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: p2pkh(3) }],
  })
  for (const [each, parent] of [
    [origin, purse],
    [moved, origin],
  ] as const) {
    const { status, json } = await submitted(url, beefOf(each, { with: [parent] }), ['tm_ordinals'])
    expect({ status, json }).toMatchObject({ status: 200, json: { tm_ordinals: { outputsToAdmit: [0] } } })
  }
  await expectFound(url, 'ls_ordinals', { outpoint: origin.outpoint(0), seq: -1 }, [moved.outpoint(0)])
  await expectFound(url, 'ls_ordinals', { map: { app: 'shop' } }, [moved.outpoint(0)])
  const wrong = await ask(url, '/lookup', posted({ service: 'ls_ordinals', query: { unknown: 1 } }))
  expect(wrong).toMatchObject({ status: 400, json: { status: 'error' } })
}

/** Where the live chain has lent its transactions. */
async function expectLiveNames(url: string): Promise<void> {
  const vectors = mainnetVectors()
  if (vectors === undefined) return
  const { genesis, mints } = vectors.mineTree
  const txids = [parseOutpoint(genesis).txid, ...mints.map(({ txid }) => txid)]
  for (const [at, txid] of txids.entries()) {
    const transaction = mainnetTransaction(txid)
    const outpoint = (vout: number): string => formatOutpoint({ txid, vout })
    const subject = { txid, raw: transaction.raw, transaction, height: 806_214 + at, outpoint }
    const { status, json } = await submitted(url, beefOf(subject), ['tm_names'])
    const outputsToAdmit = at === 0 ? [0] : [0, 1, 2]
    expect({ status, json }).toMatchObject({ status: 200, json: { tm_names: { outputsToAdmit } } })
  }
  for (const { txid, name } of mints)
    await expectFound(url, 'ls_names', { origin: name.name }, [`${txid}_${name.vout}`])
}

const inContainer = 'missing' in container ? describe.skip : describe
inContainer(`in a container of LARS${'missing' in container ? ` (${container.missing})` : ''}`, () => {
  test('the sources compile by themselves, as the package that they are', async () => {
    const cwd = await filled()
    await cp(join(ROOT, 'backend/package.json'), join(cwd, 'package.json'))
    const options =
      '--noEmit --strict --skipLibCheck --target es2022 --lib es2023 --module nodenext --types node'.split(
        ' ',
      )
    const files = [
      ...Object.values(info.topicManagers),
      ...[info, onKnex(info)].flatMap(({ lookupServices }) =>
        Object.values(lookupServices).map((each) => each.serviceFactory),
      ),
    ]
    const sources = files.map((path) => path.replace('./backend/', ''))
    await typescript(cwd, [...options, '--ignoreConfig', ...sources])
  })

  test('the only copy of the SDK is that of the host', async () => {
    if ('missing' in container) throw new Error(container.missing)
    const packages = await packagesIn(container)
    const copies = packages.map(([path]) => path).filter((path) => path.endsWith('/@bsv/sdk'))
    expect(copies).toEqual(['node_modules/@bsv/sdk'])
  })

  test('the plugin adds at most 25 packages and 30 MB to a host', async () => {
    if ('missing' in container) throw new Error(container.missing)
    const before = await packagesOfHostAlone()
    const ids = new Set(before.map(([, id]) => id))
    const added = (await packagesIn(container))
      .filter(([path, id]) => !ids.has(id) && !path.endsWith('overlay-express'))
      .map(([path]) => path)
    expect(added.length).toBeLessThanOrEqual(25)
    let bytes = 0
    for (const path of added) bytes += await bytesIn(join(container.modules, '..', path))
    expect(bytes).toBeLessThanOrEqual(30e6)
    // Of nothing that the host has is there another version.
    const names = new Set(before.map(([path]) => nameOf(path)))
    expect(added.filter((path) => names.has(nameOf(path)))).toEqual([])
  })

  describe.each(DATABASES)('on %s', (_, database) => {
    if (database.missing.length > 0) {
      test.skip(`there is no ${database.missing.join(', no ')} here`, () => {})
      return
    }
    // One for each program: a database has one tree.
    let opened: OpenedDatabase
    beforeEach(async () => {
      opened = await database.open()
    })
    afterEach(async () => {
      await ended()
      await opened.close()
    })

    test('the program that LARS writes takes ordinals, and names of the live tree', async () => {
      const cwd = await filled()
      const url = await started(cwd, larsProgram(database.info, cwd), {
        KNEX_URL: opened.KNEX_URL,
        MONGO_URL: opened.MONGO_URL,
      })
      const managers = (await ask(url, '/listTopicManagers')).json as object
      expect(Object.keys(managers)).toEqual(['tm_names', 'tm_ordinals'])
      await expectOrdinals(url)
      await expectLiveNames(url)
    })

    test('a program that says which tree takes a chain of mints, and starts again on what it has', async () => {
      const cwd = await filled()
      const program = onOurTree(larsProgram(database.info, cwd))
      const databases = { KNEX_URL: opened.KNEX_URL, MONGO_URL: opened.MONGO_URL }
      await expectNames(await started(cwd, program, databases))
      await ended()
      // As if it had been killed before each of the hooks; its migrations have run by now.
      await opened.emptyIndex?.()
      const last = await started(cwd, program, databases)
      await expectFound(last, 'ls_names', { name: 'ab' }, [mints[1]?.outpoint(2)])
      await expectFound(last, 'ls_names', { node: '' }, [mints[2]?.outpoint(0)])
    })
  })
})
