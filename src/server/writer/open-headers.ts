import type { Logger } from 'pino'
import type { HeaderStore } from '../../../backend/src/protocol/header-store.js'
import type { BlockHeaders } from '../../chain/tracker/chain-tracker.js'
import { FollowedHeaders } from '../../chain/tracker/followed-headers.js'
import { openHeadersSource } from '../../chain/tracker/headers-source.js'
import type { Config } from '../config/config.js'
import { checkpointOf } from '../config/header-settings.js'

/** The source of block headers in the settings; undefined if proofs are not checked. */
export function openBlockHeaders(options: {
  config: Config
  store: HeaderStore
  logger: Logger
}): BlockHeaders | undefined {
  const { config, store, logger } = options
  if (config.chainTracker !== 'headers') return openHeadersSource(config)
  const { network, chainTrackerTimeoutMs: timeout, headersPollMs: pollInterval } = config
  const { headersSources: sources, chainSourceRate: rate } = config
  const checkpoint = checkpointOf(config)
  const headers = new FollowedHeaders({
    store,
    sources,
    checkpoint,
    network,
    rate,
    timeout,
    pollInterval,
    logger,
  })
  headers.start()
  return headers
}
