import { Router } from 'express'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import { readUtf8 } from '../../../backend/src/protocol/bytes.js'
import { type CovenantVersion, longestName } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { CACHE } from '../../gateway/http/cache-policy.js'
import type { Config } from '../config/config.js'
import { versionOfTree } from '../store/pinned-genesis.js'

/**
 * `/deployment.json`: which tree of names this host follows, and by what rules names are mined in it. On the host's
 * word: whoever means a certain tree knows its genesis from elsewhere.
 */
export function deploymentRoutes(
  { profile, network, deployment }: Pick<Config, 'profile' | 'network' | 'deployment'>,
  graph: Pick<HostStore, 'transactions'>,
): Router {
  const tree = deployment && {
    genesis: formatOutpoint(deployment.genesis),
    covenantVersion: deployment.covenantVersion,
    difficulty: deployment.difficulty,
    nameContentType: deployment.nameContentType,
    marker: readUtf8(deployment.marker),
    maxNameLength: longestName(deployment),
    ...(deployment.tld !== undefined && { tld: deployment.tld }),
  }
  let version: CovenantVersion | undefined
  return Router().get('/deployment.json', async (_request, response) => {
    // The root may have come since the start.
    if (deployment !== undefined) version ??= await versionOfTree(graph, deployment.genesis)
    response
      .set('Cache-Control', CACHE.revalidate)
      .json({ profile: profile.name, network, ...tree, ...(version && { covenantVersion: version }) })
  })
}
