import { Agent, request } from 'node:http'
import { Session } from 'node:inspector'
import { extname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { utf8 } from '../backend/src/protocol/bytes.js'
import { LOOKUP_SERVICES, TOPICS } from '../backend/src/protocol/profile.js'
import { WRITER_THREAD } from '../src/server/node.js'
import { startServer } from '../src/server/server.js'
import { SUBMISSION_WORKER } from '../src/server/writer/large-submissions.js'
import {
  beefOf,
  FakeChain,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { configFor, LIVE_CODE_SIZE, SILENT, withFolder } from './support.js'

/** What ran between a request and its answer, in all threads of the server. */
export interface Walk {
  /** Our files, each with the number of its functions that ran. */
  files: Map<string, number>
  /** All promises, whether our code made them or not. */
  promises: number
  /** SQL statements, with those that begin and end transactions. */
  statements: number
}

interface Question {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: Uint8Array | string
}

/**
 * Starts a server over an empty folder as `minetree serve` does, and follows three requests through it, each the first of its
 * kind: an unproven mint with a covenant as long as the live one, before any other submission; a lookup of its name; a file of a
 * directory, at the tip of an ordinal.
 */
export async function walks(): Promise<Record<'mint' | 'path' | 'lookup', Walk>> {
  // Without this, V8 misses some closures that ran in a start and were collected since.
  setFlagsFromString('--no-lazy-feedback-allocation')
  return await withFolder(async (folder) => {
    const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
    const coin = { satoshis: 1000, lockingScript: OPEN_LOCK }
    const purse = chain.spend({ inputs: [], outputs: [coin, coin] })
    const mint = chain.mint('a', { funding: [{ transaction: purse, vout: 0 }] })
    const directory = { contentType: 'ord-fs/json', body: utf8('{"index.html":"_1"}') }
    const scripts = [directory, { contentType: 'text/html', body: utf8('<p>') }].map(inscriptionScript)
    const site = chain.spend({
      inputs: [{ transaction: purse, vout: 1 }],
      outputs: scripts.map((lockingScript) => ({ satoshis: 1, lockingScript })),
    })
    const moved = chain.move(site, 0, p2pkh(2))
    const server = await startServer({
      ...{ config: configFor(chain, folder), logger: SILENT, ownsProcess: true },
      ...{ submissionWorker: SUBMISSION_WORKER, writerThread: WRITER_THREAD },
    })
    const agent = new Agent({ keepAlive: true })
    const threads = await Threads.watch()
    const follow = async (question: Question): Promise<Walk> => {
      await threads.begin()
      await answered(agent, server.url, question, threads)
      return await threads.end()
    }
    try {
      const unproven = beefOf(mint, { proven: false, with: [chain.genesis, purse] })
      const minted = await follow(submission(unproven))
      const found = await follow(LOOKUP)
      for (const [subject, source] of [
        [site, purse],
        [moved, site],
      ] as const)
        await answered(agent, server.url, submission(beefOf(subject, { with: [source] })))
      const path = await follow({ method: 'GET', path: `/content/${site.outpoint(0)}:-1/index.html` })
      return { mint: minted, path, lookup: found }
    } finally {
      agent.destroy()
      await server.stop()
      threads.close()
    }
  })
}

function submission(beef: Uint8Array): Question {
  const topics = JSON.stringify(Object.values(TOPICS))
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': topics }
  return { method: 'POST', path: '/submit', headers, body: beef }
}

const LOOKUP: Question = {
  ...{ method: 'POST', path: '/lookup' },
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ service: LOOKUP_SERVICES.names, query: { name: 'a' } }),
}

/** Sends a request with callbacks: the client must make no promise in between. */
function answered(agent: Agent, url: string, question: Question, threads?: Threads): Promise<void> {
  const { method, path, headers, body } = question
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        threads?.answered()
        if (response.statusCode === 200) return resolve()
        return reject(new Error(`${method} ${path}: ${response.statusCode} ${Buffer.concat(chunks)}`))
      })
    })
    asked.on('error', reject)
    threads?.asked()
    asked.end(body)
  })
}

/** Asks the inspector of a thread: that of this thread answers at once, those of others later. */
type Inspect = (
  method: string,
  parameters: object,
  // biome-ignore lint/suspicious/noExplicitAny: each method of the protocol has a result of its own.
  onResult: (result: any) => void,
) => void

interface Coverage {
  result: {
    url: string
    functions: { functionName: string; ranges: { count: number; startOffset: number }[] }[]
  }[]
}

/** Counts the promises of a thread from now on. */
const COUNT_PROMISES = `
  globalThis.walkedPromises = 0
  process.getBuiltinModule('node:async_hooks').createHook({
    init(id, type) { if (type === 'PROMISE') globalThis.walkedPromises++ }
  }).enable()`

/** Without a promise, which would be counted. */
const NEXT_TURN = `
  globalThis.walkedTurn = false
  setImmediate(() => { globalThis.walkedTurn = true })`

/** What ran in one thread. */
class Thread {
  private promisesBefore = 0
  private promises = 0
  private coverage: Coverage['result'] = []

  constructor(private readonly inspect: Inspect) {}

