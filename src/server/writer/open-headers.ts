import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import type { HeaderStore } from '../../../backend/src/protocol/header-store.js'
import { callsOver, type PlainError, revivedError, serveCalls } from '../../../backend/src/writer/calls.js'
import type { BlockHeaders } from '../../chain/tracker/chain-tracker.js'
import { FollowedHeaders } from '../../chain/tracker/followed-headers.js'
import { GivenHeaders } from '../../chain/tracker/given-headers.js'
import type { Config } from '../config/config.js'
import { checkpointOf } from '../config/header-settings.js'

/** The block headers for the settings; undefined if proofs are not checked. */
export function openBlockHeaders(options: {
  config: Config
  store: HeaderStore
  logger: Logger
}): BlockHeaders | undefined {
  const { config, store, logger } = options
  const { network, chainTrackerTimeoutMs: timeout, headersPollMs: pollInterval, givenTracker } = config
  if (givenTracker !== undefined) return new GivenHeaders(givenTracker, timeout)
  if (config.chainTracker === 'scripts-only') return undefined
  const { headersSources: sources, chainSourceRate: rate } = config
  const checkpoint = checkpointOf(config)
  const headers = new FollowedHeaders({
    ...{ store, sources, checkpoint, network, rate, timeout, pollInterval, logger },
  })
  headers.start()
  return headers
}

/** Serves {@link sharedHeaders}. Returns the port for them. */
export function shareHeaders(headers: BlockHeaders): MessagePort {
  const { port1, port2 } = new MessageChannel()
  serveCalls(port1, headers)
  return port2
}

/** The block headers of another thread of this process, which answers each question, and reports outages and new tips. */
export function sharedHeaders(port: MessagePort): BlockHeaders {
  const ask = callsOver(port, errorOf)
  return {
    outage: undefined,
    verdict: (block) => ask('verdict', block),
    isValidRootForHeight: (root, height) => ask('isValidRootForHeight', root, height),
    currentHeight: () => ask('currentHeight'),
    status: () => ({}),
    onTip() {},
    async close() {
      port.close()
    },
  }
}

function errorOf(failed: PlainError): Error {
  return failed.name === 'ChainTrackerError' ? new ChainTrackerError(failed.message) : revivedError(failed)
}
