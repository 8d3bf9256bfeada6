import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { OWN_STATE } from '../../backend/src/facts/state.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { GraphReads } from '../../backend/src/read/fact-store.js'
import { unlessLate } from '../chain/sources/background.js'
import { openPageFiles, type PageFiles } from '../gateway/pages/page-files.js'
import type { Config } from './config/config.js'
import { StartError } from './config/errors.js'
import { isEmbedded, placeOf } from './config/place.js'
import { FollowedChain } from './followed-chain.js'
import { openPeersSync } from './gasp/peers-sync.js'
import { clientKey } from './http/gates.js'
import { type HttpServer, listen, openHttpServer } from './http/http-server.js'
import { type Images, openImages } from './images/images.js'
import { type Node, openNode } from './node.js'
import type { NodeIndex } from './store/index-status.js'
import type { Deploy } from './store/pinned-genesis.js'
import { StoreSpace } from './store/store-space.js'
import type { ChainParts } from './telemetry/chain-status.js'
import { Metrics, routePrefixes } from './telemetry/metrics.js'
import type { EndedRequest } from './telemetry/request-metrics.js'
import { LargeSubmissions } from './writer/large-submissions.js'
import { nonFinalJob } from './writer/non-final-submissions.js'

export interface RunningServer {
  /** The server's address, as `http://host:port`. */
  url: string
  node: Node
  chain: ChainParts
  /** Accepts no more requests, waits for those in flight, and closes the store. */
  stop(): Promise<void>
}

const PROBE: (typeof OWN_STATE)[number] = 'space probed'

/**
 * Opens the store and listens.
 *
 * @throws StartError if the files of the pages cannot be read, the store cannot be opened or the address cannot be listened on.
 * Whatever was opened is closed again.
 */
export async function startServer(options: {
  config: Config
  logger: Logger
  /** The compiled `submission-worker`, which submits large transactions; if missing, this thread does. */
  submissionWorker?: URL
  /** The compiled `writer-worker`, which writes; if missing, this thread does. */
  writerThread?: URL | undefined
  /** The compiled `image-process`, which makes images; if missing, none are made. */
  imageProgram?: URL
  deploy?: Deploy
  /** The folder of the built scripts and style sheet of pages; if missing, pages have none, and `/mine` is not found. */
  pages?: URL
  ownsProcess?: boolean
}): Promise<RunningServer> {
  const { logger, submissionWorker, writerThread, imageProgram, pages, ownsProcess = false } = options
  const pageFiles = pages && readFiles(pages)
  // In parallel: a thread opens the store while this one loads the routes.
  const [{ node, early }, { createApp }] = await Promise.all([openListening(options), import('./app.js')])
  const { config } = node
  // The worker needs the writer thread, which performs its writes.
  const large =
    submissionWorker && writerThread
      ? new LargeSubmissions({ config, node, logger, worker: submissionWorker })
      : undefined
  if (large) node.overlay.engine.runScripts = large.runScripts
  const { engine } = node.overlay
  const peersSync = openPeersSync({
    ...{ config, graph: node.graph, overlay: node.overlay, logger },
    isMine: () => chain.isMine('sync'),
    async onRound(topic, { isComplete, peer }) {
      // Two hosts that catch up from each other would wait forever.
      if (topic !== TOPICS.names || peer.isCatchingUp) return
      // A peer that does not say up to which block it is followed may have any part of the tree.
      if (peer.asOf === undefined && chain.following?.sources.scope !== undefined) return
      if (!(await hasGenesis(node))) return
      progress.heard()
      if (isComplete) progress.completedBy(peer.asOf, chain.parts.headers?.status().height)
    },
  })
  node.overlay.onEvent((event) => {
    if (event.kind === 'synced' && event.result === 'taken') progress.heard()
  })
  const chain = new FollowedChain({
    ...{ node, logger, submit: large?.submitInWorker },
    hasPeers: peersSync.length > 0,
  })
  const { following, progress, reorgMonitor } = chain
  engine.writes.onWritten = () => following?.ancestors.notify()
  const nonFinal = nonFinalJob({ release: engine.releaseNonFinal, logger })
  await chain.open()
  const images = imageProgram && openImages({ ...config, logger, clientOf: clientKey, program: imageProgram })
  const metrics = metricsOf(node, chain.parts, images)
  if (ownsProcess) metrics.addProcess()
  const space = new StoreSpace({ probe: () => node.graph.settings.set(PROBE, String(monotonic())), logger })
  let isStopping = false
  let port: number | undefined
  const app = createApp({
    config,
    overlay: node.overlay,
    graph: node.graph,
    ping: () => node.graph.ping(),
    readiness: {
      space: () => space.reason(),
      shutdown: () => (isStopping ? 'the host is shutting down' : undefined),
    },
    index: () => node.index.status,
    position: node.position,
    passOn: node.jobs?.passOn,
    metrics,
    ...{ chain: chain.parts, progress },
    port: () => port,
    logger,
    ...(reorgMonitor && { reorgMonitor }),
    ...(pageFiles && { pageFiles }),
    images,
    ...(large && { submit: large.submit }),
    ...(following && { ancestors: node.ancestors, sightings: following.sightings }),
  })
  const onEnd = (ended: EndedRequest): void => {
    if (ended.code === 'STORE_FULL') space.found()
    metrics.countRequest(ended)
  }
  const log = config.logRequests ? { log: logger } : {}
  const server = openHttpServer({ app, limits: config.limits, onEnd, ...log })
  const { port: listened = config.port } = early ?? {}
  const left = early?.leave()
  await listen(server, { ...config, port: listened }).catch(async (error: unknown) => {
    server.close()
    await large?.close()
    await node.close()
    throw error
  })
  port = portOf(server)
  await left
  node.index.start()
  node.jobs?.seek([
    ...(following ? ['follow' as const] : []),
    ...(peersSync.length > 0 ? ['sync' as const] : []),
  ])
  for (const sync of peersSync) sync.start()
  chain.start()
  nonFinal.start()
  // After the requests that waited for this start.
  setImmediate(() => {
    if (node.index.status.state === 'equal' && server.listening)
      void warmUp(server, node.graph).catch(() => {})
  })
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return {
    url: `http://${host}:${port}`,
    node,
    chain: chain.parts,
    async stop() {
      isStopping = true
      const finished = server.finish()
      await Promise.all(peersSync.map((sync) => sync.stop()))
      await chain.stop()
      await nonFinal.stop()
      await images?.close()
      await finished
      await large?.close()
      await node.close()
    },
  }
}

