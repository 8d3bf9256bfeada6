import type { Logger } from 'pino'
import type { HeaderChain } from '../../../backend/src/graph/header-chain.js'
import type { BlockHeaders } from '../../chain/tracker/chain-tracker.js'
import { openHeadersSource } from '../../chain/tracker/headers-source.js'
import { OwnHeaders } from '../../chain/tracker/own-headers.js'
import type { Config } from '../config/config.js'
import { checkpointOf } from '../config/header-settings.js'

/** The source of block headers in the settings; undefined if proofs are not checked. */
export function openBlockHeaders(options: {
  config: Config
  store: HeaderChain
  logger: Logger
}): BlockHeaders | undefined {
  const { config, store, logger } = options
  if (config.chainTracker !== 'headers') return openHeadersSource(config)
  const { network, chainTrackerTimeoutMs: timeout, headersPollMs: pollInterval } = config
  const { headersSources: sources, chainSourceRate: rate } = config
  const checkpoint = checkpointOf(config)
  const headers = new OwnHeaders({ store, sources, checkpoint, network, rate, timeout, pollInterval, logger })
  headers.start()
  return headers
}
