import { Router } from 'express'
import { z } from 'zod'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import { readUtf8 } from '../../../backend/src/protocol/bytes.js'
import { MAX_NAME_LENGTH } from '../../../backend/src/protocol/mine-node.js'
import { COVENANT_VERSIONS, type CovenantVersion, longestName } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { CACHE } from '../../gateway/http/caching.js'
import type { OperationGroup } from '../../gateway/http/operation.js'
import { outpoint, text } from '../../gateway/http/schemas.js'
import type { Config } from '../config/config.js'
import { advertisedHost } from '../discovery/discovery.js'
import { versionOfTree } from '../store/pinned-genesis.js'

const deploymentShape = z.strictObject({
  profile: z.literal(Object.keys(PROFILES)),
  network: z.enum(['main', 'test']).describe('The network of the addresses.'),
  genesis: outpoint
    .optional()
    .describe('The root as deployed. Absent, with everything below, if the host follows no tree.'),
  covenantVersion: z
    .literal(COVENANT_VERSIONS)
    .optional()
    .describe('The rules of its covenant: see docs/covenant.md. Older servers leave it out: 1.'),
  difficulty: z.int().min(1).max(64).optional().describe('The zero bits of a solution.'),
  nameContentType: text.optional(),
  marker: text.optional().describe('The protocol marker of name outputs.'),
  maxNameLength: z
    .int()
    .min(1)
    .max(MAX_NAME_LENGTH)
    .optional()
    .describe('The longest name that the covenant of this tree can write.'),
  tld: text.optional().describe('What follows every name, after a dot.'),
  advertisedAs: z
    .strictObject({ identityKey: text.describe('Its public key, hex.'), url: text })
    .optional()
    .describe('Under which key and URL this host advertises itself; absent if it does not.'),
})

/**
 * `/deployment.json`: the name tree of this host, and the rules by which names are mined in it. Clients that need a certain tree
 * must not trust this: they know its genesis from elsewhere.
 */
export function deploymentRoutes(
  config: Pick<Config, 'profile' | 'network' | 'deployment' | 'serverPrivateKey' | 'hostingUrl'>,
  graph: Pick<HostStore, 'transactions'>,
): Router {
  const { profile, network, deployment } = config
  const host = advertisedHost(config)
  const advertisedAs = host && { identityKey: host.key.toPublicKey().toString(), url: host.url }
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
    // The root may have been admitted since the start.
    if (deployment !== undefined) version ??= await versionOfTree(graph, deployment.genesis)
    response.set('Cache-Control', CACHE.revalidate).json({
      ...{ profile: profile.name, network, ...tree },
      ...(version && { covenantVersion: version }),
      ...(advertisedAs && { advertisedAs }),
    })
  })
}

export const DEPLOYMENT_OPERATIONS: OperationGroup = {
  tag: 'names',
  operations: {
    deployment: {
      route: 'GET /deployment.json',
      summary: 'Which tree of names this host follows, and how names are mined in it',
      answer: { description: 'The tree, as this host claims it.', json: deploymentShape },
    },
  },
}
