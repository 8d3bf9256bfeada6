import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { packageFolder } from '../src/server/config/package-info.js'

/** How long after it is ready a process counts as idle, in milliseconds. */
const REST = 2000

const ROOT = packageFolder()
const BARE_EXPRESS = `require('express')().get('/health/ready', (_request, response) => response.json({})).listen(process.env.PORT, '127.0.0.1', () => console.log('listening'))`

/** The parts of a node without our own code: Express, SQLite, and a thread with SQLite. FILE names a database. */
export const PARTS_ALONE = `
const OPEN = "globalThis.file = new (require('libsql'))(process.env.FILE); file.prepare('select count(*) from counts').get()"
new (require('node:worker_threads').Worker)(OPEN + '; setInterval(() => {}, 1e6)', { eval: true })
eval(OPEN)
${BARE_EXPRESS}`

/** A server to start. It says `listening` on standard output; PORT is added to its environment. */
interface Program {
  parameters: string[]
  env?: Record<string, string>
}

/** The time of a start until `/health/ready` answers 200, in milliseconds, and the memory of the idle process, in MiB. */
export async function startOf({ parameters, env = {} }: Program): Promise<{ ready: number; memory: number }> {
  const port = await freePort()
  const began = performance.now()
  const child = spawn(process.execPath, parameters, {
    cwd: ROOT,
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  try {
    await listens(child)
    await answered(`http://127.0.0.1:${port}/health/ready`)
    const ready = performance.now() - began
    await setTimeout(REST)
    return { ready, memory: memoryOf(child) }
  } finally {
    if (child.kill()) await ended
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Waits until a process says that it listens. @throws Error if it ends first. */
async function listens(child: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('listening')) resolve()
    })
    child.once('exit', (code) =>
      reject(new Error(`a process ended with ${code} before it listened: ${said}`)),
    )
  })
}

/** Waits until a server that listens answers with success. */
async function answered(url: string): Promise<void> {
  while (!(await fetch(url)).ok) await setTimeout(20)
}

/** The resident memory of a process, in MiB. */
function memoryOf({ pid }: ChildProcess): number {
  const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return Number(kibibytes) / 1024
}
