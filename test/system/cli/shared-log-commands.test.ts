import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { FACT, transactionFact } from '../../../backend/src/facts/log.js'
import { appended, type SharedLog, START } from '../../../backend/src/facts/shared-log.js'
import { fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { prunedRow } from '../../../backend/src/writer/state-changes.js'
import { openSharedLog } from '../../../src/server/store/open-shared-log.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import {
  ask,
  type Environment,
  posted,
  submission,
  treeOf,
  useServers,
} from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { onOneSharedEngine } from '../../support/storage/databases.js'
import { filesWith } from '../../support/storage/fact-store.js'

// The commands on a log that gateways share, beside gateways that run.

const NOTE = utf8('a note that is to be found in no log and in no copy of it')
const ADMIN = 'an-operator-of-many-gateways'

interface Gateway {
  env: Environment & { DATA_DIR: string }
  running: Running
  url: string
}

onOneSharedEngine('the commands on a log in', (databases) => {
  const cli = useBuiltCli()
  const servers = useServers()
  const chain = new FakeChain()

  const gateway = async (shared: Environment): Promise<Gateway> => {
    const env = { PORT: '0', ADMIN_TOKEN: ADMIN, DATA_DIR: await servers.folder(), ...shared }
    const running = cli.start(['serve'], env)
    return { env, running, url: await running.url }
  }

  const submit = async ({ url }: Gateway, transaction: FakeTransaction, topic: string): Promise<void> => {
    expect((await ask(url, '/submit', submission(beefOf(transaction), [topic]))).status).toBe(200)
  }

  const end = async ({ running }: Gateway): Promise<void> => {
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(0)
  }

  const settings = async (): Promise<Environment> => ({
    ...treeOf(chain.deployment),
    ...(await databases.settings()),
    CHAIN_TRACKER: 'scripts-only',
  })

  const openLog = (env: Environment): Promise<SharedLog> =>
    openSharedLog({ knexUrl: env.KNEX_URL, mongoUrl: env.MONGO_URL })

  /** Empties what SQLite has beside the files of a gateway, and says where some bytes are in them. */
  const foundIn = ({ env }: Gateway, bytes: Uint8Array = NOTE): string[] => {
    const folder = join(env.DATA_DIR, 'gateway')
    for (const file of Object.values(storeFiles(folder))) {
      const sql = new Sql(file)
      sql.get('pragma wal_checkpoint(truncate)')
      sql.close()
    }
    return filesWith(folder, bytes)
  }

  test('check, setting, build-index and purge work beside gateways, and none that needs a folder of its own', async () => {
    const env = await settings()
    const [one, two] = [await gateway(env), await gateway(env)]
    await submit(one, chain.genesis, 'tm_names')
    const notes = [1, 2].map((n) => chain.inscribe({ contentType: 'text/plain', body: NOTE, satoshis: n }))
    // Pending, as no topic holds it.
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(1) }] })
    for (const each of [coin, ...notes]) await submit(one, each, 'tm_ordinals')
    const content = `/content/${notes[0]?.outpoint(0)}`
    await eventually(async () => expect((await ask(two.url, content)).status).toBe(200))

    expect((await cli.run(['check'], two.env)).stdout).toMatch(/^verified \d+ facts, .*, and their index\n$/)
    expect((await cli.call(['setting', 'tracker'], two.env)).stdout).toBe('tracker=scripts-only\n')
    expect((await cli.call(['build-index'], two.env)).code).toBe(0)
    expect((await cli.call(['build-index', '--again'], two.env)).code).toBe(5)
    expect((await cli.call(['prune'], two.env)).code).toBe(5)
    const before = await cli.call(['setting', 'base'], two.env)
    expect((await cli.call(['setting', '--restored'], two.env)).code).toBe(0)
    expect(await cli.call(['setting', 'base'], two.env)).not.toEqual(before)

    const purged = await cli.run(['purge', notes[0]?.outpoint(0) ?? '', '--reason', 'an order'], env)
    expect(purged).toMatchObject({ code: 0, stdout: expect.stringContaining(notes[1]?.outpoint(0) ?? '') })
    const sha256 = /blocked ([0-9a-f]{64})/.exec(purged.stdout)?.[1]
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${ADMIN}` }
    for (const { url } of [one, two])
      await eventually(async () => expect((await ask(url, content)).status).toBe(451))
    // For good.
    expect((await ask(one.url, '/admin/unblock', { ...posted({ sha256 }), headers })).status).toBe(200)
    for (const { url } of [one, two])
      await eventually(async () => {
        expect((await ask(url, content)).status).toBe(451)
        expect((await ask(url, `/svc/beef/${notes[1]?.txid}`)).status).toBe(451)
      })
    // Gateways go on, and one that reads the log from the start is as they are.
    await submit(two, chain.mint('a'), 'tm_names')
    const three = await gateway(env)
    for (const each of [one, two, three]) {
      await eventually(async () => expect((await ask(each.url, '/svc/names/origin/a')).status).toBe(200))
      expect((await cli.call(['check'], each.env)).stdout).toContain('and their index')
      await end(each)
      expect(foundIn(each)).toEqual([])
      expect((await cli.call(['check'], each.env)).code).toBe(0)
    }
    // What is no longer open is built again.
    expect((await cli.call(['build-index', '--again'], one.env)).stdout).toBe('built the index\n')
    const log = await openLog(env)
    const rows = await log.after(START, { limit: 1000, maxBytes: 1e9 })
    expect(rows.filter(({ body }) => body && Buffer.from(body).includes(Buffer.from(NOTE)))).toEqual([])
    await log.close()
  })

  test('prune drops what nobody has seen from the log and from each copy of it, also if it was interrupted', async () => {
    const env = await settings()
    const [one, two] = [await gateway(env), await gateway(env)]
    await submit(one, chain.genesis, 'tm_names')
    const notes = [1, 2, 3].map((n) => chain.inscribe({ contentType: 'text/plain', body: NOTE, satoshis: n }))
    const [old, left, young] = notes as [FakeTransaction, FakeTransaction, FakeTransaction]
    const child = chain.move(old, 0, p2pkh(1))
    const log = await openLog(env)
    const at = Date.now() - 15 * 86_400_000
    const aged = [old, child, left].map((each) => ({ ...transactionFact(each), at }))
    for (let isThere = false; !isThere; )
      isThere = await log.insert(appended(await log.last(), [...aged, transactionFact(young)]))
    const content = (each: FakeTransaction): string => `/content/${each.outpoint(0)}`
    for (const { url } of [one, two])
      for (const each of notes)
        await eventually(async () => expect((await ask(url, content(each))).status).toBe(200))
    // As a command that was killed once its rows were there.
    const key = fromHex(left.txid)
    const { seq = 0 } = (await log.get(FACT.transaction, key)) ?? {}
    const gone = prunedRow({ kind: FACT.transaction, key, seq })
    for (let isThere = false; !isThere; ) isThere = await log.insert(appended(await log.last(), [gone]))
    await eventually(async () => expect((await ask(one.url, content(left))).status).toBe(404))
    await end(two)

    expect((await cli.run(['prune'], two.env)).stdout).toContain('dropped 2 unproven transactions')
    const bodies = async (txid: string) =>
      (await log.after(START, { limit: 1000, maxBytes: 1e9 })).filter(
        (row) => row.kind === FACT.transaction && toHex(row.key) === txid && row.body !== undefined,
      )
    for (const { txid } of [old, child, left]) expect(await bodies(txid)).toEqual([])
    const three = await gateway(env)
    for (const { url } of [one, three]) {
      await eventually(async () => expect((await ask(url, content(old))).status).toBe(404))
      await eventually(async () => expect((await ask(url, content(young))).status).toBe(200))
    }
    // What comes again is a fact again, and stays.
    await submit(three, old, 'tm_ordinals')
    expect((await cli.call(['prune'], two.env)).stdout).toContain('dropped 0 unproven transactions')
    expect(await bodies(old.txid)).toHaveLength(1)
    expect(foundIn(two, child.raw)).toEqual([])
    for (const each of [one, three]) {
      await eventually(async () => expect((await ask(each.url, content(old))).status).toBe(200))
      expect((await cli.call(['check'], each.env)).stdout).toContain('and their index')
      await end(each)
      expect(foundIn(each, child.raw)).toEqual([])
      expect((await cli.call(['check'], each.env)).code).toBe(0)
    }
    await log.close()
  })

  test('check finds what a gateway has otherwise than the log, and what is damaged in the log', async () => {
    const env = await settings()
    const one = await gateway(env)
    await submit(one, chain.genesis, 'tm_names')
    await end(one)
    const { log: file } = storeFiles(join(one.env.DATA_DIR, 'gateway'))
    const sql = new Sql(file)
    sql.run('update log set body = ? where kind = 5 and seq = 1', utf8('"7"'))
    sql.close()
    const differs = await cli.call(['check', '--json'], one.env)
    expect([differs.code, JSON.parse(differs.stdout.split('\n')[0] ?? '')]).toEqual([
      1,
      { kind: 'copy of register', id: expect.any(String), problem: 'differs' },
    ])
    const log = await openLog(env)
    const [row] = (await log.after(START, { limit: 100, maxBytes: 1e9 })).filter(({ kind }) => kind === 1)
    if (row?.body === undefined) throw new Error('there is no transaction')
    await log.overwrite(row, new Uint8Array(row.body.length))
    await log.close()
    const damaged = await cli.call(['check'], { ...env, DATA_DIR: await servers.folder() })
    expect(damaged).toMatchObject({ code: 1, stdout: `damaged: transaction ${chain.genesis.txid}\n` })
    expect(existsSync(file)).toBe(true)
  })
})
