import { join } from 'node:path'
import { PAGE_TIMES } from '../chain/sources/header-fetcher.js'
import { HeaderSource } from '../chain/sources/header-source.js'
import { FileSegmentStore } from '../client/file-segment-store.js'
import { OwnHeaders } from '../client/own-headers.js'
import type { Config } from '../server/config/config.js'
import { checkpointOf } from '../server/config/header-settings.js'
import { userFolder } from './user-files.js'

/**
 * The block headers of a command without a store: verified like those of a server, and kept among the cached files of the user.
 * Undefined if proofs are not checked.
 */
export function openOwnHeaders(
  config: Pick<
    Config,
    | 'chainTracker'
    | 'chainTrackerTimeoutMs'
    | 'chainSourceRate'
    | 'headersSources'
    | 'headersCheckpoint'
    | 'network'
  >,
  env: Record<string, string | undefined> = process.env,
): OwnHeaders | undefined {
  const { network, headersSources, chainSourceRate: rate, chainTrackerTimeoutMs: timeout } = config
  if (config.chainTracker === 'scripts-only') return undefined
  const { signal } = new AbortController()
  return new OwnHeaders({
    sources: headersSources.map((address) => new HeaderSource({ address, rate, timeout, network, signal })),
    checkpoint: checkpointOf(config),
    network,
    store: new FileSegmentStore({ folder: join(userFolder(env, 'XDG_CACHE_HOME'), 'headers') }),
    fetch: { timeout: PAGE_TIMES * timeout },
  })
}
