import * as z from 'zod/mini'
import { readUtf8 } from '../../backend/src/protocol/bytes.js'
import { COVENANT_VERSIONS } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, parseOutpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { PROFILES, termsOf } from '../../backend/src/protocol/profile.js'
import { MiningError } from './mining-error.js'
import type { ServerDeployment } from './tree-difference.js'

// Separate from `server-deployment`, whose declarations must not name zod: an installation of the client alone does not have it.

/** The longest marker or TLD that is accepted from a server, in characters: far more than any tree has. */
const MAX_TERM_LENGTH = 255

/** The start of `/deployment.json`, whether or not the server follows a tree. */
export const serverJson = z.object({
  profile: z.enum(['local', 'mainnet']),
  network: z.enum(['main', 'test']),
  genesis: z.optional(z.string()),
})

/** A tree as JSON, in `/deployment.json` and in the file of known trees. */
export const treeJson = z.extend(serverJson, {
  genesis: z.string().check(z.refine((text) => readOutpoint(text) !== undefined, 'not an outpoint')),
  // Missing in older servers and files, whose trees have version 1.
  covenantVersion: z._default(z.int().check(z.minimum(1)), 1),
  difficulty: z.optional(z.int().check(z.minimum(1), z.maximum(64))),
  marker: z.optional(z.string().check(z.maxLength(MAX_TERM_LENGTH))),
  tld: z.optional(z.string().check(z.maxLength(MAX_TERM_LENGTH))),
})

/**
 * The tree that a JSON document describes.
 *
 * @param document.says The start of an error message, before "the covenant version".
 * @throws MiningError `NEWER_COVENANT` if this release does not know the rules of its covenant.
 */
export function treeOfJson(
  document: z.output<typeof treeJson>,
  { says }: { says: string },
): ServerDeployment {
  const { profile, network, difficulty, marker, tld } = document
  const covenantVersion = COVENANT_VERSIONS.find((known) => known === document.covenantVersion)
  if (covenantVersion === undefined)
    throw new MiningError(
      'NEWER_COVENANT',
      `${says} the covenant version ${document.covenantVersion} for the tree of ${document.genesis}, but this release knows ${COVENANT_VERSIONS.join(' and ')}: upgrade minetree`,
    )
  const terms = termsOf(PROFILES[profile], {
    covenantVersion,
    ...(difficulty !== undefined && { difficulty }),
    ...(marker !== undefined && { nameMarker: marker }),
    ...(tld !== undefined && { nameTld: tld }),
  })
  return { profile, network, deployment: { ...terms, genesis: parseOutpoint(document.genesis) } }
}

export function jsonOfTree({ profile, network, deployment }: ServerDeployment): z.input<typeof treeJson> {
  const { genesis, covenantVersion, difficulty, marker, tld } = deployment
  return {
    ...{ profile, network, genesis: formatOutpoint(genesis), covenantVersion, difficulty },
    marker: readUtf8(marker),
    ...(tld && { tld }),
  }
}
