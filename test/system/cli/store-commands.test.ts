import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { transactionFact } from '../../../backend/src/facts/log.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { sampleOf } from '../../support/nightly.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { ask, treeOf, useServers } from '../../support/server/test-server.js'
import { filesWith, inLog } from '../../support/storage/fact-store.js'

const cli = useBuiltCli()
const servers = useServers()
const NOTE = utf8('a note that can be found in the files of a store')

interface Store {
  env: Record<string, string> & { DATA_DIR: string }
  note: FakeTransaction
}

let made: Promise<Store> | undefined
/** A store that a server has filled and left, for a test that changes it. */
async function filled(): Promise<Store> {
  const { env, note } = await stored()
  const DATA_DIR = join(await servers.folder(), 'store')
  cpSync(env.DATA_DIR, DATA_DIR, { recursive: true })
  return { env: { ...env, DATA_DIR }, note }
}

/** One for all tests that change nothing. */
function stored(): Promise<Store> {
  made ??= fill()
  return made
}

async function fill(): Promise<Store> {
  const chain = new FakeChain()
  const DATA_DIR = join(await servers.folder(), 'store')
  const env = { ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only', DATA_DIR, PORT: '0' }
  const server = await servers.start(env)
  for (const each of [chain.genesis, chain.mint('a')]) await server.take(beefOf(each))
  // In pages of its own.
  const body = Buffer.concat([Buffer.alloc(20_000), NOTE, Buffer.alloc(20_000)])
  const note = chain.inscribe({ contentType: 'text/plain', body })
  await server.take(beefOf(note), ['tm_ordinals'])
  await server.stop()
  // The driver closes a file when its statements are collected, and may write to it then: so on with a copy.
  const copied = { ...env, DATA_DIR: join(DATA_DIR, '..', 'copied') }
  cpSync(DATA_DIR, copied.DATA_DIR, { recursive: true })
  return { env: copied, note }
}

/** Runs a command that is to fail: with one line that says why. In this process, but for another user. */
async function refused(
  args: string[],
  env: Store['env'],
  as?: { uid: number; gid: number },
): Promise<{ code: number | null; line: string }> {
  const { code, stderr } = await (as === undefined ? cli.call(args, env) : cli.run(args, env, as))
  const lines = stderr.trim().split('\n')
  expect(lines).toHaveLength(1)
  expect(stderr).not.toMatch(/unexpected|at .*\.js/)
  return { code, line: lines[0] ?? '' }
}

test('beside a service, commands either work or say in one line that it runs', async () => {
  const { env, note } = await filled()
  const { url, child, ended } = cli.start(['serve'], env)
  await url
  const copy = join(env.DATA_DIR, '..', 'copy')
  for (const args of [['check'], ['build-index'], ['setting'], ['copy', env.DATA_DIR, copy]])
    expect([args, (await cli.call(args, env)).code]).toEqual([args, 0])
  for (const args of [
    ['build-index', '--again'],
    ['setting', 'tracker', 'headers'],
    ['setting', '--restored'],
    ['purge', note.outpoint(0), '--reason', 'an order'],
    ['prune'],
  ])
    expect([args, await refused(args, env)]).toEqual([
      args,
      { code: 5, line: expect.stringContaining(`in ${env.DATA_DIR}: another minetree process has it open`) },
    ])
  expect((await ask(await url, `/content/${note.outpoint(0)}`)).status).toBe(200)
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
})

const BAD_SETTINGS: [args: string[], code: number, says: RegExp][] = [
  [['color'], 2, /no setting "color": it has genesis, DIFFICULTY/],
  [['color', 'red'], 2, /no setting "color"/],
  [['tracker', 'nonsense'], 2, /headers or tracker or scripts-only, not "nonsense"/],
  [['genesis', 'ab'], 2, /GENESIS/],
  [['genesis', ''], 2, /genesis must not be empty/],
  [['DIFFICULTY', '99'], 2, /DIFFICULTY/],
  [['DIFFICULTY', '-5'], 2, /DIFFICULTY/],
  [['NAME_MARKER', 'ü'], 2, /NAME_MARKER/],
  [['NAME_TLD', 'a b'], 2, /NAME_TLD/],
  [['PROFILE', 'mainnet'], 2, /application\/name-claim or application\/op-ns/],
  [['base', '-5'], 2, /base follows from the log/],
  [['anchor', ''], 2, /anchor follows from the log/],
  [['anchor'], 3, /anchor is not set/],
  [['--restored', 'tracker', 'headers'], 2, /--restored takes no setting/],
]

test('a setting that is none, or cannot be that, is refused, and nothing changes', async () => {
  const { env } = await stored()
  const before = await cli.call(['setting'], env)
  for (const [args, code, says] of BAD_SETTINGS)
    expect([args, await refused(['setting', ...args], env)]).toEqual([
      args,
      { code, line: expect.stringMatching(says) },
    ])
  expect(await cli.call(['setting'], env)).toEqual(before)
})

test('without a store, commands say so', async () => {
  const { env } = await stored()
  const empty = { ...env, DATA_DIR: await servers.folder() }
  for (const args of [
    ['check'],
    ['build-index'],
    ['setting'],
    ['purge', `${'0'.repeat(64)}_0`, '--reason', 'x'],
    ['prune'],
    ['copy', empty.DATA_DIR, join(empty.DATA_DIR, '..', 'other')],
  ])
    expect([args, await refused(args, empty)]).toEqual([
      args,
      { code: 3, line: expect.stringContaining(`there is no log of facts in ${empty.DATA_DIR}`) },
    ])
  expect(readdirSync(empty.DATA_DIR)).toEqual([])
})

test('a store is not copied into itself, nor over another one', async () => {
  const { env } = await stored()
  // The last connection to a file of SQLite deletes the files beside it.
  const names = () => readdirSync(env.DATA_DIR).filter((name) => !/-(shm|wal)$/.test(name))
  const before = names()
  for (const [to, code, advice] of [
    [join(env.DATA_DIR, 'sub'), 2, 'choose a folder elsewhere'],
    [join(env.DATA_DIR, 'sub', 'deeper'), 2, 'choose a folder elsewhere'],
    [env.DATA_DIR, 1, 'choose an empty folder'],
  ] as const)
    expect([to, await refused(['copy', env.DATA_DIR, to], env)]).toEqual([
      to,
      { code, line: expect.stringContaining(advice) },
    ])
  expect(names()).toEqual(before)
  for (const places of [
    [env.DATA_DIR, ''],
    ['', env.DATA_DIR],
  ])
    expect(await refused(['copy', ...places], env)).toEqual({
      code: 2,
      line: expect.stringContaining('name one'),
    })
})

test('what is no outpoint, or has no content, is not purged', async () => {
  const { env, note } = await stored()
  const purge = (outpoint: string) => refused(['purge', outpoint, '--reason', 'x'], env)
  expect(await purge('nonsense')).toEqual({ code: 2, line: expect.stringContaining('not an outpoint') })
  expect(await purge(`${'0'.repeat(64)}_0`)).toEqual({ code: 3, line: expect.stringContaining('no content') })
  expect(await purge(`${note.txid}_9`)).toEqual({ code: 3, line: expect.stringContaining('no content') })
})

test('after a setting was replaced, build-index derives the index by it', async () => {
  const { env } = await filled()
  const run = async (...args: string[]) => await cli.call(args, { ...env, DIFFICULTY: '5' })
  const said = (text: string) => ({ code: 0, stdout: expect.stringContaining(text) })
  expect(await cli.call(['build-index'], env)).toMatchObject(said('--again'))
  expect((await cli.call(['setting', 'DIFFICULTY', '5'], env)).code).toBe(0)
  expect(await run('check')).toMatchObject({ code: 0, stderr: expect.stringContaining('no index') })
  expect(await run('build-index')).toMatchObject(said('built the index\n'))
  expect(await run('check')).toMatchObject(said('and their index'))
  expect(await run('build-index', '--again')).toMatchObject(said('built the index\n'))
})

const DAMAGES: [string, (file: string) => void][] = [
  ['is no database', (file) => writeFileSync(file, 'no database'.repeat(999))],
  ['is cut off', (file) => truncateSync(file, statSync(file).size / 2)],
  [
    'has a damaged page',
    (file) => {
      const sql = new Sql(file)
      const page = sql.get("select rootpage from sqlite_master where name = 'meta'")?.rootpage
      sql.close()
      const bytes = readFileSync(file)
      bytes.fill(0xee, (page - 1) * 4096, page * 4096)
      writeFileSync(file, bytes)
    },
  ],
  [
    'lacks a table',
    (file) => {
      const sql = new Sql(file)
      sql.exec('drop table out')
      sql.close()
    },
  ],
]

describe.each(sampleOf(DAMAGES, 2))('an index that %s', (_, damage) => {
  let store: Store
  let index: string
  beforeEach(async () => {
    store = await filled()
    index = storeFiles(store.env.DATA_DIR).index
    emptyWal(index)
    damage(index)
  })

  test('is found by check, and built again by build-index', async () => {
    const { env } = store
    const checked = await cli.call(['check', '--json'], env)
    expect(checked.code).toBe(1)
    const found = { kind: 'index', id: index, problem: 'damaged' }
    expect(JSON.parse(checked.stdout.split('\n')[0] ?? '')).toEqual(found)
    expect(checked.stderr).toContain('minetree build-index --again')
    expect((await cli.call(['build-index'], env)).stdout).toBe('built the index\n')
    expect((await cli.call(['check'], env)).code).toBe(0)
  })

  test('is derived again by a start, with a line that says so', async () => {
    const { env, note } = store
    const { url, child, ended } = cli.start(['serve'], env)
    expect((await ask(await url, `/content/${note.outpoint(0)}`)).body.toString()).toContain(
      Buffer.from(NOTE).toString(),
    )
    child.kill('SIGTERM')
    expect((await ended).stdout).toMatch(/the index (?:is|may be) damaged: deriving it again/)
  })
})

/** Moves what stands beside a file into it. */
function emptyWal(file: string): void {
  const sql = new Sql(file)
  sql.get('pragma wal_checkpoint(truncate)')
  sql.close()
}

/** Overwrites the pages of a file that hold some bytes. */
function damagePages(file: string, part: Uint8Array): void {
  const bytes = readFileSync(file)
  const page = bytes.readUInt16BE(16)
  const at = bytes.indexOf(Buffer.from(part))
  expect(at).toBeGreaterThan(page)
  bytes.fill(0xee, at - (at % page), at - (at % page) + page)
  writeFileSync(file, bytes)
}

test('a damaged page of the log is 503 DAMAGED, and named by check and by a start', async () => {
  const { env, note } = await filled()
  const files = storeFiles(env.DATA_DIR)
  emptyWal(files.log)
  damagePages(files.log, NOTE)
  const { url, child, ended } = cli.start(['serve'], env)
  const answer = await ask(await url, `/content/${note.outpoint(0)}`)
  expect([answer.status, (answer.json as { code: string }).code]).toEqual([503, 'DAMAGED'])
  child.kill('SIGTERM')
  await ended
  const checked = await cli.call(['check'], env)
  expect(checked).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^damaged: (transaction [0-9a-f]{64}|fact \d+)/m),
  })
  expect(checked.stderr).not.toMatch(/unexpected/)
  for (const name of readdirSync(env.DATA_DIR))
    if (name.startsWith('index-')) rmSync(join(env.DATA_DIR, name))
  const start = await cli.run(['serve'], env)
  expect([start.code, start.stderr]).toEqual([5, expect.stringMatching(/ is damaged, .*minetree check/)])
  expect(start.stderr.trim().split('\n')).toHaveLength(1)
})

