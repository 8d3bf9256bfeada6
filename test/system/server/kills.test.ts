import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { build, stop } from 'esbuild'
import { ConflictError } from '../../../src/server/submission/errors.js'
import { type Deed, does, everyDeed } from '../../support/graph/deeds.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, untilReady, useServers } from '../../support/server/test-server.js'
import { withTestStorage } from '../../support/storage/test-storage.js'

// Real processes, killed before every statement that they write with. The tables of a host that comes back and is sent
// everything again have to be those of one that was never killed.

const servers = useServers()
/** Before which statements: each of them by `KILL_EVERY=1`, which takes minutes; a fixed sample of them by default. */
const EVERY = Number(process.env.KILL_EVERY ?? 31)
/** In milliseconds: processes start slowly where many do. */
const PATIENCE = Math.max(600_000, 12_000_000 / EVERY)

const chain = new FakeChain()

const deeds = everyDeed(chain)
let folder: string
let program: string
let everything: string
let rebuild: string
let undisturbed: { dataDir: string; rows: Record<string, string[]> }

beforeAll(async () => {
  const builds = resolve(import.meta.dirname, '../../../node_modules/.cache')
  folder = await mkdtemp(join(builds, 'minetree-kills-'))
  program = join(folder, 'killed-node.mjs')
  // In one file, since most of what a process takes to start is finding and reading modules.
  await build({
    entryPoints: [resolve(import.meta.dirname, '../../support/server/killed-node.ts')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['libsql', 'knex'],
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`,
    },
    outfile: program,
    logLevel: 'error',
  })
  const file = async (name: string, some: Deed[]): Promise<string> => {
    const path = join(folder, name)
    await writeFile(path, JSON.stringify({ env: withTestStorage(SETTINGS), deeds: some }))
    return path
  }
  everything = await file('everything.json', deeds)
  rebuild = await file('rebuild.json', [{ do: 'reindex' }])
  const dataDir = await servers.folder()
  await run({ deeds: everything, dataDir, at: 0 })
  undisturbed = { dataDir, rows: await comeBack(dataDir, []) }
}, PATIENCE)

// The statements of tables are counted; facts have tests of their own (`test/histories`).
const SETTINGS = { STORAGE: 'tables', ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' }

const children = new Set<ChildProcess>()
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await rm(folder, { recursive: true })
  await stop()
})

/** Has a process of its own do something, up to its n-th statement that writes. */
async function run(options: {
  deeds: string
  dataDir: string
  at: number
}): Promise<{ signal: string | null; stdout: string }> {
  const { deeds, dataDir, at } = options
  const child = spawn(process.execPath, [program, deeds, String(at)], {
    env: { PATH: process.env.PATH, DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  let stdout = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  const [, signal] = await once(child, 'close')
  children.delete(child)
  return { signal, stdout }
}

/**
 * Has a process killed before one statement after the other, each over a store of its own, and looks at what a host that
 * opens the store again ends with.
 */
async function killAtEach(options: {
  deeds: string
  /** A store to start from; by default, none. */
  from?: string
  /** What the host is sent when it is back. */
  again: Deed[]
  rows: Record<string, string[]>
}): Promise<void> {
  const { deeds, from, again, rows } = options
  const store = async (): Promise<string> => {
    const dataDir = await servers.folder()
    if (from !== undefined) await cp(from, dataDir, { recursive: true })
    return dataDir
  }
  const { signal, stdout } = await run({ deeds, dataDir: await store(), at: 0 })
  expect(signal).toBeNull()
  const statements = Number(stdout)
  expect(statements).toBeGreaterThan(20)
  const numbers = Array.from({ length: statements }, (_, index) => index + 1)
  const waiting = numbers.filter((at) => at % EVERY === 0 || at === 1)
  const worker = async (): Promise<void> => {
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const dataDir = await store()
      expect(await run({ deeds, dataDir, at })).toMatchObject({ signal: 'SIGKILL' })
      expect({ at, ...(await comeBack(dataDir, again)) }).toEqual({ at, ...rows })
      await rm(dataDir, { recursive: true })
    }
  }
  // Each waits for its process most of the time.
  await Promise.all([worker(), worker()])
}

/** Opens a store again, repeats the deeds, and reads what it ends with. */
async function comeBack(dataDir: string, again: Deed[]): Promise<Record<string, string[]>> {
  const server = await servers.start({ ...SETTINGS, DATA_DIR: dataDir })
  try {
    await untilReady(server)
    for (const deed of again) {
      try {
        await does(server.node, deed)
      } catch (error) {
        // What has lost by now is refused when it comes again, and stays as it is.
        if (!(error instanceof ConflictError)) throw error
      }
    }
    return timeless(server)
  } finally {
    await server.stop()
  }
}

/** The rows, but for the scores of admissions and the time of blocks, and for how often a branch was reorganised. */
function timeless(server: TestServer): Record<string, string[]> {
  const { graph_admissions = [], graph_blocked = [], graph_settings = [], ...rows } = server.rows()
  const withoutLast = (row: string): string => JSON.stringify(JSON.parse(row).slice(0, -1))
  return {
    ...rows,
    graph_admissions: graph_admissions.map(withoutLast).sort(),
    graph_blocked: graph_blocked.map(withoutLast).sort(),
    graph_settings: graph_settings.filter((row) => !row.includes('"turns"')),
  }
}

test(
  'whenever a host is killed, the tables are those of one that never was, when it is back and has been sent everything again',
  async () => {
    await killAtEach({ deeds: everything, again: deeds, rows: undisturbed.rows })
  },
  PATIENCE,
)

test(
  'whenever a rebuild of the index is killed, the next start goes on with it, and the tables are what they were',
  async () => {
    await killAtEach({ deeds: rebuild, from: undisturbed.dataDir, again: [], rows: undisturbed.rows })
  },
  PATIENCE,
)
