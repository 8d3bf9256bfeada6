import { Router } from 'express'
import { readUtf8 } from '../../backend/src/protocol/bytes.js'
import { longestName } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { CACHE } from '../gateway/cache-policy.js'
import type { Config } from './config.js'

/**
 * `/deployment.json`: which tree of names this host follows, and by what rules names are mined in it. On the host's
 * word: whoever means a certain tree knows its genesis from elsewhere.
 */
export function deploymentRoutes({
  profile,
  network,
  deployment,
}: Pick<Config, 'profile' | 'network' | 'deployment'>): Router {
  const tree = deployment && {
    genesis: formatOutpoint(deployment.genesis),
    difficulty: deployment.difficulty,
    nameContentType: deployment.nameContentType,
    marker: readUtf8(deployment.marker),
    maxNameLength: longestName(deployment),
    ...(deployment.tld !== undefined && { tld: deployment.tld }),
  }
  return Router().get('/deployment.json', (_request, response) => {
    response.set('Cache-Control', CACHE.revalidate).json({ profile: profile.name, network, ...tree })
  })
}