test('a log that is no database is named by every command', async () => {
  const { env, note } = await filled()
  const { log } = storeFiles(env.DATA_DIR)
  writeFileSync(log, 'no database'.repeat(999))
  for (const end of ['-wal', '-shm']) rmSync(log + end, { force: true })
  for (const [args, code] of [
    [['check'], 1],
    [['setting'], 1],
    [['build-index', '--again'], 1],
    [['purge', note.outpoint(0), '--reason', 'x'], 1],
    [['prune'], 1],
    [['serve'], 5],
  ] as const)
    expect([args, await refused([...args], env)]).toEqual([
      args,
      { code, line: expect.stringMatching(/ is damaged, .*minetree check/) },
    ])
})

/** Makes a log long enough that a command on it can be killed halfway. */
function prolong({ DATA_DIR }: Store['env']): void {
  const chain = new FakeChain({ change: 7 })
  inLog(DATA_DIR, (sql, log) => {
    sql.exec('begin')
    for (let n = 0; n < 100; n++)
      log.insert(
        transactionFact(chain.inscribe({ contentType: 'text/plain', body: Buffer.alloc(150_000, `${n} `) })),
      )
    sql.exec('commit')
  })
}

/** Kills a command once a file of a folder has changed, unless it is done before. */
async function killedAt(folder: string, file: RegExp, args: string[], env: Store['env']): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const watching = watch(folder)
  const { child, ended } = cli.start(args, env)
  const done = once(child, 'close')
  for (let isKilled = false; !isKilled; ) {
    const [, name] = (await Promise.race([once(watching, 'change'), done.then(() => ['', 'done'])])) as [
      string,
      string,
    ]
    if (name === 'done') break
    isKilled = file.test(name)
  }
  child.kill('SIGKILL')
  await ended
  watching.close()
}