  /** Makes the thread count from now on. */
  async watch(): Promise<void> {
    const post = (method: string, parameters = {}): Promise<unknown> =>
      new Promise((resolve) => this.inspect(method, parameters, resolve))
    await post('Profiler.enable')
    await post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await post('Runtime.evaluate', { expression: COUNT_PROMISES })
  }

  /** Resolves when the thread has run what waits for its next turn, such as the end of a write after its answer. */
  async settle(): Promise<void> {
    const evaluate = (expression: string): Promise<unknown> =>
      new Promise((resolve) =>
        this.inspect('Runtime.evaluate', { expression }, ({ result }) => resolve(result.value)),
      )
    for (await evaluate(NEXT_TURN); (await evaluate('globalThis.walkedTurn')) !== true; );
  }

  /** Forgets what ran so far. */
  begin(done: () => void = () => {}): void {
    this.inspect('Profiler.takePreciseCoverage', {}, () =>
      this.readPromises((count) => {
        this.promisesBefore = count
        done()
      }),
    )
  }

  /** Reads what ran since then. */
  end(done: () => void = () => {}): void {
    this.readPromises((count) => {
      this.promises = count - this.promisesBefore
      this.inspect('Profiler.takePreciseCoverage', {}, ({ result }: Coverage) => {
        this.coverage = result
        done()
      })
    })
  }

  addTo(walk: Walk, functions: Map<string, Set<string>>): void {
    walk.promises += this.promises
    for (const { url, functions: all } of this.coverage) {
      const file = url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : ''
      if (!/^(backend\/)?src\//.test(file)) continue
      const name = file.slice(0, -extname(file).length)
      for (const { functionName, ranges } of all) {
        const [{ count, startOffset } = { count: 0, startOffset: 0 }] = ranges
        if (count === 0) continue
        functions.set(name, (functions.get(name) ?? new Set()).add(`${functionName} ${startOffset}`))
        if (name === CONNECTION && STATEMENTS.has(functionName)) walk.statements += count
      }
    }
  }

  private readPromises(onCount: (count: number) => void): void {
    const expression = 'globalThis.walkedPromises'
    this.inspect('Runtime.evaluate', { expression }, ({ result }) => onCount(result.value))
  }
}

/** The folder of the compiled package, above that of this file. */
const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The file that runs statements, and its methods for that. */
const CONNECTION = 'backend/src/facts/connection'
const STATEMENTS = new Set(['all', 'get', 'run', 'insert', 'exec'])

/** The threads that this process had when it was watched. */
class Threads {
  private constructor(
    private readonly session: Session,
    private readonly main: Thread,
    private readonly others: Thread[],
  ) {}

  static async watch(): Promise<Threads> {
    const session = new Session()
    session.connect()
    const main = new Thread((method, parameters, onResult) =>
      session.post(method, parameters, (error: Error | null, result?: object) => {
        if (error) throw Object.assign(new Error(`${method}: ${error.message}`), { cause: error })
        onResult(result)
      }),
    )
    const others: Thread[] = []
    const waiting = new Map<number, (result: unknown) => void>()
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId } }) => {
      others.push(
        new Thread((method, parameters, onResult) => {
          const id = waiting.size
          waiting.set(id, onResult)
          const message = JSON.stringify({ id, method, params: parameters })
          session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
        }),
      )
    })
    session.on('NodeWorker.receivedMessageFromWorker', ({ params: { message } }) => {
      const { id, result } = JSON.parse(message)
      if (id !== undefined) waiting.get(id)?.(result)
    })
    await new Promise((resolve) =>
      session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, resolve),
    )
    for (const each of [...others, main]) await each.watch()
    return new Threads(session, main, others)
  }

  async begin(): Promise<void> {
    await this.settle()
    for (const each of this.others) await new Promise<void>((resolve) => each.begin(resolve))
  }

  /** Stops the clock until the answer: on a loaded machine, long work would yield, which runs functions of its own. */
  asked(): void {
    const at = performance.now()
    Object.defineProperty(performance, 'now', { configurable: true, value: () => at })
    this.main.begin()
  }

  answered(): void {
    this.main.end()
    Reflect.deleteProperty(performance, 'now')
  }

  /** What ran from the question to the answer. */
  async end(): Promise<Walk> {
    await this.settle()
    for (const each of this.others) await new Promise<void>((resolve) => each.end(resolve))
    const walk: Walk = { files: new Map(), promises: 0, statements: 0 }
    const functions = new Map<string, Set<string>>()
    for (const each of [this.main, ...this.others]) each.addTo(walk, functions)
    for (const [file, { size }] of [...functions].sort()) walk.files.set(file, size)
    if (walk.statements === 0) throw new Error(`no statement of ${CONNECTION} ran: are those its methods?`)
    return walk
  }

  /**
   * Without this, the load of the machine decides to which question the end of a start, or of the question before it, belongs.
   */
  private async settle(): Promise<void> {
    // In its second turn, this thread has the messages that others sent in the first.
    for (let turn = 0; turn < 2; turn++) {
      for (const each of this.others) await each.settle()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  close(): void {
    this.session.disconnect()
  }
}
