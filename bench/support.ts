import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { pino } from 'pino'
import { formatOutpoint } from '../backend/src/protocol/outpoint.js'
import { type Config, readConfig } from '../src/server/config/config.js'
import type { FakeChain } from '../test/support/protocol/fake-chain.js'

/** The length of the live covenant's code, in bytes (docs/covenant.md). */
export const LIVE_CODE_SIZE = 5892

export const SILENT = pino({ level: 'silent' })

/** Runs with a temporary folder, which is removed afterwards. */
export async function withFolder<Result>(run: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  try {
    return await run(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** As {@link withFolder}, for generators of lines. */
export async function* inFolder(run: (folder: string) => AsyncGenerator<string>): AsyncGenerator<string> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  try {
    yield* run(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Collects all lines of a generator. */
export async function linesOf(lines: AsyncGenerator<string>): Promise<string[]> {
  const found: string[] = []
  for await (const line of lines) found.push(line)
  return found
}

/** The environment of a server that follows the tree of a fake chain, with further settings. */
export function settingsFor(
  chain: Pick<FakeChain, 'deployment'>,
  folder: string,
  others: Record<string, string> = {},
): Record<string, string> {
  const { genesis, difficulty, marker } = chain.deployment
  return {
    PORT: '0',
    DATA_DIR: folder,
    GENESIS: formatOutpoint(genesis),
    DIFFICULTY: String(difficulty),
    NAME_MARKER: Buffer.from(marker).toString('ascii'),
    CHAIN_TRACKER: 'scripts-only',
    LOG_LEVEL: 'silent',
    ...others,
  }
}

/** The same as a configuration. */
export function configFor(...settings: Parameters<typeof settingsFor>): Config {
  return readConfig(settingsFor(...settings))
}

/** Names whose mints make a chain of `count`: each extends the one before, until it is long and a new one starts. */
export function chainOfNames(count: number): string[] {
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  return Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / 20)
    return (letters[row] ?? '-') + 'n'.repeat(index % 20)
  })
}

export function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** The time of some work, in milliseconds. */
export interface Spent {
  wall: number
  /** The processor time of all threads of this process. */
  cpu: number
}

export async function spent(work: () => unknown): Promise<Spent> {
  const before = process.cpuUsage()
  const wall = await timed(work)
  const { user, system } = process.cpuUsage(before)
  return { wall, cpu: (user + system) / 1000 }
}

/** How long `work` takes, in milliseconds. */
export async function timed(work: () => unknown): Promise<number> {
  const start = process.hrtime.bigint()
  await work()
  return Number(process.hrtime.bigint() - start) / 1e6
}

/**
 * How long the main thread of a process had work without a core to do it on, in milliseconds (`proc(5)`, schedstat); 0 if the
 * process is gone, or the system does not say.
 */
export function inLineOf(pid: number): number {
  try {
    const [, nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')
    return Number(nanoseconds) / 1e6
  } catch {
    return 0
  }
}

/** The bytes of all pages in use of the store in a folder, including the write-ahead log. */
export function sizeOf(folder: string): number {
  return Object.values(sizesOf(folder)).reduce((sum, size) => sum + size, 0)
}

/** The same for each of its SQLite files. */
export function sizesOf(folder: string): Record<string, number> {
  const files = readdirSync(folder).filter((file) => /\.(?:sqlite|db)$/.test(file))
  return Object.fromEntries(
    files.map((file) => {
      const database = new Database(join(folder, file))
      const { bytes } = database.prepare(SIZE).get() as { bytes: number }
      database.close()
      return [file, bytes]
    }),
  )
}

const SIZE = `select (page_count - freelist_count) * page_size as bytes
  from pragma_page_count, pragma_freelist_count, pragma_page_size`
