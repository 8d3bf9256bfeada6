import type { Logger } from 'pino'
import type { HeaderChain } from '../../../backend/src/graph/header-chain.js'
import type { Config } from '../config/config.js'
import { checkpointOf } from '../config/header-settings.js'
import type { BlockHeaders } from './chain-tracker.js'
import { openHeadersSource } from './headers-source.js'
import { OwnHeaders } from './own-headers.js'
import { SharedHeaders } from './shared-headers.js'

/**
 * The source of block headers in the settings; undefined if proofs are not checked.
 *
 * @param options.isSecond Whether another thread of this process keeps the chain of headers; then this one only reads it.
 */
export function openBlockHeaders(options: {
  config: Config
  store: HeaderChain
  logger: Logger
  isSecond?: boolean
}): BlockHeaders | undefined {
  const { config, store, logger, isSecond = false } = options
  if (config.chainTracker !== 'headers') return openHeadersSource(config)
  const { network, chainTrackerTimeoutMs: timeout, headersPollMs: pollInterval } = config
  const { headersSources: sources } = config
  const checkpoint = checkpointOf(config)
  if (isSecond) return new SharedHeaders({ store, checkpoint, network })
  const headers = new OwnHeaders({ store, sources, checkpoint, network, timeout, pollInterval, logger })
  headers.start()
  return headers
}
