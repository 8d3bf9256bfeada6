import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { transform } from 'esbuild'
import { freePort } from '../services/free-port.js'

/** The port that pages name. */
const PORT = '8080'
/** What `npx minetree` runs, as it is installed or built here, without npm in between, which takes longer than most commands. */
const WITHOUT_NPM = (main: string): string => `npx() { node ${main} "\${@:2}"; };`
const MAINS = ['node_modules/.bin/minetree', 'dist/cli/main.js']

interface WalkOptions {
  /** Where commands run. */
  cwd: string
  /** The home of the one who types them. */
  home: string
  /** Settings of the server and of every command. */
  settings?: Record<string, string>
}

/** Does what a page says, exactly as written; only the port differs. */
export class Walk {
  private server: ReturnType<typeof spawn> | undefined
  private programs = 0
  /** Once is enough. */
  private hasAskedNpm = false

  private constructor(
    private readonly cwd: string,
    private readonly env: Record<string, string | undefined>,
    private readonly port: string,
  ) {}

  static async begin({ cwd, home, settings }: WalkOptions): Promise<Walk> {
    const port = String(await freePort())
    return new Walk(cwd, { PATH: process.env.PATH, HOME: home, PORT: port, ...settings }, port)
  }

  /** Runs a command. Returns what it prints. @throws Error with what it complains about, unless it ends with 0. */
  async run(command: string): Promise<string> {
    const main = this.hasAskedNpm ? MAINS.find((each) => existsSync(join(this.cwd, each))) : undefined
    this.hasAskedNpm ||= command.startsWith('npx ')
    const args = ['-c', (main ? WITHOUT_NPM(main) : '') + command.replaceAll(PORT, this.port)]
    const child = spawn('bash', args, { cwd: this.cwd, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}`)
    return stdout
  }

  /** Runs a program in TypeScript. Returns what it prints. */
  async runProgram(program: string): Promise<string> {
    const file = `program-${++this.programs}.mjs`
    const { code } = await transform(program.replaceAll(PORT, this.port), { loader: 'ts', target: 'es2022' })
    await writeFile(join(this.cwd, file), code)
    return await this.run(`node ${file}`)
  }

  /** Runs a command that serves, until the walk ends; returns when it says what is to be waited for, on either output. */
  async serve(command: string, says: string): Promise<void> {
    const options = { cwd: this.cwd, env: this.env, detached: true } as const
    const server = spawn('bash', ['-c', command], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    this.server = server
    let output = ''
    await new Promise<void>((ready, failed) => {
      for (const stream of [server.stdout, server.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString()
          if (output.includes(says)) ready()
        })
      server.on('close', (code) => failed(new Error(`${command} ended with ${code}: ${output}`)))
    })
  }

  async end(): Promise<void> {
    if (this.server?.exitCode !== null || this.server.pid === undefined) return
    process.kill(-this.server.pid, 'SIGTERM')
    await once(this.server, 'close')
  }
}
