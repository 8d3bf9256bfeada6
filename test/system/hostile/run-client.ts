import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** A program to run until it ends, or has had too much. */
export interface ClientRun {
  /** The built command line, `dist/cli/main.js`, or another program for Node with its arguments. */
  program: readonly string[]
  args: readonly string[]
  env: Record<string, string>
  /** Where it runs. */
  folder: string
  /** How long it may take, in milliseconds, and how much memory it may have, in bytes, before it is killed. */
  most: { time: number; memory: number }
}

/** What became of it. */
export interface ClientEnd {
  code: number | null
  /** Why it was killed; undefined where it ended by itself. */
  killed: 'time' | 'memory' | undefined
  stdout: string
  stderr: string
  /** The most memory that the process had, in bytes (`VmHWM`). */
  peak: number
}

/** How much of an output is kept; a client that prints more does so in vain. */
const KEPT_OUTPUT = 64 * 1024 * 1024
/** How often the memory is looked at, in milliseconds. */
const TICK = 25

/** Runs a client as a process of its own, with nothing of this one's environment but the way to programs. */
export async function runClient({ program, args, env, folder, most }: ClientRun): Promise<ClientEnd> {
  const child = spawn(process.execPath, [...program, ...args], {
    cwd: folder,
    // What a command remembers of its user goes into the folder, too.
    env: { PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].on('data', (chunk: Buffer) => {
      if (output[stream].length < KEPT_OUTPUT) output[stream] += chunk.toString('utf8')
    })
  }
  let peak = 0
  let killed: ClientEnd['killed']
  const kill = (why: ClientEnd['killed']): void => {
    killed ??= why
    child.kill('SIGKILL')
  }
  const watch = setInterval(() => {
    peak = Math.max(peak, peakMemory(child.pid))
    if (peak > most.memory) kill('memory')
  }, TICK)
  const impatience = setTimeout(() => kill('time'), most.time)
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(watch)
  clearTimeout(impatience)
  return { code, killed, ...output, peak }
}

/** The most memory that a process has had, in bytes; 0 where it has ended. */
function peakMemory(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
