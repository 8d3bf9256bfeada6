import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageFolder } from '../../../src/server/config/package-info.js'

/**
 * A server that speaks the wire protocol of MongoDB: mongo-java-server, in memory. What it does as the real one does: finds
 * with every operator that the store asks with, sorts of binary values, null and numbers, projections, `bulkWrite` with
 * upserts, `$set`, `$setOnInsert` and `$inc`, `findOneAndUpdate`, and unique keys with error 11000.
 *
 * What it does not do: it has no planner and no `explain`, sessions and transactions are refused, and an index that is not
 * unique is there by name alone: what is not asked by `_id` (equal, or `$in`) is looked for in all documents.
 */
export interface Mongo {
  port: number
  /** Where a database of it is, as a connection string. */
  url(database: string): string
  stop(): Promise<void>
}

/** Where a database is on the server that listens on a port. */
export function mongoUrl(port: number, database: string): string {
  return `mongodb://127.0.0.1:${port}/${database}`
}

const SOURCE = join(packageFolder(), 'test', 'support', 'services', 'mongo-java-server')
/** Outside of the tree, and another one where the source is. */
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'minetree')
const BUILT = join(CACHE, `mongo-java-server-${hashOf(['pom.xml', 'src/main/java/MongoService.java'])}`)

/** What this machine lacks for it: tests that need it are skipped. Quick tests need none, and do not wait for its build. */
export const MISSING_FOR_MONGO = process.env.TEST_TIER === 'quick' ? ['server in quick tests'] : missing()

function missing(): string[] {
  const isBuilt = existsSync(BUILT)
  const programs = (isBuilt ? ['java'] : ['java', 'mvn']).filter(
    (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
  )
  if (programs.length > 0 || isBuilt) return programs
  return build() ? [] : ['mongo-java-server, which mvn does not bring']
}

/** Builds it aside, as several tests may do so at once. */
function build(): boolean {
  mkdirSync(CACHE, { recursive: true })
  const output = mkdtempSync(join(CACHE, 'building-'))
  const maven = ['-q', '-B', `-Doutput=${output}`, '-f', SOURCE, 'package']
  const isBuilt = spawnSync('mvn', maven, { timeout: 300_000 }).status === 0
  try {
    if (isBuilt) renameSync(output, BUILT)
  } catch (error) {
    // Another was first, and its folder is not overwritten.
    if (!existsSync(BUILT)) throw error
  } finally {
    rmSync(output, { recursive: true, force: true })
  }
  return isBuilt
}

/**
 * Starts one.
 *
 * @param options.isCompiled Whether it may take the time to compile what it does often as well as it can: for figures.
 * @throws Error where it does not start.
 */
export async function startMongo({ isCompiled = false } = {}): Promise<Mongo> {
  const classes = [join(BUILT, 'mongo-service.jar'), join(BUILT, 'libs', '*')].join(':')
  // It lives for a test: what a compiler would take longer over than that is left out.
  const compiler = isCompiled ? [] : ['-XX:TieredStopAtLevel=1']
  const child = spawn('java', [...compiler, '-cp', classes, 'MongoService'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(() => [undefined]),
  ])
  if (line === undefined) throw new Error(`the server ended with ${child.exitCode}`)
  const port = Number(line)
  return {
    port,
    url: (database) => mongoUrl(port, database),
    async stop() {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}

function hashOf(files: string[]): string {
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(join(SOURCE, file)))
  return hash.digest('hex').slice(0, 16)
}
