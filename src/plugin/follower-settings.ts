import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { type Config, ConfigError, readConfig } from '../server/config/config.js'
import { LIMITS } from '../server/config/limits.js'

/** Those settings of our server that say how a host follows the chain. */
const SETTINGS = [
  ...['CHAIN_SOURCES', 'CHAIN_SOURCE_RATE', 'JUNGLEBUS_SUBSCRIPTION', 'FOLLOW_ORDINALS', 'FOLLOW_POLL_MS'],
  ...[
    'CHAIN_TRACKER',
    'CHAIN_TRACKER_TIMEOUT_MS',
    'HEADERS_SOURCES',
    'HEADERS_CHECKPOINT',
    'HEADERS_POLL_MS',
  ],
  ...['REORG_DEPTH', 'NETWORK', 'MAX_BODY_BYTES'],
  ...Object.values(LIMITS).map(({ setting }) => setting),
]

/**
 * Reads the settings of a follower. Others, as those of the host's database, mean nothing here.
 *
 * @throws ConfigError that names the first invalid one.
 */
export function followerConfig(
  settings: Readonly<Record<string, string | undefined>>,
  deployment: Deployment,
): Config {
  const set = Object.fromEntries(SETTINGS.map((name) => [name, settings[name]]))
  const tree = { PROFILE: 'mainnet', GENESIS: formatOutpoint(deployment.genesis) }
  const config = readConfig({ ...set, ...tree })
  if (config.chainSources.length === 0)
    throw new ConfigError(
      'CHAIN_SOURCES: must name the services to follow the chain by, such as junglebus (docs/follow.md)',
    )
  return { ...config, deployment }
}
