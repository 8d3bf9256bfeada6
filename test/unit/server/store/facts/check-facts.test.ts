import { rm } from 'node:fs/promises'
import { Sql } from '../../../../../backend/src/facts/connection.js'
import { storeFiles } from '../../../../../backend/src/writer/local-writer.js'
import { readConfig } from '../../../../../src/server/config/config.js'
import { buildIndex } from '../../../../../src/server/store/facts/build-index.js'
import { checkFacts, type FactDamage } from '../../../../../src/server/store/facts/check-facts.js'
import { writeSetting } from '../../../../../src/server/store/facts/log-settings.js'
import { beefOf, FakeChain } from '../../../../support/protocol/fake-chain.js'
import { type Environment, treeOf, useServers } from '../../../../support/server/test-server.js'

const servers = useServers()

/** The settings of a store that a server has filled and left. */
async function filled(): Promise<Environment & { DATA_DIR: string }> {
  const chain = new FakeChain()
  const env = {
    ...treeOf(chain.deployment),
    ...{ CHAIN_TRACKER: 'scripts-only', DATA_DIR: await servers.folder() },
  }
  const server = await servers.start(env)
  const note = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(9) })
  // Version 2 admits no mint with a lock time.
  const mints = [chain.mint('a'), chain.mint('ab'), chain.mint('b', { lockTime: 1 })]
  for (const each of [chain.genesis, ...mints, note]) await server.take(beefOf(each))
  await server.stop()
  return env
}

async function check(env: Environment) {
  const damaged: FactDamage[] = []
  const checked = await checkFacts({
    config: readConfig(env),
    ...{ signal: new AbortController().signal, onProgress: () => {} },
    onDamage: (damage) => damaged.push(damage),
  })
  return { ...checked, damaged }
}

function change(file: string, statement: string): void {
  const sql = new Sql(file)
  expect(sql.run(statement)).toBeGreaterThan(0)
  sql.close()
}

test('every fact is verified, and the index compared with one that is derived again', async () => {
  const env = await filled()
  const { facts, damaged, isCompared } = await check(env)
  expect([damaged, isCompared]).toEqual([[], true])
  expect(facts).toBeGreaterThan(8)
})

test('rows of the index that do not follow from the facts are counted', async () => {
  const env = await filled()
  change(storeFiles(env.DATA_DIR).index, "update name set name = 'zz' where name = 'ab'")
  expect((await check(env)).damaged).toEqual([{ kind: 'index', id: 'name', problem: 'differs', rows: 2 }])
})

test('a damaged transaction is found', async () => {
  const env = await filled()
  change(storeFiles(env.DATA_DIR).log, 'update log set body = zeroblob(length) where kind = 1')
  const { damaged, isCompared } = await check(env)
  expect(damaged).toEqual(
    expect.arrayContaining([expect.objectContaining({ kind: 'transaction', problem: 'damaged' })]),
  )
  expect(isCompared).toBe(false)
})

test('a log without an index is verified, and none is made', async () => {
  const env = await filled()
  const { index } = storeFiles(env.DATA_DIR)
  for (const each of ['', '-wal', '-shm']) await rm(index + each, { force: true })
  expect(await check(env)).toMatchObject({ damaged: [], isCompared: false })
  expect(await check(env)).toMatchObject({ damaged: [], isCompared: false })
})

test('an index is derived by the rules of its log alone', async () => {
  const env = await filled()
  const other = { ...env, DIFFICULTY: '23' }
  const options = { signal: new AbortController().signal }
  const expected = /^DIFFICULTY: the store in \S+ holds a tree with "\d+", not "23"$/
  await expect(check(other)).rejects.toThrow(expected)
  await expect(buildIndex({ config: readConfig(other), again: true, ...options })).rejects.toThrow(expected)
  expect((await check(env)).damaged).toEqual([])
})

test('an index is derived by the covenant of its log, whatever version the environment of the command names', async () => {
  const { COVENANT_VERSION: _, ...env } = await filled()
  expect((await check(env)).damaged).toEqual([])
  const build = { config: readConfig(env), again: true, signal: new AbortController().signal }
  await buildIndex(build)
  expect((await check({ ...env, COVENANT_VERSION: '2' })).damaged).toEqual([])
  await writeSetting({ folder: env.DATA_DIR }, { name: 'COVENANT_VERSION', value: '1' })
  expect(await buildIndex({ ...build, again: false })).toBe(true)
  expect((await check(env)).damaged).toEqual([])
})
