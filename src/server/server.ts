import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'express-rate-limit'
import type { Logger } from 'pino'
import { createApp } from './app.js'
import { ReorgMonitor } from './chain/reorg-monitor.js'
import type { Config } from './config/config.js'
import { StartError } from './config/errors.js'
import { openFollowing } from './following.js'
import { openPeersSync } from './gasp/peers-sync.js'
import { GRACE, type HttpServer, listen, openHttpServer } from './http/http-server.js'
import { Readiness } from './http/readiness.js'
import { type Node, openNode } from './node.js'
import { type PageFiles, readPageFiles } from './routes/page-files.js'
import type { Deploy } from './store/pinned-genesis.js'
import { StoreSpace } from './store/store-space.js'
import { LargeSubmissions } from './submission/large-submissions.js'
import { NonFinalPoller } from './submission/non-final-submissions.js'
import { CatchUpLog } from './telemetry/catch-up-log.js'
import type { ChainParts } from './telemetry/chain-status.js'
import { Metrics, routePrefixes } from './telemetry/metrics.js'
import type { EndedRequest } from './telemetry/request-metrics.js'
import { dividedLimits } from './workers/divided-limits.js'
import { listenForReaders, newSecret, receivePassedOn, writerLimits } from './workers/passed-on.js'
import { SharedCounts } from './workers/read-counts.js'
import { ReaderPool } from './workers/reader-pool.js'

export interface RunningServer {
  /** Where it listens, as `http://host:port`. */
  url: string
  node: Node
  /** What of it knows the chain and follows it. */
  chain: ChainParts
  /** Accepts no more requests, waits for those in flight, and closes the store. */
  stop(): Promise<void>
}

/** The program of a reader, compiled beside this module. */
export const READER_PROGRAM = new URL('./reader-process.js', import.meta.url)

/** The setting in the store that is written to find out whether it has space. */
const PROBE = 'space probed'

/**
 * Opens the store and listens.
 *
 * @throws StartError if the files of the pages cannot be read, the store not opened or the address not listened on. Whatever was
 * opened is closed again.
 */
export async function startServer({
  config: settings,
  logger,
  submissionWorker,
  readerProgram,
  deploy,
  pages: pageFolder,
  ownsProcess = false,
}: {
  config: Config
  logger: Logger
  /** The compiled `submission-worker`, which admits large transactions; if missing, this thread does. */
  submissionWorker?: URL
  /** The compiled `reader-process`, of which WORKERS says how many answer readers; if missing, this process does. */
  readerProgram?: URL
  /** Deploys a tree into an empty store, if the settings name none. */
  deploy?: Deploy
  /** The folder of the built scripts and style sheet of pages; if missing, pages have none, and `/mine` is not found. */
  pages?: URL
  /** Whether the process runs this server alone: then `/metrics` covers the process too. */
  ownsProcess?: boolean
}): Promise<RunningServer> {
  const pageFiles = pageFolder && readFiles(pageFolder)
  const { workers: count } = settings
  const readers =
    readerProgram && count > 1 ? new ReaderPool({ program: readerProgram, count, logger }) : undefined
  const own = readers ? { ...settings, limits: dividedLimits(settings.limits, count).writer } : settings
  const node = await openNode({ config: own, logger, ...(deploy && { deploy }) }).catch((error: unknown) => {
    readers?.kill()
    throw error
  })
  const { config } = node
  const large = submissionWorker && new LargeSubmissions({ config, node, logger, worker: submissionWorker })
  if (large) node.overlay.engine.runScripts = large.runScripts
  const reorgMonitor = reorgMonitorOf(node, logger)
  const { engine } = node.overlay
  const peersSync = openPeersSync({ config, graph: node.graph, overlay: node.overlay, logger })
  const following = openFollowing({ node, logger, submit: large?.submitInWorker })
  const { onWritten } = engine.writeLock
  engine.writeLock.onWritten = () => {
    onWritten()
    following?.ancestors.notify()
  }
  const nonFinal = new NonFinalPoller({ release: engine.releaseNonFinal, logger })
  const { headers } = node.overlay.proofs
  const { follower, ancestors, sources } = following ?? {}
  const chain: ChainParts = { headers, follower, ancestors, sources }
  const catchUpLog = new CatchUpLog({ parts: chain, logger })
  const metrics = metricsOf(node, chain, readers)
  if (ownsProcess) metrics.addProcess()
  const readiness = new Readiness()
  const space = new StoreSpace({ probe: () => node.graph.settings.set(PROBE, String(Date.now())), logger })
  readiness.add('space', () => space.reason())
  let isStopping = false
  readiness.add('shutdown', () => (isStopping ? 'the host is shutting down' : undefined))
  const reads = new MemoryStore()
  let port: number | undefined
  const app = createApp({
    config,
    overlay: node.overlay,
    graph: node.graph,
    ping: () => node.graph.ping(),
    readiness,
    index: () => node.maintenance.status,
    metrics,
    chain,
    port: () => port,
    logger,
    ...(reorgMonitor && { reorgMonitor }),
    ...(pageFiles && { pageFiles }),
    ...(large && { submit: large.submit }),
    ...(readers && { readers, reads }),
    ...(following && { ancestors: node.ancestors }),
  })
  engine.countAnswered = () => metrics.answered + (readers?.answered ?? 0)
  const onEnd = (ended: EndedRequest): void => {
    if (ended.code === 'STORE_FULL') space.found()
    metrics.countRequest(ended)
  }
  const log = config.logRequests ? { log: logger } : {}
  const secret = newSecret()
  const server = openHttpServer({
    app: readers ? receivePassedOn(app, secret) : app,
    limits: readers ? writerLimits(config.limits) : config.limits,
    ...{ onEnd, ...log },
  })
  const listening = await (readers
    ? listenInReaders({ readers, server, node, reads, secret, settings })
    : listenHere(server, config)
  ).catch(async (error: unknown) => {
    server.close()
    await large?.close()
    await node.close()
    throw error
  })
  port = listening.address.port
  node.maintenance.start()
  reorgMonitor?.start()
  peersSync?.start()
  if (following !== undefined) {
    following.start()
    node.overlay.proofs.headers?.onTip((tip) => following.onTip(tip))
  }
  nonFinal.start()
  catchUpLog.start()
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return {
    url: `http://${host}:${port}`,
    node,
    chain,
    async stop() {
      isStopping = true
      catchUpLog.stop()
      const finished = listening.finish()
      await reorgMonitor?.stop()
      await peersSync?.stop()
      await following?.stop()
      await nonFinal.stop()
      await finished
      await large?.close()
      await node.close()
    },
  }
}

