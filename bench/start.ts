import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { packageFolder } from '../src/server/config/package-info.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { fill } from './memory.js'
import { median, settingsFor, withFolder } from './support.js'

const ROUNDS = 7
/** How long after it is ready a process is at rest, in milliseconds. */
const REST = 2000

const ROOT = packageFolder()
const MAIN = join(ROOT, 'dist/src/cli/main.js')
const BARE_NODE = `require('node:http').createServer((_request, response) => response.end()).listen(process.env.PORT, '127.0.0.1')`
const BARE_EXPRESS = `require('express')().get('/health/live', (_request, response) => response.json({})).listen(process.env.PORT, '127.0.0.1')`

/** A process to start, and the path that it answers when it is ready; PORT is added to its environment. */
interface Program {
  parameters: string[]
  env?: Record<string, string>
  readyPath?: string
}

/** One start. In milliseconds, of the clock or of the processor; memory in MiB. */
interface Start {
  live: number
  ready: number
  cpu: number
  memory: number
}

/**
 * What a start takes: from the start of the process, by the command line that was built last, to the first answer of
 * `/health/live` and to 200 of `/health/ready`, with an empty store and with 100,000 outputs; processor time until then, and
 * memory at rest. Against a bare `node:http` server and a bare Express server; by turns.
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
  await fill(join(folder, 'filled'))
  const ours = (store: string): Program => ({
    parameters: [MAIN, 'serve'],
    env: settingsFor(chain, join(folder, store)),
    readyPath: '/health/ready',
  })
  const programs = {
    'node:http': { parameters: ['-e', BARE_NODE] },
    Express: { parameters: ['-e', BARE_EXPRESS] },
    'empty store': ours('empty'),
    '100,000 outputs': ours('filled'),
  }
  const starts = Object.entries<Program>(programs).map(([name, program]) => ({
    name,
    program,
    all: [] as Start[],
  }))
  for (let round = 0; round < ROUNDS; round++)
    for (const { program, all } of starts) all.push(await startOf(program))
  const medianOf = (all: Start[], what: keyof Start): number => median(all.map((each) => each[what]))
  const bare = starts[0]?.all ?? []
  const lines = starts.map(({ name, all }) => {
    const [live = '', ready = '', cpu = '', memory = ''] = (['live', 'ready', 'cpu', 'memory'] as const).map(
      (what) =>
        `${medianOf(all, what).toFixed(0)} (${(medianOf(all, what) / medianOf(bare, what)).toFixed(1)} times)`,
    )
    return `${name}: answers after ${live} ms, ready after ${ready} ms, CPU ${cpu} ms, at rest ${memory} MiB`
  })
  return [
    `medians of ${ROUNDS}, and ratios to node:http`,
    ...lines,
    'wanted: an answer after 300 ms, ready after 1,000 ms with 100,000 outputs, below 100 MiB at rest',
  ]
}

async function startOf({ parameters, env = {}, readyPath = '/health/live' }: Program): Promise<Start> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const began = performance.now()
  const child = spawn(process.execPath, parameters, {
    cwd: ROOT,
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = once(child, 'exit')
  try {
    await answered(`${url}/health/live`, child)
    const live = performance.now() - began
    await answered(url + readyPath, child)
    const ready = performance.now() - began
    const cpu = await cpuOf(child)
    await setTimeout(REST)
    return { live, ready, cpu, memory: await memoryOf(child) }
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

/** @throws Error if the process ends first. */
async function answered(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null)
      throw new Error(`a process ended with ${child.exitCode} instead of answering ${url}`)
    const isReady = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return
    await setTimeout(5)
  }
}

/** Milliseconds of processor time that a process has used, to ten milliseconds. */
async function cpuOf({ pid }: ChildProcess): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

/** MiB that a process has resident. */
async function memoryOf({ pid }: ChildProcess): Promise<number> {
  const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}
