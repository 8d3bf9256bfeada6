import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../server/test-server.js'
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

/**
 * The command as it is installed, for the tests of one file: compiled from the sources as they are, and run as a process
 * of its own, or that in another folder. What still runs when the tests are done is killed.
 */
export function useBuiltCli(options: { folder?: () => string } = {}): {
  /** Runs to the end. */
  run(args: string[], env?: Environment, as?: User): Promise<Ended>
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

  const start = (args: string[], env: Environment = {}, as: User = {}): Running => {
    const child = spawn(process.execPath, [join(folder, 'dist/cli/main.js'), ...args], {
      // Nothing of the environment that the tests run in, but the way to the programs.
      env: { PATH: process.env.PATH, XDG_CACHE_HOME: cache, XDG_DATA_HOME: cache, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...as,
    })
    children.push(child)
    let stdout = ''
    let stderr = ''
    let heard: (url: string) => void = () => {}
    const url = new Promise<string>((found) => {
      heard = found
    })
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString('utf8')
      const [, listening] = /listening on (http:[^"\s]+)["\s]/.exec(stdout) ?? []
      if (listening !== undefined) heard(listening)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString('utf8')
    })
    const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, stdout, stderr }))
    const failed = ended.then((end): never => {
      throw new Error(`ended before it listened: ${JSON.stringify(end)}`)
    })
    const listening = Promise.race([url, failed])
    // A test that only waits for the end does not ask for the url.
    listening.catch(() => {})
    return { child, url: listening, ended }
  }
  return { start, run: async (args, env, as) => await start(args, env, as).ended, folder: () => folder }
}
