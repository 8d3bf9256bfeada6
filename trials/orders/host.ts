import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { encodeBeef } from '../../backend/src/graph/write-beef.js'
import { runReindex } from '../../src/cli/maintenance.js'
import { readConfig } from '../../src/server/config/config.js'
import { startServer } from '../../src/server/server.js'
import { keptOutput } from '../../test/support/cli/commands.js'
import { proofIn } from '../../test/support/protocol/block.js'
import { listening } from '../../test/support/server/connections.js'
import type { HeaderChain } from '../../test/support/server/header-chain.js'
import { HeaderService } from '../../test/support/server/header-service.js'
import { startServerProcess } from '../../test/support/server/server-process.js'
import { type Environment, SILENT, treeOf } from '../../test/support/server/test-server.js'
import { type Answer, ask } from './answers.js'
import type { History, HistoryTransaction } from './history.js'
import type { Block } from './model.js'

const ADMIN_TOKEN = 'a-token-of-the-operator'
const ADMIN = { Authorization: `Bearer ${ADMIN_TOKEN}` }

/** A transaction in a BEEF, with its proof or without. */
export interface Enclosed {
  transaction: HistoryTransaction
  proven: boolean
}

/** A server over a store of its own that follows the tree and the headers of a history, and is asked over HTTP alone. */
export class OrderHost {
  private running: { url: string; stop(): Promise<void>; kill?: () => Promise<void> }

  private constructor(
    private readonly parts: {
      env: Environment
      headers: HeaderChain
      service: { close(): Promise<void> }
      running: OrderHost['running']
      /** The compiled command: where it is given, the server is a process, which can be killed. */
      main: string | undefined
    },
  ) {
    this.running = parts.running
  }

  static async start(options: {
    history: History
    headers: HeaderChain
    main?: string | undefined
    /** How many transactions one write looks at again; by default, as many as on a public host. */
    reevaluations?: number | undefined
  }): Promise<OrderHost> {
    const { history, headers, main, reevaluations } = options
    const service = await listening(new HeaderService(headers).listener)
    const env = {
      ...treeOf(history.chain.deployment),
      PORT: '0',
      DATA_DIR: await mkdtemp(join(tmpdir(), 'minetree-order-')),
      CHAIN_TRACKER: service.url,
      HEADERS_POLL_MS: '0',
      ADMIN_TOKEN,
      READS_PER_MINUTE: '0',
      SUBMISSIONS_PER_MINUTE: '0',
      ...(reevaluations !== undefined && { MAX_REEVALUATIONS: String(reevaluations) }),
    }
    const running = await startOf(env, main)
    return new OrderHost({ env, headers, service, running, main })
  }

  get url(): string {
    return this.running.url
  }

  /** Submits a BEEF of these, of which the last is the subject. */
  async submit(members: readonly Enclosed[], topics: readonly string[]): Promise<Answer> {
    const beef = encodeBeef(
      members.map(({ transaction: { txid, raw }, proven }) => {
        const path = proven ? this.parts.headers.branch.path(txid) : undefined
        return { raw, ...(path && { proof: proofIn(path, { txid }) }) }
      }),
    )
    const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': JSON.stringify(topics) }
    return await ask(this.url, { path: '/submit', body: beef, headers })
  }

  /** Brings a proof alone, as a transaction processor does. */
  async ingest(txid: string): Promise<Answer> {
    const merklePath = this.parts.headers.branch.path(txid)?.toHex()
    return await this.post('/arc-ingest', { txid, merklePath })
  }

  async block({ kind, value }: Block): Promise<Answer> {
    return await this.post('/admin/block', { [kind]: value, reason: 'a test' })
  }

  async unblock({ kind, value }: Block): Promise<Answer> {
    return await this.post('/admin/unblock', { [kind]: value })
  }

  /** Notifies the server that the chain has changed from a height on. */
  async sendHeaders(height: number): Promise<Answer> {
    return await this.post('/admin/headers', { height })
  }

  async restart(): Promise<void> {
    await this.running.stop()
    this.running = await startOf(this.parts.env, this.parts.main)
  }

  /** Ends the process at once, where it is one, and starts another on what is left; otherwise restarts. */
  async kill(): Promise<void> {
    await (this.running.kill ?? this.running.stop)()
    this.running = await startOf(this.parts.env, this.parts.main)
  }

  /** Waits until nothing is left to be done of what came so far. */
  async untilIdle(): Promise<void> {
    const isIdle = async (): Promise<boolean> => {
      const { body } = await ask(this.url, { path: '/metrics' })
      return /^minetree_reevaluating 0$/m.test(body.toString('utf8'))
    }
    while (!(await isIdle())) await setTimeout(2)
  }

  /** `minetree reindex`, between two lives of the server. */
  async reindex(): Promise<void> {
    await this.running.stop()
    const config = readConfig(this.parts.env)
    await runReindex({ config, logger: SILENT, output: keptOutput().output })
    this.running = await startOf(this.parts.env, this.parts.main)
  }

  async close(): Promise<void> {
    await this.running.stop()
    await this.parts.service.close()
    await rm(this.parts.env.DATA_DIR ?? '', { recursive: true, force: true })
  }

  private async post(path: string, value: unknown): Promise<Answer> {
    const headers = { 'Content-Type': 'application/json', ...ADMIN }
    return await ask(this.url, { path, body: JSON.stringify(value), headers })
  }
}

/** Starts a server, and waits until it says that it is ready. */
async function startOf(env: Environment, main: string | undefined): Promise<OrderHost['running']> {
  const running = main === undefined ? await inProcess(env) : await ofItsOwn(env, main)
  while ((await ask(running.url, { path: '/health/ready' })).status !== 200) await setTimeout(5)
  return running
}

async function inProcess(env: Environment): Promise<OrderHost['running']> {
  const { url, stop } = await startServer({ config: readConfig(env), logger: SILENT })
  return { url, stop }
}

async function ofItsOwn(env: Environment, main: string): Promise<OrderHost['running']> {
  const { url, kill } = await startServerProcess({ main, env })
  const end = (signal: NodeJS.Signals) => async (): Promise<void> => void (await kill(signal))
  return { url, stop: end('SIGTERM'), kill: end('SIGKILL') }
}