/** What the public connects to. */
interface Listening {
  address: AddressInfo
  /** Accepts no more requests, and resolves when those in flight are answered or have had their time. */
  finish(): Promise<void>
}

async function listenHere(server: HttpServer, config: Config): Promise<Listening> {
  await listen(server, config)
  return { address: server.address() as AddressInfo, finish: () => server.finish() }
}

/** Readers listen, and pass on to this server what they cannot answer. */
async function listenInReaders(options: {
  readers: ReaderPool
  server: HttpServer
  node: Node
  reads: MemoryStore
  secret: string
  settings: Config
}): Promise<Listening> {
  const { readers, server, node, reads, secret, settings } = options
  const { graph, maintenance } = node
  const { workers: count, limits } = settings
  const { place, remove } = await listenForReaders(server)
  const config = { ...node.config, limits: dividedLimits(limits, count).reader }
  graph.onChange = async (change) => {
    const published = readers.publish(change)
    // What is blocked is served by nobody when its block is answered. Other writes hold up no later one.
    if (change === 'everything') await published
  }
  maintenance.onStatus = (status) => readers.setIndex(status)
  try {
    const address = await readers.serve({
      setup: () => ({ config, index: maintenance.status, writer: { place, secret }, readers: count }),
      counts: new SharedCounts({ store: reads, rate: limits.readRate, readers: count }),
    })
    return {
      address,
      async finish() {
        await readers.finish(GRACE)
        await server.finish()
        await remove()
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}

function metricsOf(
  { config: { profile }, graph, overlay, maintenance, backlog, failedHooksWaiting }: Node,
  chain: ChainParts,
  readers: ReaderPool | undefined,
): Metrics {
  const prefixes = routePrefixes(profile)
  const metrics = new Metrics({
    ...{ prefixes, caches: graph.caches, failedHooksWaiting, indexLag: () => maintenance.lag() },
    reevaluating: () => (backlog.isBusy ? 1 : 0),
    chain,
    ...(readers && { others: () => readers.measure() }),
  })
  overlay.onEvent(metrics.countEvent)
  return metrics
}

/** Undefined if proofs are not checked. */
function reorgMonitorOf({ config, graph, overlay }: Node, logger: Logger): ReorgMonitor | undefined {
  const { engine, proofs } = overlay
  const { reorgDepth, headersPollMs: pollInterval } = config
  const { headers } = proofs
  if (headers === undefined) return undefined
  const runLocked = engine.writeLock.run.bind(engine.writeLock)
  return new ReorgMonitor({ headers, proofs, graph, runLocked, reorgDepth, pollInterval, logger })
}

function readFiles(folder: URL): PageFiles {
  try {
    return readPageFiles(folder)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`the files of the pages are incomplete; run \`npm run build\`: ${reason}`, { cause })
  }
}
