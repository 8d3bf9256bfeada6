import * as z from 'zod/mini'
import type { Network } from '../../backend/src/protocol/address.js'
import { readUtf8 } from '../../backend/src/protocol/bytes.js'
import { COVENANT_VERSIONS, type CovenantVersion, type Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import {
  PROFILES,
  type ProfileName,
  type TermsOverrides,
  termsOf,
} from '../../backend/src/protocol/profile.js'
import { askJson } from './mine-index.js'
import { MiningError } from './mining-error.js'

/** Time for the answer, in milliseconds. */
const TIMEOUT = 10_000

/** The longest marker or TLD that is accepted from a server, in characters: many more than any tree has. */
export const MAX_TERM_LENGTH = 255

const server = z.object({
  profile: z.enum(['local', 'mainnet']),
  network: z.enum(['main', 'test']),
  genesis: z.optional(z.string()),
})

/** A tree as JSON, in `/deployment.json` and in the file of known trees. */
export const treeJson = z.extend(server, {
  genesis: z.pipe(
    z.string(),
    z.transform((text, context) => {
      const outpoint = readOutpoint(text)
      if (outpoint !== undefined) return outpoint
      context.issues.push({ code: 'custom', message: 'not an outpoint', input: text })
      return z.NEVER
    }),
  ),
  // Older servers and files do not have it: their trees have version 1.
  covenantVersion: z._default(z.int().check(z.minimum(1)), 1),
  difficulty: z.optional(z.int().check(z.minimum(1), z.maximum(64))),
  marker: z.optional(z.string().check(z.maxLength(MAX_TERM_LENGTH))),
  tld: z.optional(z.string().check(z.maxLength(MAX_TERM_LENGTH))),
})

/** The tree that a server claims to follow. */
export interface ServerDeployment {
  profile: ProfileName
  network: Network
  deployment: Deployment
}

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
  const { profile, network, genesis, difficulty, marker, tld } = document
  const covenantVersion = knownVersion(document.covenantVersion)
  if (covenantVersion === undefined)
    throw new MiningError(
      'NEWER_COVENANT',
      `${says} the covenant version ${document.covenantVersion} for the tree of ${formatOutpoint(genesis)}, and this release knows ${COVENANT_VERSIONS.join(' and ')}: upgrade minetree`,
    )
  const terms = termsOf(PROFILES[profile], {
    covenantVersion,
    ...(difficulty !== undefined && { difficulty }),
    ...(marker !== undefined && { nameMarker: marker }),
    ...(tld !== undefined && { nameTld: tld }),
  })
  return { profile, network, deployment: { ...terms, genesis } }
}

/** The JSON document that describes a tree. */
export function jsonOfTree({ profile, network, deployment }: ServerDeployment): z.input<typeof treeJson> {
  const { genesis, covenantVersion, difficulty, marker, tld } = deployment
  return {
    ...{ profile, network, genesis: formatOutpoint(genesis), covenantVersion, difficulty },
    marker: readUtf8(marker),
    ...(tld && { tld }),
  }
}

function knownVersion(version: number): CovenantVersion | undefined {
  return COVENANT_VERSIONS.find((known) => known === version)
}

/** The user's settings, to compare with what a server states. Missing ones are not compared. */
export interface ExpectedDeployment {
  profile?: ProfileName
  network?: Network
  genesis?: Outpoint
  terms?: TermsOverrides
  /** The whole tree, if all of it is known; it takes precedence over `genesis` and `terms`. */
  deployment?: Deployment
}

/**
 * Asks a server which tree it follows (`/deployment.json`), and compares the answer with the user's settings. A server
 * that contradicts them is of no use.
 *
 * @param url Without a slash at the end.
 * @throws MiningError `NO_ANSWER`; `BAD_INDEX` if it is another kind of server; `NO_TREE`; `NEWER_COVENANT`; `OTHER_TREE`
 * with the first difference.
 */
export async function serverDeployment(
  url: string,
  expected: ExpectedDeployment = {},
  { signal }: { signal?: AbortSignal } = {},
): Promise<ServerDeployment> {
  const { body } = await askJson({ url: `${url}/deployment.json`, timeout: TIMEOUT, signal })
  const answer = server.safeParse(body)
  if (!answer.success) throw new MiningError('BAD_INDEX', `${url} is not a minetree server`)
  requireSame(url, profileDifference(expected, answer.data))
  if (answer.data.genesis === undefined) throw new MiningError('NO_TREE', `${url} follows no tree of names`)
  const tree = treeJson.safeParse(body)
  if (!tree.success) throw new MiningError('BAD_INDEX', `${url} describes an impossible tree`)
  const stated = treeOfJson(tree.data, { says: `${url} names` })
  requireSame(url, treeDifference(expected, stated))
  return { ...stated, deployment: expected.deployment ?? stated.deployment }
}

/** @throws MiningError `OTHER_TREE`. */
function requireSame(url: string, difference: TreeDifference | undefined): void {
  if (difference === undefined) return
  const { setting, expected, actual } = difference
  throw new MiningError('OTHER_TREE', `${setting} is ${expected}, and ${url} follows ${actual}`)
}

/** A setting in which two descriptions of a tree differ, by the name of its environment variable. */
export interface TreeDifference {
  setting: string
  expected: string | number
  actual: string | number
}

/** The first setting that is expected to be another one; undefined if all agree. */
export function treeDifference(
  expected: ExpectedDeployment,
  actual: ServerDeployment,
): TreeDifference | undefined {
  const { deployment: whole, terms = {} } = expected
  const genesis = whole?.genesis ?? expected.genesis
  const rules = actual.deployment
  const compared: [setting: string, expected: string | number | undefined, actual: string | number][] = [
    ['NETWORK', expected.network, actual.network],
    ['GENESIS', genesis && formatOutpoint(genesis), formatOutpoint(rules.genesis)],
    ['COVENANT_VERSION', whole?.covenantVersion ?? terms.covenantVersion, rules.covenantVersion],
    ['DIFFICULTY', whole?.difficulty ?? terms.difficulty, rules.difficulty],
    ['NAME_MARKER', whole ? readUtf8(whole.marker) : terms.nameMarker, readUtf8(rules.marker)],
    ['NAME_TLD', whole ? (whole.tld ?? 'none') : terms.nameTld, rules.tld ?? 'none'],
  ]
  const other = compared.find(([, set, stated]) => set !== undefined && set !== stated)
  return (
    profileDifference(expected, actual) ??
    (other && { setting: other[0], expected: other[1] ?? '', actual: other[2] })
  )
}

function profileDifference(
  expected: Pick<ExpectedDeployment, 'profile'>,
  { profile }: Pick<ServerDeployment, 'profile'>,
): TreeDifference | undefined {
  if (expected.profile === undefined || expected.profile === profile) return undefined
  return { setting: 'PROFILE', expected: expected.profile, actual: profile }
}
