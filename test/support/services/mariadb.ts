import { type ChildProcessWithoutNullStreams, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import pRetry from 'p-retry'
import { freePort } from './free-port.js'

/** A MariaDB of its own, in a temp folder, that listens on 127.0.0.1. */
export interface Mariadb {
  port: number
  /** Where a database of it is, as `KNEX_URL` says it. */
  url(database: string): string
  /** Ends it by SIGKILL. */
  kill(): Promise<void>
  /** Starts it again, where it was and with what it has on its disk, after {@link kill}. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Where a database is on the server that listens on a port. */
export function mariadbUrl(port: number, database: string): string {
  return `mysql://root@127.0.0.1:${port}/${database}`
}

const INSTALL = 'mariadb-install-db'
const SERVER = 'mariadbd'

/** Which of its programmes this machine lacks: tests that need them are skipped. */
export const MISSING_FOR_MARIADB = [INSTALL, SERVER].filter(
  (program) => spawnSync('sh', ['-c', `command -v ${program}`], { env: environment() }).status !== 0,
)

/** A server that starts fast. */
const SETTINGS = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--skip-log-bin',
  '--performance-schema=off',
  '--innodb-buffer-pool-size=64M',
  '--innodb-log-file-size=16M',
  '--max-allowed-packet=64M',
]

/** And keeps nothing: what it holds ends with it. */
const FORGETFUL = [
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-flush-method=nosync',
  '--skip-innodb-doublewrite',
]

/**
 * Runs the server after `$0` until nobody holds the other end of its input, then removes the folder `$0`. So it ends with
 * the process that started it, however that ends. By lines of its input it is killed and started again.
 */
const UNTIL_INPUT_ENDS =
  'go() { "$@" >/dev/null & }; go "$@"; while read -r line; do case $line in kill) kill -9 $!; wait; echo;; start) go "$@";; esac; done; kill -9 $!; wait; rm -rf "$0"'

/**
 * Starts one.
 *
 * @param options.isDurable Whether what is committed is on the disk, as where it is to outlive a power loss: for figures.
 * @throws Error where it does not start.
 */
export async function startMariadb({ isDurable = false } = {}): Promise<Mariadb> {
  // Somebody else may have taken the port meanwhile.
  return await pRetry(() => tryToStart(isDurable ? SETTINGS : [...SETTINGS, ...FORGETFUL]), { retries: 2 })
}

async function tryToStart(settings: string[]): Promise<Mariadb> {
  const folder = mkdtempSync(join(tmpdir(), 'minetree-mariadb-'))
  // A folder for temporary files of its own, too: a server that starts removes those of others.
  const own = ['--no-defaults', `--datadir=${join(folder, 'data')}`, `--tmpdir=${folder}`, ...asRoot()]
  await promisify(execFile)(
    INSTALL,
    [...own, '--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve'],
    { env: environment() },
  )
  const port = await freePort()
  const server = [
    SERVER,
    ...own,
    `--port=${port}`,
    `--socket=${join(folder, 'socket')}`,
    `--pid-file=${join(folder, 'pid')}`,
    ...settings,
  ]
  const shell = spawn('sh', ['-c', UNTIL_INPUT_ENDS, folder, ...server], {
    env: environment(),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  await untilReady(shell)
  return {
    port,
    url: (database) => mariadbUrl(port, database),
    async kill() {
      shell.stdin.write('kill\n')
      await once(shell.stdout, 'data')
    },
    async restart() {
      shell.stdin.write('start\n')
      await untilReady(shell)
    },
    async stop() {
      const ended = once(shell, 'exit')
      shell.stdin.end()
      await ended
    },
  }
}

async function untilReady({ stdin, stderr }: ChildProcessWithoutNullStreams): Promise<void> {
  const said: string[] = []
  const lines = createInterface({ input: stderr })
  for await (const line of lines) {
    if (line.includes('ready for connections')) {
      // What is not read fills the pipe, and then the server waits.
      stderr.resume()
      return
    }
    said.push(line)
    if (line.includes('[ERROR]')) break
  }
  stdin.end()
  throw new Error(`MariaDB does not start: ${said.join('\n')}`)
}

function asRoot(): string[] {
  return process.getuid?.() === 0 ? ['--user=root'] : []
}

/** Debian has servers where only root looks. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` }
}
