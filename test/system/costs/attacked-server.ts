import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Environment } from '../../support/server/test-server.js'

/** A server that is attacked: the command, as a process of its own. */
export interface AttackedServer {
  url: string
  pid: number
  isRunning(): boolean
  /** The most memory that it has had since it was last asked to forget, in bytes. */
  peakMemory(): number
  forgetPeak(): void
  /** The last that it said on stderr. */
  stderr(): string
  /** Ends it, where it has not ended by itself. */
  stop(): Promise<void>
}

const KEPT_STDERR = 4000
/** How long a server may take to end by itself, in milliseconds; longer where it is to leave profiles. */
const PATIENCE = 5000
const PROFILING_PATIENCE = 60_000

/**
 * Starts the compiled command as `npm start` does, and waits until it listens.
 *
 * @param options.main The built command line, `dist/cli/main.js`.
 * @param options.profileFolder Where Node writes CPU profiles of its threads when it ends.
 */
export async function startAttackedServer(options: {
  main: string
  env: Environment
  profileFolder?: string
}): Promise<AttackedServer> {
  const { main, env, profileFolder } = options
  const profiling = profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]
  const child = spawn(process.execPath, [...profiling, main, 'serve'], {
    env: { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'info', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  let peak = 0
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-KEPT_STDERR)
  })
  const exited = once(child, 'exit')
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  const field = (name: string): number => {
    const [, kilobytes] = new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(statusOf(child.pid)) ?? []
    return Number(kilobytes ?? 0) * 1024
  }
  const url = await Promise.race([
    new Promise<string>((resolve) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [, listening] = /listening on (http:[^"]+)/.exec(line) ?? []
        if (listening !== undefined) resolve(listening)
      })
    }),
    exited.then((): never => {
      throw new Error(`the server ended before it listened: ${stderr}`)
    }),
  ])
  // What it had is gone with the process: looked at now and then, so that a server that dies has had something.
  const watch = setInterval(() => {
    peak = Math.max(peak, field('VmHWM'))
  }, 50)
  return {
    url,
    pid: child.pid ?? 0,
    isRunning,
    peakMemory: () => Math.max(peak, field('VmHWM')),
    forgetPeak() {
      // `proc(5)`, clear_refs: 5 resets the peak.
      writeFileSync(`/proc/${child.pid}/clear_refs`, '5')
      peak = 0
    },
    stderr: () => stderr,
    async stop() {
      clearInterval(watch)
      if (!isRunning()) return
      child.kill('SIGTERM')
      const patience = profileFolder === undefined ? PATIENCE : PROFILING_PATIENCE
      const kill = setTimeout(() => child.kill('SIGKILL'), patience)
      await exited
      clearTimeout(kill)
    },
  }
}

function statusOf(pid: number | undefined): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    // It has ended just now.
    return ''
  }
}