test('a copy that is killed is no store, and the same command completes it', async () => {
  const { env } = await filled()
  prolong(env)
  const to = join(env.DATA_DIR, '..', 'copy')
  await killedAt(to, /^log\.db\.part$/, ['copy', env.DATA_DIR, to], env)
  expect(existsSync(join(to, 'log.db'))).toBe(false)
  expect((await cli.call(['copy', env.DATA_DIR, to], env)).code).toBe(0)
  expect(readdirSync(to)).toEqual(['log.db'])
  expect((await cli.call(['check'], { ...env, DATA_DIR: to })).code).toBe(0)
})

test('a purge that is killed leaves a whole store, and the same command completes it', async () => {
  const { env, note } = await filled()
  prolong(env)
  const before = join(env.DATA_DIR, '..', 'before')
  cpSync(env.DATA_DIR, before, { recursive: true })
  // At its first write to the log, and at its second one, when it writes the file again.
  for (const times of [1, 2]) {
    rmSync(env.DATA_DIR, { recursive: true })
    cpSync(before, env.DATA_DIR, { recursive: true })
    const command = ['purge', note.outpoint(0), '--reason', 'an order']
    let seen = 0
    const file = { test: (name: string) => name === 'log.db-wal' && ++seen === times } as RegExp
    await killedAt(env.DATA_DIR, file, command, env)
    expect((await cli.call(['check'], env)).code).toBe(0)
    expect(await cli.call(command, env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(note.outpoint(0)),
    })
    expect(filesWith(env.DATA_DIR, NOTE)).toEqual([])
    expect((await cli.call(['check'], env)).code).toBe(0)
  }
})

