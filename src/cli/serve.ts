import type { Logger } from 'pino'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { trackerName } from '../server/chain-tracker.js'
import type { Config } from '../server/config.js'
import { placeOf } from '../server/open-database.js'
import { startServer } from '../server/server.js'
import { deployHere } from './local-network/deploy.js'
import { seedLocalNetwork } from './local-network/seed.js'

/** Starts the service and keeps it up until SIGINT or SIGTERM; resolves when it has stopped. */
export async function serve({ config, logger }: { config: Config; logger: Logger }): Promise<void> {
  // Before anything is opened: whoever reads that it listens may stop it at once.
  const signalled = new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGINT', resolve)
    process.once('SIGTERM', resolve)
  })
  const submissionWorker = new URL('../server/submission-worker.js', import.meta.url)
  const minePage = new URL('../../mine-page/', import.meta.url)
  const deploy = config.seed ? deployHere : undefined
  const server = await startServer({
    config,
    logger,
    submissionWorker,
    minePage,
    ownsProcess: true,
    ...(deploy && { deploy }),
  })
  sayHow({ config: server.node.config, logger, url: server.url })
  const stop = new AbortController()
  const seeded = seedLocalNetwork({ server, logger, out: process.stderr, signal: stop.signal })
  const signal = await signalled
  stop.abort()
  await seeded
  logger.info({ signal }, 'stopping')
  await server.stop()
  logger.info('stopped')
}

function sayHow({ config, logger, url }: { config: Config; logger: Logger; url: string }): void {
  const { profile, deployment, chainTracker, dataDir, knexUrl, mongoUrl, unused } = config
  const genesis = deployment && formatOutpoint(deployment.genesis)
  const isElsewhere = knexUrl !== undefined || mongoUrl !== undefined
  const place = isElsewhere ? { database: placeOf(config) } : { dataDir }
  logger.info(
    { profile: profile.name, genesis, chainTracker: trackerName(chainTracker), ...place },
    `listening on ${url}`,
  )
  if (genesis === undefined) logger.warn('no GENESIS is set: content is served, names are off')
  if (chainTracker === 'scripts-only' && profile.name === 'mainnet') {
    logger.warn('CHAIN_TRACKER is scripts-only: merkle proofs are not checked, whoever submits is believed')
  }
  if (unused.length > 0)
    logger.warn({ unused }, 'these settings are set, but nothing in this release uses them')
}
