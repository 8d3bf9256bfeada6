import type { Logger } from 'pino'
import { answeredWithin } from '../../../backend/src/graph/answered-within.js'
import type { HeaderStore } from '../../../backend/src/protocol/header-store.js'
import { askedSource } from '../../chain/tracker/asked-source.js'
import { type BlockHeaders, trackerName } from '../../chain/tracker/chain-tracker.js'
import { FollowedHeaders } from '../../chain/tracker/followed-headers.js'
import { GivenHeaders, type GivenTracker } from '../../chain/tracker/given-headers.js'
import type { Config } from '../config/config.js'
import { checkpointOf, trackerSource } from '../config/header-settings.js'

/** The block headers of the settings; undefined if proofs are not checked. */
export function openBlockHeaders(options: {
  config: Config
  store: HeaderStore
  logger: Logger
}): BlockHeaders | undefined {
  const { config, store, logger } = options
  const { network, chainTrackerTimeoutMs: timeout, headersPollMs: pollInterval, givenTracker } = config
  if (givenTracker !== undefined)
    return new GivenHeaders({ tracker: within(timeout, givenTracker), name: 'of the host' })
  if (config.chainTracker !== 'headers') return openAskedHeaders(config)
  const { headersSources: sources, chainSourceRate: rate } = config
  const checkpoint = checkpointOf(config)
  const headers = new FollowedHeaders({
    ...{ store, sources, checkpoint, network, rate, timeout, pollInterval, logger },
  })
  headers.start()
  return headers
}

/**
 * The service in the settings that is asked about each block; undefined if proofs are not checked. Headers of our own take a store,
 * so a command without one asks WhatsOnChain instead.
 */
export function openAskedHeaders(
  config: Pick<Config, 'chainTracker' | 'chainTrackerTimeoutMs' | 'network'>,
): GivenHeaders | undefined {
  const { network, chainTrackerTimeoutMs: timeout } = config
  if (config.chainTracker === 'scripts-only') return undefined
  const chainTracker = config.chainTracker === 'headers' ? 'whatsonchain' : config.chainTracker
  const tracker = askedSource({ address: trackerSource(chainTracker), timeout, network })
  return new GivenHeaders({ tracker, name: trackerName(chainTracker) })
}

function within(timeout: number, tracker: GivenTracker): GivenTracker {
  const error = (): Error => new Error(`it did not answer within ${timeout} ms`)
  return {
    isValidRootForHeight: (root, height) =>
      answeredWithin(timeout, () => tracker.isValidRootForHeight(root, height), { error }),
    currentHeight: () => answeredWithin(timeout, () => tracker.currentHeight(), { error }),
  }
}
