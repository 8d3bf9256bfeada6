import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { GivenTracker } from '../../../src/chain/tracker/given-headers.js'
import { readConfig } from '../../../src/server/config/config.js'
import type { Limits } from '../../../src/server/config/limits.js'
import { type RunningServer, startServer } from '../../../src/server/server.js'
import { storedRows } from '../storage/fact-rows.js'
import { until } from './waiting.js'

export const SILENT = pino({ level: 'silent' })

export type Environment = Record<string, string>

/** The setting with which a server has an operator. */
export const OPERATOR = { ADMIN_TOKEN: 'a-token-of-the-operator' }
/** What shows that a request is the operator's. */
export const AS_OPERATOR = { Authorization: `Bearer ${OPERATOR.ADMIN_TOKEN}` }

/** What a server answered, read to its end. */
export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  /** The body read as JSON; throws where it is none. */
  readonly json: unknown
}

export interface Question {
  method?: string
  headers?: Record<string, string | string[]>
  body?: Uint8Array | string
  /** A connection for this question alone, as where it breaks. */
  agent?: false
}

const KEPT = new Agent({ keepAlive: true })

/**
 * Asks with `node:http`, which sends a path as it is written and follows no redirect, over connections that are kept. Where one was idle
 * and the host closed it just then, it asks again, as HTTP clients do (RFC 9112 9.3.1).
 */
export async function ask(url: string, path: string, question: Question = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body, agent = KEPT } = question
  const { hostname, port } = new URL(url)
  return await new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const whole = Buffer.concat(chunks)
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: whole,
          get json(): unknown {
            return JSON.parse(whole.toString('utf8'))
          },
        })
      })
    })
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (asked.reusedSocket && error.code === 'ECONNRESET') resolve(ask(url, path, question))
      else reject(error)
    })
    asked.end(body)
  })
}

/** The question that submits a BEEF. */
export function submission(beef: Uint8Array, topics: string[] = ['tm_names']): Question {
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': JSON.stringify(topics) }
  return { method: 'POST', headers, body: beef }
}

/** A POST of JSON. */
export function posted(value: unknown, headers: Record<string, string> = {}): Question {
  return {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(value),
  }
}

/** The settings that make a server follow the tree of a fake chain. */
export function treeOf({ genesis, covenantVersion, difficulty, marker, tld }: Deployment): Environment {
  return {
    GENESIS: formatOutpoint(genesis),
    COVENANT_VERSION: String(covenantVersion),
    DIFFICULTY: String(difficulty),
    NAME_MARKER: Buffer.from(marker).toString('utf8'),
    ...(tld !== undefined && { NAME_TLD: tld }),
  }
}

/** What an operator can block. */
export type Subject = { outpoint: string } | { sha256: string } | { name: string }

export interface TestServer {
  url: string
  dataDir: string
  node: RunningServer['node']
  ask(path: string, question?: Question): Promise<Answer>
  submit(beef: Uint8Array, topics?: string[]): Promise<Answer>
  /** Submits what has to be taken. */
  take(beef: Uint8Array, topics?: string[]): Promise<void>
  /** Has the operator block something, or unblock it again. The server needs {@link OPERATOR}. */
  block(subject: Subject): Promise<void>
  unblock(subject: Subject): Promise<void>
  /** Every row of every table of the graph, as text. */
  rows(): Record<string, string[]>
  stop(): Promise<void>
}

/**
 * `logger` takes what the server logs; without one, nobody does. `limits` replaces limits that follow from settings. `tracker` is that of a
 * host, which decides about proofs.
 */
export type StartOptions = Partial<
  Pick<
    Parameters<typeof startServer>[0],
    'logger' | 'pages' | 'deploy' | 'submissionWorker' | 'writerThread' | 'imageProgram'
  >
> & { limits?: Partial<Limits>; tracker?: GivenTracker }

/**
 * Servers and folders for the tests of one file. What a test has started ends with it: it would go on asking and following
 * beside the tests that come after it. Other servers, and all folders, stay until the tests of the file are done; `stay` is for tests
 * that go on with what the one before has started.
 */
export function useServers({ stay = false } = {}): {
  start(env?: Environment, options?: StartOptions): Promise<TestServer>
  folder(): Promise<string>
} {
  /** Those of the file, and those of the test that runs. */
  const [lasting, passing] = [[], []] as [TestServer[], TestServer[]]
  const folders: string[] = []
  let isInTest = false
  const stopAll = (servers: TestServer[]) => Promise.all(servers.splice(0).map((server) => server.stop()))
  beforeEach(() => {
    isInTest = true
  })
  afterEach(async () => {
    isInTest = false
    if (!stay) await stopAll(passing)
  })
  afterAll(async () => {
    await Promise.all([stopAll(passing), stopAll(lasting)])
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })))
  })
  const folder = async (): Promise<string> => {
    const path = await mkdtemp(join(tmpdir(), 'minetree-test-'))
    folders.push(path)
    return path
  }
  return {
    folder,
    async start(env = {}, { logger = SILENT, limits, tracker, ...options } = {}) {
      const checks = tracker && { CHAIN_TRACKER: 'headers' }
      const servers = isInTest ? passing : lasting
      const read = readConfig({ PORT: '0', DATA_DIR: await folder(), ...checks, ...env })
      const config = { ...read, limits: { ...read.limits, ...limits }, givenTracker: tracker }
      const server = testServer(await startServer({ config, logger, ...options }), config.dataDir)
      servers.push(server)
      return server
    },
  }
}

function testServer({ url, node, stop }: RunningServer, dataDir: string): TestServer {
  let stopped: Promise<void> | undefined
  const expectDone = async (path: string, question: Question): Promise<void> => {
    const { status, body } = await ask(url, path, question)
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${body.toString()}`)
  }
  const order = (path: string, value: object): Promise<void> => expectDone(path, posted(value, AS_OPERATOR))
  return {
    url,
    dataDir,
    node,
    ask: (path, question) => ask(url, path, question),
    submit: (beef, topics) => ask(url, '/submit', submission(beef, topics)),
    take: (beef, topics) => expectDone('/submit', submission(beef, topics)),
    block: (subject) => order('/admin/block', { ...subject, reason: 'a test' }),
    unblock: (subject) => order('/admin/unblock', subject),
    rows: () => storedRows(dataDir),
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

/** Waits until a server answers that it is ready: that its index is known to match what was admitted. */
export async function untilReady(server: Pick<TestServer, 'ask'>): Promise<void> {
  await until(async () => (await server.ask('/health/ready')).status === 200, 'the server is ready')
}

/** The headers of an answer without those that are others each time, its date and its id, and those of its connection. */
export function lastingHeaders({ headers }: Answer): IncomingHttpHeaders {
  const { date: _, 'x-request-id': __, connection: ___, 'keep-alive': ____, ...lasting } = headers
  return lasting
}
