import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import {
  type SearchOptions,
  type SearchProgress,
  searchNonce,
} from '../../../src/mining/search/search-nonce.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'

const built = useBuiltCli()
const ROOM = 'src/mining/search'
const seed = new Uint8Array(32).map((_, index) => 255 - index)

/** A search in two workers of the package as built. */
const inWorkers = (options: Partial<SearchOptions> = {}): SearchOptions => ({
  seed,
  character: 'z',
  difficulty: 16,
  workers: 2,
  workerUrl: pathToFileURL(join(built.folder(), 'dist', ROOM, 'search-worker.js')),
  ...options,
})
const endless = (options: Partial<SearchOptions> = {}): SearchOptions =>
  inWorkers({ difficulty: 64, ...options })

/** A worker that runs this instead. `say` is what it talks with. */
const workerOf = (program: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(
      `import { parentPort } from 'node:worker_threads'; const say = (message) => parentPort.postMessage(message); ${program}`,
    )}`,
  )

/** Runs a program against the package as built, in a process of its own that has to end by itself. */
async function runProgram(program: string, flags: string[] = []): Promise<unknown> {
  const module = pathToFileURL(join(built.folder(), 'dist', ROOM, 'search-nonce.js'))
  // Of the options of a process, that for a program without a file is one that workers do not take.
  const args = ['--input-type=module', '-e', `import { searchNonce } from '${module}'\n${program}`]
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, ...args], { timeout: 50_000 })
  return JSON.parse(stdout)
}

/** Whether a nonce, in hex, does for `new Uint8Array(32)` and `a`. */
function isSolution(nonce: string, difficulty: number): boolean {
  const solution = { seed: new Uint8Array(32), character: 'a', nonce: Buffer.from(nonce, 'hex') }
  return meetsDifficulty(proofOfWork(solution), difficulty)
}

describe('a search in two workers', () => {
  test.each(['simd', 'plain'] as const)('finds one with a prefix, with the %s kernel', async (kernel) => {
    const noncePrefix = new Uint8Array(8).map((_, index) => 200 + index)
    const { nonce } = await searchNonce(inWorkers({ kernel, noncePrefix, difficulty: 12 }))
    expect(nonce.length).toBe(22)
    expect(nonce.subarray(0, 8)).toEqual(noncePrefix)
    expect(meetsDifficulty(proofOfWork({ seed, character: 'z', nonce }), 12)).toBe(true)
  })

  test('adds up what both have tried, and is cancelled in the midst of it', async () => {
    const controller = new AbortController()
    const reports: SearchProgress[] = []
    const onProgress = (progress: SearchProgress): void => {
      reports.push(progress)
      if (reports.length === 3) controller.abort()
    }
    const search = searchNonce(endless({ signal: controller.signal, onProgress }))
    await expect(search).rejects.toMatchObject({ name: 'AbortError' })
    expect(reports.length).toBe(3)
    const hashes = reports.map((progress) => progress.hashes)
    expect(hashes).toEqual(hashes.toSorted((a, b) => a - b))
    expect(hashes.at(-1)).toBeGreaterThan(0)
  })

  test('is cancelled before they have started', async () => {
    const reason = new Error('never mind')
    const controller = new AbortController()
    const search = searchNonce(endless({ signal: controller.signal }))
    controller.abort(reason)
    await expect(search).rejects.toBe(reason)
  })
})

describe('a search fails', () => {
  test.each([
    ['cannot be loaded', new URL('file:///nowhere/search-worker.js'), /nowhere/],
    ['throws', workerOf('throw new RangeError("too much")'), /too much/],
    ['ends of its own accord', workerOf('process.exit(3)'), /code 3/],
    ['says that it failed', workerOf('say({ kind: "failed", message: "out of memory" })'), /out of memory/],
  ])('as soon as a worker %s', async (_, workerUrl, message) => {
    await expect(searchNonce(endless({ workerUrl }))).rejects.toMatchObject({
      name: 'SearchError',
      code: 'WORKER_FAILED',
      message: expect.stringMatching(message),
    })
  })

  test('where a worker lies', async () => {
    const lie = 'say({ kind: "found", hashes: 7, nonce: new Uint8Array(22) })'
    const search = searchNonce(inWorkers({ difficulty: 30, workerUrl: workerOf(lie) }))
    await expect(search).rejects.toMatchObject({ code: 'BAD_NONCE' })
  })

  test('where a worker finds a nonce without the prefix that was asked for', async () => {
    const { nonce } = await searchNonce({ ...inWorkers({ difficulty: 8 }), workers: 0 })
    const found = `say({ kind: "found", hashes: 7, nonce: Uint8Array.from([${nonce}]) })`
    const noncePrefix = Uint8Array.of((nonce[0] ?? 0) ^ 1)
    const search = searchNonce(inWorkers({ difficulty: 8, noncePrefix, workerUrl: workerOf(found) }))
    await expect(search).rejects.toMatchObject({
      code: 'BAD_NONCE',
      message: expect.stringMatching('prefix'),
    })
  })
})

describe('the package as installed', () => {
  test('finds a nonce of 22 bits with workers of its own, and its process ends', async () => {
    const said = await runProgram(`
      const options = { seed: new Uint8Array(32), character: 'a', difficulty: 22, workers: 2 }
      const { nonce } = await searchNonce(options)
      console.log(JSON.stringify(Buffer.from(nonce).toString('hex')))`)
    expect(isSolution(said as string, 22)).toBe(true)
  })

  test('has one worker per core by default, and its process ends when cancelled', async () => {
    const said = await runProgram(`
      import { availableParallelism } from 'node:os'
      import workerThreads, { Worker } from 'node:worker_threads'
      import { syncBuiltinESMExports } from 'node:module'
      let started = 0
      workerThreads.Worker = class extends Worker { constructor(...args) { super(...args); started++ } }
      syncBuiltinESMExports()
      const controller = new AbortController()
      const options = { seed: new Uint8Array(32), character: 'a', difficulty: 64, signal: controller.signal }
      const onProgress = () => controller.abort()
      const code = await searchNonce({ ...options, onProgress }).catch((error) => error.name)
      console.log(JSON.stringify([code, started === availableParallelism()]))`)
    expect(said).toEqual(['AbortError', true])
  })

  // The engine says for itself whether it has SIMD on this processor.
  const withoutSimd = process.arch === 'x64' ? test : test.skip

  withoutSimd('does without SIMD', async () => {
    const said = await runProgram(
      `const options = { seed: new Uint8Array(32), character: 'a', difficulty: 10, workers: 1 }
      const { nonce } = await searchNonce(options)
      const { message } = await searchNonce({ ...options, kernel: 'simd' }).catch((error) => error)
      console.log(JSON.stringify([Buffer.from(nonce).toString('hex'), message]))`,
      ['--no-enable-sse4-1'],
    )
    const [nonce, message] = said as [string, string]
    expect(isSolution(nonce, 10)).toBe(true)
    expect(message).toMatch('WebAssembly with SIMD is not available here')
  })
})

test('a worker loads this folder, the rounds of SHA-256 and a few bytes of the protocol, and no package', () => {
  const root = resolve(import.meta.dirname, '../../..')
  const loaded = new Set<string>()
  const packages = new Set<string>()
  const load = (file: string): void => {
    if (loaded.has(file)) return
    loaded.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type)[^'"]*?from '([^']+)'/gm)
    for (const [, from = ''] of imports) {
      if (from.startsWith('.')) load(resolve(dirname(file), from.replace(/\.js$/, '.ts')))
      else packages.add(from)
    }
  }
  load(join(root, ROOM, 'search-worker.ts'))
  expect([...packages]).toEqual([])
  const elsewhere = [...loaded].map((file) => relative(root, file)).filter((file) => !file.startsWith(ROOM))
  expect(elsewhere.sort()).toEqual([
    'backend/src/protocol/bytes.ts',
    'backend/src/protocol/coded-error.ts',
    'backend/src/protocol/monotonic.ts',
    'src/client/sha256-rounds.ts',
    'src/client/workers.ts',
  ])
  expect(loaded.size).toBeGreaterThan(5)
})
