import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { packageFolder } from '../src/server/config/package-info.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { fill } from './memory.js'
import { median, settingsFor, withFolder } from './support.js'

const ROUNDS = 7
/** In how many of them memory is measured, and how long after it is ready a process is at rest, in milliseconds. */
const ROUNDS_AT_REST = 3
const REST = 2000

const ROOT = packageFolder()
const MAIN = join(ROOT, 'dist/cli/main.js')
const BARE_EXPRESS = `require('express')().get('/health/ready', (_request, response) => response.json({})).listen(process.env.PORT, '127.0.0.1', () => console.log('listening'))`

/** What a node is made of without anything of ours: Express, SQLite, and a thread with SQLite. FILE names a database. */
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

/** One start. CPU is of the process, in milliseconds; memory in MiB. */
interface Start {
  /** By the clock, in milliseconds. */
  wall: number
  listening: number
  /** Until `/health/ready` answers 200. */
  ready: number
  /** The same by the clock. */
  readyWall: number
  memory?: number
}

/**
 * What a start takes of the command line that was built last: processor time until it listens and until it is ready, with an
 * empty store and with 100,000 outputs, and memory at rest. Against `node -e 0`, and against a bare Express server; by turns.
 */
export async function* start(): AsyncGenerator<string> {
  if (process.platform !== 'linux' || !existsSync(MAIN)) {
    yield 'left out: it needs Linux, and the command line as `npm run build` makes it'
    return
  }
  yield* await withFolder(measure)
}

async function measure(folder: string): Promise<string[]> {
  const chain = new FakeChain()
  await fill(join(folder, 'filled'), { isShort: true })
  const ours = (store: string): Program => ({
    parameters: [MAIN, 'serve'],
    env: settingsFor(chain, join(folder, store), { LOG_LEVEL: 'info' }),
  })
  const programs: Record<string, Program> = {
    'a bare Express server': { parameters: ['-e', BARE_EXPRESS] },
    'an empty store': ours('empty'),
    '100,000 outputs': ours('filled'),
  }
  const starts = new Map(Object.keys(programs).map((name) => [name, [] as Start[]]))
  const bare: { cpu: number; memory: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(await bareNode())
    for (const [name, program] of Object.entries(programs))
      starts.get(name)?.push(await startOf(program, { isAtRest: round < ROUNDS_AT_REST }))
  }
  const node = { cpu: median(bare.map(({ cpu }) => cpu)), memory: median(bare.map(({ memory }) => memory)) }
  const ofStarts = [...starts].map(([name, all]) => ({
    name,
    wall: median(all.map(({ wall }) => wall)),
    listening: median(all.map(({ listening }) => listening)),
    ready: median(all.map(({ ready }) => ready)),
    memory: median(all.flatMap(({ memory = [] }) => memory)),
  }))
  const [express] = ofStarts
  const lines = ofStarts.map(({ name, wall, listening, ready, memory }) => {
    const ratios = (value: number, toNode: number, toExpress = Number.NaN): string =>
      `(${(value / toNode).toFixed(1)} and ${(value / toExpress).toFixed(1)} times)`
    return [
      `${name}: listening after ${listening.toFixed(0)} ms ${ratios(listening, node.cpu, express?.listening)}`,
      `(${wall.toFixed(0)} ms by the clock)`,
      `ready after ${ready.toFixed(0)} ms ${ratios(ready, node.cpu, express?.ready)}`,
      `at rest ${memory.toFixed(0)} MiB ${ratios(memory, node.memory, express?.memory)}`,
    ].join(', ')
  })
  return [
    `processor time, medians of ${ROUNDS}, and ratios to \`node -e 0\` and to a bare Express server`,
    `node -e 0: ${node.cpu.toFixed(0)} ms, ${node.memory.toFixed(0)} MiB`,
    ...lines,
    'wanted: listening after 300 ms, ready after 1,000 ms with 100,000 outputs, below 100 MiB at rest',
  ]
}

/** What `node -e 0` takes, but for the line that says so. */
async function bareNode(): Promise<{ cpu: number; memory: number }> {
  const report = `console.log(JSON.stringify([process.cpuUsage(), process.memoryUsage.rss()]))`
  const child = spawn(process.execPath, ['-e', report], { stdio: ['ignore', 'pipe', 'inherit'] })
  const texts = await child.stdout.setEncoding('utf8').toArray()
  const [{ user, system }, rss] = JSON.parse(texts.join('')) as [NodeJS.CpuUsage, number]
  return { cpu: (user + system) / 1000, memory: rss / 2 ** 20 }
}

export async function startOf(
  { parameters, env = {} }: Program,
  { isAtRest }: { isAtRest: boolean },
): Promise<Start> {
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
    const wall = performance.now() - began
    const listening = cpuOf(child)
    await answered(`http://127.0.0.1:${port}/health/ready`)
    const [ready, readyWall] = [cpuOf(child), performance.now() - began]
    if (!isAtRest) return { wall, listening, ready, readyWall }
    await setTimeout(REST)
    return { wall, listening, ready, readyWall, memory: memoryOf(child) }
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

/** Milliseconds of processor time that all threads of a process have used. */
function cpuOf({ pid }: ChildProcess): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')
    return Number(nanoseconds)
  })
  return threads.reduce((sum, each) => sum + each, 0) / 1e6
}

/** MiB that a process has resident. */
function memoryOf({ pid }: ChildProcess): number {
  const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return Number(kibibytes) / 1024
}