/** The store in a folder that cannot be written to; undefined where nothing may be mounted. */
function readOnly(folder: string): string | undefined {
  const mounted = join(folder, '..', 'read-only')
  mkdirSync(mounted, { recursive: true })
  try {
    execFileSync('mount', ['--bind', folder, mounted], { stdio: 'ignore' })
    execFileSync('mount', ['-o', 'remount,ro,bind', mounted], { stdio: 'ignore' })
    return mounted
  } catch {
    return undefined
  }
}

test('on a folder that cannot be written to, commands say so in one line (needs a right to mount)', async () => {
  const { env, note } = await filled()
  const folder = readOnly(env.DATA_DIR)
  if (folder === undefined) return
  try {
    const closed = { ...env, DATA_DIR: folder }
    for (const args of [
      ['serve'],
      ['build-index', '--again'],
      ['setting', 'tracker', 'headers'],
      ['purge', note.outpoint(0), '--reason', 'x'],
      ['prune'],
    ])
      expect([args, await refused(args, closed)]).toEqual([
        args,
        { code: 5, line: expect.stringMatching(/cannot open the store in .*(?:read-only|writable)/) },
      ])
    expect(await refused(['copy', env.DATA_DIR, join(folder, 'copy')], closed)).toEqual({
      code: 5,
      line: expect.stringContaining('cannot write to'),
    })
  } finally {
    execFileSync('umount', ['-l', folder])
  }
})

test('of what belongs to another user, commands say so in one line (needs a right to be another user)', async () => {
  const { env, note } = await filled()
  const nobody = { uid: 65534, gid: 65534 }
  chmodSync(cli.folder(), 0o755)
  if (process.getuid?.() !== 0 || (await cli.run(['--version'], {}, nobody)).code !== 0) return
  // It leaves no files beside the log, which others could read.
  expect((await cli.call(['check'], env)).code).toBe(0)
  const expectRefused = async (...args: string[]): Promise<void> =>
    expect([args, await refused(args, env, nobody)]).toEqual([
      args,
      { code: 5, line: expect.stringMatching(/cannot open the store in .*(?:permission|writable)/) },
    ])
  const expectStatus = async (): Promise<void> =>
    expect(await cli.run(['status', '--url', 'http://127.0.0.1:2'], env, nobody)).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/no answer\nstore: cannot open the store in .*permission/),
    })
  // Nobody else may look into the folder above.
  await expectRefused('check')
  await expectStatus()
  chmodSync(join(env.DATA_DIR, '..'), 0o755)
  for (const args of [
    ['serve'],
    ['check'],
    ['build-index', '--again'],
    ['setting'],
    ['purge', note.outpoint(0), '--reason', 'x'],
    ['prune'],
    ['copy', env.DATA_DIR, join(env.DATA_DIR, '..', 'copy')],
  ])
    await expectRefused(...args)
  await expectStatus()
})
