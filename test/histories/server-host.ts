import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { SightingRecord } from '../../backend/src/graph/conflict-resolution.js'
import { readConfig } from '../../src/server/config/config.js'
import type { Node } from '../../src/server/node.js'
import { startServer } from '../../src/server/server.js'
import { removeIndexes } from '../../src/server/store/facts/folder.js'
import { listening } from '../support/server/connections.js'
import type { HeaderChain } from '../support/server/header-chain.js'
import { HeaderService, headersSettings } from '../support/server/header-service.js'
import { HostTracker } from '../support/server/host-tracker.js'
import { startServerProcess } from '../support/server/server-process.js'
import { type Environment, SILENT, treeOf } from '../support/server/test-server.js'
import type { History } from './history.js'
import { ADMIN_TOKEN, ask, Host } from './host.js'

interface Running {
  url: string
  stop(): Promise<void>
  /** Ends the process at once, where it is one. */
  kill?: () => Promise<void>
  /** Undefined where the server is a process. */
  node?: Node
}

/** A whole server over a store of its own. In this process it asks a tracker about the chain; of its own, it has a service as its source of headers. */
export class ServerHost extends Host {
  private constructor(
    private readonly parts: {
      env: Environment
      headers: HeaderChain
      service: { close(): Promise<void> }
      /** The compiled command: where it is given, the server is a process, which can be killed. */
      main: string | undefined
    },
    private running: Running,
  ) {
    super()
  }

  static async start(options: {
    history: History
    headers: HeaderChain
    main?: string | undefined
    /** Settings beside the usual ones, or instead of them. */
    env?: Environment
  }): Promise<ServerHost> {
    const { history, headers, main, env: own = {} } = options
    const service = await listening(new HeaderService(headers).listener)
    const env = {
      ...treeOf(history.chain.deployment),
      PORT: '0',
      DATA_DIR: await mkdtemp(join(tmpdir(), 'minetree-order-')),
      ...headersSettings(headers, service.url),
      HEADERS_POLL_MS: '0',
      ADMIN_TOKEN,
      READS_PER_MINUTE: '0',
      SUBMISSIONS_PER_MINUTE: '0',
      ...own,
    }
    return new ServerHost({ env, headers, service, main }, await startOf({ env, headers, main }))
  }

  get url(): string {
    return this.running.url
  }

  get node(): Node {
    const { node } = this.running
    if (node === undefined) throw new Error('the server is another process')
    return node
  }

  override async follow(height: number): Promise<void> {
    const { status, body } = await this.post('/admin/headers', { height })
    if (status !== 200) throw new Error(`the server does not follow: ${body.toString('utf8')}`)
  }

  override async sight(record: SightingRecord): Promise<boolean> {
    const { node } = this.running
    await node?.overlay.engine.writes.run(() => node.graph.sightings.record([record]))
    return node !== undefined
  }

  override async restart(): Promise<void> {
    await this.startAfter(this.running.stop)
  }

  override async kill(): Promise<void> {
    await this.startAfter(this.running.kill ?? this.running.stop)
  }

  /** Deletes the index between two lives of the server, so that the next one derives it again. */
  async rebuild(): Promise<void> {
    await this.startAfter(async () => {
      await this.running.stop()
      removeIndexes(this.parts.env.DATA_DIR ?? '')
    })
  }

  async close(): Promise<void> {
    await this.running.stop()
    await this.parts.service.close()
    await rm(this.parts.env.DATA_DIR ?? '', { recursive: true, force: true })
  }

  private async startAfter(end: () => Promise<void>): Promise<void> {
    await end()
    this.running = await startOf(this.parts)
  }
}

/** Starts a server, and waits until it says that it is ready. */
async function startOf({
  env,
  headers,
  main,
}: {
  env: Environment
  headers: HeaderChain
  main: string | undefined
}): Promise<Running> {
  const running = main === undefined ? await inProcess(env, headers) : await ofItsOwn(env, main)
  while ((await ask(running.url, { path: '/health/ready' })).status !== 200) await setTimeout(5)
  return running
}

async function inProcess(env: Environment, headers: HeaderChain): Promise<Running> {
  const config = { ...readConfig(env), givenTracker: new HostTracker(headers) }
  return await startServer({ config, logger: SILENT })
}

async function ofItsOwn(env: Environment, main: string): Promise<Running> {
  const { url, kill } = await startServerProcess({ main, env })
  const end = (signal: NodeJS.Signals) => async (): Promise<void> => void (await kill(signal))
  return { url, stop: end('SIGTERM'), kill: end('SIGKILL') }
}
