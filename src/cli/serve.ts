import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Logger } from 'pino'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { Config } from '../server/config/config.js'
import { packageFolder } from '../server/config/package-info.js'
import { placeOf } from '../server/config/place.js'
import { IMAGE_PROGRAM } from '../server/images/images.js'
import { WRITER_THREAD } from '../server/node.js'
import { type RunningServer, startServer } from '../server/server.js'
import type { Deploy } from '../server/store/pinned-genesis.js'
import { chainStatus } from '../server/telemetry/chain-status.js'
import { SUBMISSION_WORKER } from '../server/writer/large-submissions.js'
import type { Seeding } from './local-network/seed.js'
import type { ProgressLine, Stream } from './output.js'

/** Starts the service and keeps it up until SIGINT or SIGTERM; resolves when it has stopped. */
export async function serve(options: {
  config: Config
  logger: Logger
  /** The stream for the progress of filling a local network. */
  out: Stream
  /** The progress line for catching up with the chain, on a terminal; the logger ends it before each of its own lines. */
  line: ProgressLine
}): Promise<void> {
  const { config, logger, out, line } = options
  // Installed before anything is opened: a process that reads the startup message may stop this one at once.
  const signalled = new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGINT', resolve)
    process.once('SIGTERM', resolve)
  })
  const pages = pathToFileURL(join(packageFolder(), 'dist/pages/'))
  const deploy = config.seed ? deployLazily : undefined
  const starting = startServer({
    config,
    logger,
    submissionWorker: SUBMISSION_WORKER,
    writerThread: WRITER_THREAD,
    imageProgram: IMAGE_PROGRAM,
    pages,
    ownsProcess: true,
    deploy,
  })
  const server = await unlessSignalled(starting, signalled, logger)
  sayHow({ config: server.node.config, logger, url: server.url })
  await sayAdvertised(server, logger)
  const stop = new AbortController()
  const status = () => chainStatus(server.chain)
  // Loaded on demand, too: this is for a terminal.
  if (out.isTTY) (await import('./follow-progress.js')).showCatchingUp({ line, status, signal: stop.signal })
  const seeded = config.seed && seed({ server, logger, out, signal: stop.signal })
  const signal = await signalled
  stop.abort()
  await seeded
  logger.info({ signal }, 'stopping')
  await server.stop()
  logger.info('stopped')
}

// Loaded on demand: only a local network is deployed and filled here, once.

const deployLazily: Deploy = async (terms) => (await import('./fake-transactions.js')).deployTree(terms)

async function seed(seeding: Seeding): Promise<void> {
  const { seedLocalNetwork } = await import('./local-network/seed.js')
  await seedLocalNetwork(seeding)
}

/**
 * The server once it has started. A signal before that ends the process: nobody is served yet, and stopping is as safe as a power
 * cut.
 */
async function unlessSignalled(
  starting: Promise<RunningServer>,
  signalled: Promise<NodeJS.Signals>,
  logger: Logger,
): Promise<RunningServer> {
  const first = await Promise.race([starting, signalled])
  if (typeof first !== 'string') return first
  logger.info({ signal: first }, 'stopped before the start was complete')
  process.exit(0)
}

function sayHow({ config, logger, url }: { config: Config; logger: Logger; url: string }): void {
  const { profile, deployment, chainTracker, dataDir, knexUrl, mongoUrl, unused, warnings } = config
  const genesis = deployment && formatOutpoint(deployment.genesis)
  const isElsewhere = knexUrl !== undefined || mongoUrl !== undefined
  const place = isElsewhere ? { database: placeOf(config) } : { dataDir }
  logger.info({ profile: profile.name, genesis, chainTracker, ...place }, `listening on ${url}`)
  if (genesis === undefined) logger.warn('no GENESIS is set: content is served, names are off')
  if (chainTracker === 'scripts-only' && profile.name === 'mainnet') {
    logger.warn('CHAIN_TRACKER is scripts-only: merkle proofs are not checked, so submitters are trusted')
  }
  for (const warning of [...warnings, ...unused]) logger.warn(warning)
}

/** Logs what is left to advertise; the server itself pays for nothing. */
async function sayAdvertised({ node }: RunningServer, logger: Logger): Promise<void> {
  try {
    const state = await node.overlay.discovery?.state()
    if (state === undefined) return
    const { url, missing, otherUrls } = state
    if (missing.length > 0) logger.info({ url, missing }, 'not advertised yet: run minetree advertise')
    if (otherUrls.length > 0)
      logger.warn({ url, otherUrls }, 'other URLs are advertised: run minetree advertise to revoke those')
  } catch (err) {
    // A database may be unavailable for a moment, which the routes report.
    logger.warn({ err }, 'cannot read what is advertised')
  }
}