/** How long opening the store may take before the server listens without it, in milliseconds. */
const PATIENCE = 2000

interface EarlyServer {
  port: number
  /** Leaves the port to another server; resolves when its last answer is sent. */
  leave(): Promise<void>
}

/** Opens a node. If that takes long because a log is read first, a server listens meanwhile and says so. */
async function openListening(
  options: Parameters<typeof openNode>[0],
): Promise<{ node: Node; early?: EarlyServer }> {
  const { config, logger } = options
  if (isEmbedded(config)) return { node: await openNode(options) }
  logger.info({ database: placeOf(config) }, 'opening the store')
  let index: NodeIndex | undefined
  const opening = openNode({
    ...options,
    onIndex(found) {
      index = found
    },
  })
  const node = await unlessLate(opening, PATIENCE)
  if (node !== undefined) return { node }
  const { startingApp } = await import('./starting-app.js')
  const app = startingApp({ config, index: () => index?.status ?? { state: 'rebuilding', done: 0 }, logger })
  const server = openHttpServer({ app, limits: config.limits, onEnd() {} })
  try {
    await listen(server, config)
    const port = portOf(server)
    logger.info({ host: config.host, port }, 'opening the store; requests get 503 until it is open')
    index?.start()
    return { node: await opening, early: { port, leave: () => server.finish() } }
  } catch (error) {
    server.close()
    void opening.then((node) => node.close()).catch(() => {})
    throw error
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

function metricsOf(
  { config: { profile }, caches, overlay, index }: Node,
  chain: ChainParts,
  images: Images | undefined,
): Metrics {
  const prefixes = routePrefixes(profile)
  const metrics = new Metrics({
    ...{ prefixes, caches: { ...caches, ...(images && { images: images.use }) } },
    ...{ indexLag: () => index.lag() },
    chain,
  })
  overlay.onEvent(metrics.countEvent)
  return metrics
}

/**
 * Has a server ask itself for the newest content. The first request of a process takes several times as long as later ones, as V8
 * compiles the code, half of it Node's own, and SQLite prepares the statements; nobody waits for this one.
 */
export async function warmUp(
  server: Pick<HttpServer, 'askItself'>,
  { listings }: Pick<GraphReads, 'listings'>,
): Promise<void> {
  const [newest] = listings.newestInscriptions({ limit: 1 })
  if (newest !== undefined) server.askItself(`/content/${formatOutpoint(newest.outpoint)}:-1`)
}

async function hasGenesis({ config, graph }: Node): Promise<boolean> {
  const genesis = config.deployment?.genesis
  return genesis !== undefined && (await graph.names.genuineNodes([genesis])).length > 0
}

function readFiles(folder: URL): PageFiles {
  try {
    return openPageFiles(folder)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`the files of the pages are incomplete; run \`npm run build\`: ${reason}`, { cause })
  }
}
