import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { type Environment, type TestServer, treeOf, useServers } from '../../support/server/test-server.js'
import { onEachSharedEngine } from '../../support/storage/databases.js'

// `minetree backup` and `restore`, as processes of their own beside servers of this one.

const cli = useBuiltCli()
const servers = useServers()

/** For a test, in milliseconds: processes start slowly where many do. */
const PATIENCE = 240_000

interface World {
  chain: FakeChain
  mints: FakeTransaction[]
  notes: FakeTransaction[]
}

/** A chain with names, an inscription of every size of a row, and one that moved. */
function world(): World {
  const chain = new FakeChain()
  const mints = chain.mintAll('abc')
  const bodies = [utf8('note'), new Uint8Array(700_000).fill(7), utf8('')]
  const notes = bodies.map((body) => chain.inscribe({ contentType: 'text/plain; charset=utf-8', body }))
  return { chain, mints, notes }
}

async function fill(server: TestServer, { chain, mints, notes }: World): Promise<void> {
  for (const transaction of [chain.genesis, ...mints, ...notes]) {
    const topics = notes.includes(transaction) ? ['tm_ordinals'] : ['tm_names']
    expect((await server.submit(beefOf(transaction), topics)).status).toBe(200)
  }
}

/** What a host answers about all of a world. */
async function answers(server: TestServer, { mints, notes }: World): Promise<unknown[]> {
  const paths = [
    '/svc/names',
    ...mints.flatMap((mint) => [`/svc/names/origin/${'abc'.slice(0, mints.indexOf(mint) + 1)}`]),
    '/svc/names/abc',
    '/svc/names/proof/abc',
    '/svc/gateway/newest/names',
    ...notes.flatMap((note) => [`/content/${note.outpoint(0)}`, `/svc/gateway/metadata/${note.outpoint(0)}`]),
  ]
  const all: unknown[] = []
  for (const path of paths) {
    const { status, body } = await server.ask(path)
    all.push({ path, status, sha256: createHash('sha256').update(body).digest('hex') })
  }
  return all
}

/** The environment with the settings of a store, and those of the tree. */
const withTree = (env: Environment, { chain }: World): Environment => ({
  ...env,
  ...treeOf(chain.deployment),
})

async function backupFile(): Promise<string> {
  return join(await servers.folder(), 'store.backup')
}

/** Backs up a store while submissions go on, and restores it into another place. */
async function roundTrip(from: Environment, to: Environment): Promise<void> {
  const all = world()
  const server = await servers.start(withTree(from, all))
  await fill(server, all)
  const before = await answers(server, all)

  const file = await backupFile()
  let isDone = false
  const meanwhile: FakeTransaction[] = []
  const submitting = (async () => {
    while (!isDone) {
      const note = all.chain.inscribe({
        contentType: 'text/plain',
        body: utf8(`meanwhile ${meanwhile.length}`),
      })
      expect((await server.submit(beefOf(note), ['tm_ordinals'])).status).toBe(200)
      meanwhile.push(note)
    }
  })()
  const { code, stdout, stderr } = await cli.run(['backup', file, '--json'], withTree(from, all))
  isDone = true
  await submitting
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { rows, sha256 } = JSON.parse(stdout) as { rows: number; sha256: string }
  expect({ rows: rows > 20, sha256 }).toEqual({ rows: true, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect(meanwhile.length).toBeGreaterThan(0)

  const restored = await cli.run(['restore', file], withTree(to, all))
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/^restored [\d,]+ rows from /) })
  for (const store of [from, to])
    expect(await cli.run(['check'], withTree(store, all))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^verified [\d,]+ transactions/),
    })
  const other = await servers.start(withTree(to, all))
  expect(await answers(other, all)).toEqual(before)
  await other.node.maintenance.run()
  expect(other.node.maintenance.status.state).toBe('equal')
  // Of what came meanwhile, the backup has all up to some moment, and nothing of the rest.
  const held: boolean[] = []
  for (const note of meanwhile) held.push((await other.ask(`/content/${note.outpoint(0)}`)).status === 200)
  expect(held).toEqual([...held].sort((one, two) => Number(two) - Number(one)))
  // It goes on from there.
  for (const note of meanwhile) await other.submit(beefOf(note), ['tm_ordinals'])
  for (const note of meanwhile) expect((await other.ask(`/content/${note.outpoint(0)}`)).status).toBe(200)
  await other.stop()
  await server.stop()
}

onEachSharedEngine('on', ({ settings }) => {
  test(
    'a backup of a shared database that is made while submissions come is of one moment, and restored to the same answers',
    async () => {
      await roundTrip(await settings(), await settings())
    },
    PATIENCE,
  )

  test(
    'a backup overwrites nothing, and a database that holds a store is not restored into',
    async () => {
      const all = world()
      const env = withTree(await settings(), all)
      const server = await servers.start(env)
      await fill(server, all)
      const file = await backupFile()
      expect((await cli.run(['backup', file], env)).code).toBe(0)
      const before = await readFile(file)
      expect(await cli.run(['backup', file], env)).toMatchObject({
        ...{ code: 1, stdout: '' },
        stderr: expect.stringContaining('never overwrites a file'),
      })
      expect((await readFile(file)).equals(before)).toBe(true)
      const { code, stderr } = await cli.run(['restore', file], env)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining('it already holds a store'),
      })
      expect((await server.ask('/svc/names/abc')).status).toBe(200)
      await server.stop()
    },
    PATIENCE,
  )

  test(
    'of a file that was cut off, changed or is something else, nothing is restored',
    async () => {
      const all = world()
      const env = withTree(await settings(), all)
      const server = await servers.start(env)
      await fill(server, all)
      await server.stop()
      const good = await backupFile()
      expect((await cli.run(['backup', good], env)).code).toBe(0)
      const text = gunzipSync(await readFile(good)).toString('utf8')
      const lines = text.trimEnd().split('\n')
      const row = lines.findIndex((line) => line.startsWith('['))
      const damaged: [string, Uint8Array, string][] = [
        ['cut off', (await readFile(good)).subarray(0, -100), 'cannot read'],
        ['without its end', gzipSync(`${lines.slice(0, -1).join('\n')}\n`), 'is truncated'],
        ['less a row', gzipSync(`${lines.toSpliced(row, 1).join('\n')}\n`), 'checksum differs'],
        ['with a row changed', gzipSync(text.replace('"tm_names"', '"tm_mames"')), 'checksum differs'],
        ['of something else', gzipSync('{"format":"other"}\n'), 'is not a minetree backup'],
        ['that is no archive', utf8('hello'), 'cannot read'],
      ]
      const target = withTree(await settings(), all)
      for (const [what, bytes, why] of damaged) {
        const file = await backupFile()
        await writeFile(file, bytes)
        const { code, stderr } = await cli.run(['restore', file], target)
        expect({ what, code, stderr }).toEqual({ what, code: 1, stderr: expect.stringContaining(why) })
      }
      // Only a database that holds nothing is restored into.
      expect((await cli.run(['restore', good], target)).code).toBe(0)
    },
    PATIENCE,
  )
})
