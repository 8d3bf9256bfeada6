import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { Script } from 'node:vm'
import type { Environment } from '../server/test-server.js'
import { untilListening } from '../server/until-listening.js'
import { builtPackage } from './built-package.js'

type User = Pick<SpawnOptions, 'uid' | 'gid'>

/** A run of the command that has ended. */
export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** A run of the command that goes on. */
export interface Running {
  child: ChildProcess
  /** Where the server listens, as soon as its log says so. */
  url: Promise<string>
  ended: Promise<Ended>
}

/** The bundle of the command, as `src/cli/start.ts` runs it. */
type Program = (require: NodeJS.Require, filename: string, dirname: string) => void

const programs = new Map<string, (process: NodeJS.Process) => Program>()

/** The bundle in a file, as what makes it for a process. It is compiled once a worker. */
function programIn(file: string): (process: NodeJS.Process) => Program {
  const made =
    programs.get(file) ?? new Script(`(process) => ${readFileSync(file, 'latin1')}`).runInThisContext()
  programs.set(file, made)
  return made
}

/** Runs the bundle in this process, from its start to its end, with a `process` of its own. */
async function called(file: string, args: string[], env: Environment): Promise<Ended> {
  const said = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof said) => {
    const write = (chunk: Buffer, _: string, done: () => void): void => {
      said[name] += chunk.toString('utf8')
      done()
    }
    return { value: new Writable({ write }) }
  }
  return await new Promise((resolve) => {
    const end = (): void => void setImmediate(() => resolve({ code: own.exitCode, signal: null, ...said }))
    const own = Object.create(process, {
      ...{ argv: { value: [process.execPath, file, ...args] }, env: { value: env } },
      ...{ stdin: { value: Readable.from([]) }, stdout: stream('stdout'), stderr: stream('stderr') },
      exitCode: { value: 0, writable: true },
      ...{ on: { value: () => own }, once: { value: () => own } },
      // Once it is done, it does not want to hear any more of an end that comes too early.
      off: { value: (event: string) => (event === 'beforeExit' ? end() : undefined) },
    })
    const require = createRequire(file)
    const load = (id: string): unknown => (/^(?:node:)?process$/.test(id) ? own : require(id))
    programIn(file)(own)(Object.assign(load, require), file, dirname(file))
  })
}

/**
 * The command as it is installed, for the tests of one file: compiled from the sources as they are, and run as a process
 * of its own, or that in another folder. What still runs when the tests are done is killed.
 */
export function useBuiltCli(options: { folder?: () => string } = {}): {
  /** Runs to the end, as a process. */
  run(args: string[], env?: Environment, as?: User): Promise<Ended>
  /** The same in this process, which takes a third: for all but the first run of a command. */
  call(args: string[], env?: Environment): Promise<Ended>
  start(args: string[], env?: Environment): Running
  /** The folder of the package, with what is built in its `dist`. */
  folder(): string
} {
  const children: ChildProcess[] = []
  let folder = ''
  /** What commands keep for the next one, for these tests alone. */
  let cache = ''
  beforeAll(async () => {
    folder = options.folder?.() ?? (await builtPackage())
    cache = await mkdtemp(join(tmpdir(), 'minetree-cache-'))
  })
  afterAll(async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await rm(cache, { recursive: true, force: true })
  })

  /** Nothing of the environment that the tests run in, but the way to the programs. */
  const environment = (env: Environment): Environment => ({
    ...{ PATH: process.env.PATH ?? '', XDG_CACHE_HOME: cache, XDG_DATA_HOME: cache },
    ...env,
  })
  const start = (args: string[], env: Environment = {}, as: User = {}): Running => {
    const child = spawn(process.execPath, [join(folder, 'dist/cli/main.js'), ...args], {
      env: environment(env),
      stdio: ['ignore', 'pipe', 'pipe'],
      ...as,
    })
    children.push(child)
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString('utf8')
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString('utf8')
    })
    const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, stdout, stderr }))
    const url = untilListening(child)
    // A test that only waits for the end does not ask for it.
    url.catch(() => {})
    return { child, url, ended }
  }
  return {
    start,
    run: async (args, env, as) => await start(args, env, as).ended,
    call: async (args, env = {}) =>
      await called(join(folder, 'dist/cli/main.program.cjs'), args, environment(env)),
    folder: () => folder,
  }
}
