import { readFileSync, writeFileSync } from 'node:fs'
import { type ServerProcess, startServerProcess } from '../../support/server/server-process.js'
import type { Environment } from '../../support/server/test-server.js'

/** A server that is attacked: the command, as a process of its own. */
export interface AttackedServer extends Pick<ServerProcess, 'url' | 'pid' | 'isRunning'> {
  /** The most memory that it has had since it was last asked to forget, in bytes. */
  peakMemory(): number
  forgetPeak(): void
  /** Ends it, where it has not ended by itself. */
  stop(): Promise<void>
}

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
  const server = await startServerProcess({
    ...{ main, env: { PORT: '0', LOG_LEVEL: 'info', ...env } },
    flags: profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`],
  })
  const { pid, isRunning, kill } = server
  const peakNow = (): number => {
    const [, kilobytes] = /^VmHWM:\s*(\d+) kB$/m.exec(statusOf(pid)) ?? []
    return Number(kilobytes ?? 0) * 1024
  }
  let peak = 0
  // What it had is gone with the process: looked at now and then, so that a server that dies has had something.
  const watch = setInterval(() => {
    peak = Math.max(peak, peakNow())
  }, 50)
  return {
    ...server,
    peakMemory: () => Math.max(peak, peakNow()),
    forgetPeak() {
      // `proc(5)`, clear_refs: 5 resets the peak.
      writeFileSync(`/proc/${pid}/clear_refs`, '5')
      peak = 0
    },
    async stop() {
      clearInterval(watch)
      if (!isRunning()) return
      const patience = profileFolder === undefined ? PATIENCE : PROFILING_PATIENCE
      const killing = setTimeout(() => void kill('SIGKILL'), patience)
      await kill('SIGTERM')
      clearTimeout(killing)
    },
  }
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    // It has ended just now.
    return ''
  }
}
