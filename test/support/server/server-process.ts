import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Environment } from './test-server.js'
import { untilListening } from './until-listening.js'

/** How a process ended, and the last it said on stderr. */
export interface ProcessEnd {
  code: number | null
  signal: NodeJS.Signals | null
  stderr: string
}

/** What a process holds. */
export interface Usage {
  /** Memory that is in the machine's own, in bytes. */
  rss: number
  /** Open files, sockets and such. */
  handles: number
}

/** A server that runs for long: of what it says, nothing is kept but what somebody asks for. */
export interface ServerProcess {
  url: string
  pid: number
  ended: Promise<ProcessEnd>
  isRunning(): boolean
  /** Undefined once it has ended, and where the system does not tell. */
  usage(): Usage | undefined
  kill(signal: NodeJS.Signals): Promise<ProcessEnd>
}

const KEPT_STDERR = 20_000

/**
 * Starts the compiled command as a server, and waits until its log says that it listens.
 *
 * @param options.main The built command line, `dist/cli/main.js`.
 * @param options.flags Of Node.
 * @param options.onLine Called with every line of its log.
 * @throws Error where it ends before it listens.
 */
export async function startServerProcess(options: {
  main: string
  env: Environment
  flags?: readonly string[]
  onLine?: (line: string) => void
}): Promise<ServerProcess> {
  const { main, env, flags = [], onLine } = options
  const child = spawn(process.execPath, [...flags, main, 'serve'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-KEPT_STDERR)
  })
  const ended = once(child, 'close').then(([code, signal]): ProcessEnd => ({ code, signal, stderr }))
  if (onLine !== undefined) createInterface({ input: child.stdout }).on('line', onLine)
  const url = await untilListening(child)
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  return {
    url,
    pid: child.pid ?? 0,
    ended,
    isRunning,
    usage: () => (isRunning() && child.pid !== undefined ? usageOf(child.pid) : undefined),
    async kill(signal) {
      child.kill(signal)
      return await ended
    },
  }
}

function usageOf(pid: number): Usage | undefined {
  try {
    const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kilobytes === undefined
      ? undefined
      : { rss: Number(kilobytes) * 1024, handles: readdirSync(`/proc/${pid}/fd`).length }
  } catch {
    // It has ended just now, or this is a system without /proc.
    return undefined
  }
}
