import { join } from 'node:path'
import { PAGE_TIMES } from '../chain/sources/header-fetcher.js'
import { HeaderSource } from '../chain/sources/header-source.js'
import { FileSegmentStore } from '../client/file-segment-store.js'
import { OwnHeaders } from '../client/own-headers.js'
import type { Config } from '../server/config/config.js'
import { checkpointOf } from '../server/config/header-settings.js'
import type { Running } from './command.js'
import { userFolder } from './user-files.js'

/** A chain tracker, or `'scripts only'` if proofs are not checked. */
export type CommandHeaders = Pick<OwnHeaders, 'isValidRootForHeight' | 'currentHeight'> | 'scripts only'

/**
 * The block headers of a command without a store: verified like those of a server, and kept in the user's cache. While a question
 * waits for headers, their progress is shown; the signal of the command ends that.
 *
 * @param running.keeps Whether headers are kept, and kept ones used; true by default.
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
  running: Running & { env: Record<string, string | undefined>; keeps?: boolean },
): CommandHeaders {
  const { network, headersSources, chainSourceRate: rate, chainTrackerTimeoutMs: timeout } = config
  const { env, output, signal, keeps = true } = running
  if (config.chainTracker === 'scripts-only') return 'scripts only'
  const headers = new OwnHeaders({
    sources: headersSources.map((address) => new HeaderSource({ address, rate, timeout, network, signal })),
    checkpoint: checkpointOf(config),
    network,
    ...(keeps && {
      store: new FileSegmentStore({ folder: join(userFolder(env, 'XDG_CACHE_HOME'), 'headers') }),
    }),
    fetch: { timeout: PAGE_TIMES * timeout },
  })
  const progress = () => ({ text: headers.progress })
  return {
    isValidRootForHeight: (...block) => output.during(progress, () => headers.isValidRootForHeight(...block)),
    currentHeight: () => output.during(progress, () => headers.currentHeight()),
  }
}
