import * as z from 'zod'
import type { Network } from '../../backend/src/protocol/address.js'
import { readUtf8 } from '../../backend/src/protocol/bytes.js'
import {
  COVENANT_VERSIONS,
  type CovenantVersion,
  type Deployment,
  type DeploymentTerms,
} from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import {
  PROFILES,
  type ProfileName,
  type TermsOverrides,
  termsOf,
} from '../../backend/src/protocol/profile.js'
import { askJson } from './mine-index.js'
import { MiningError } from './mining-error.js'

/** How long the answer may take, in milliseconds. */
const TIMEOUT = 10_000

/** Characters of a marker or a TLD: many more than any tree has, for a server may say anything. */
export const MAX_TERM_LENGTH = 255

const server = z.object({
  profile: z.enum(['local', 'mainnet']),
  network: z.enum(['main', 'test']),
  genesis: z.string().optional(),
})

/** A tree as JSON, in `/deployment.json` and in the file of trees that are known. */
export const treeJson = server.extend({
  genesis: z.string().transform((text, context) => {
    const outpoint = readOutpoint(text)
    if (outpoint !== undefined) return outpoint
    context.addIssue({ code: 'custom', message: 'not an outpoint' })
    return z.NEVER
  }),
  // Written since there are two: whatever is without it follows a tree of the first.
  covenantVersion: z.int().min(1).default(1),
  difficulty: z.int().min(1).max(64).optional(),
  marker: z.string().max(MAX_TERM_LENGTH).optional(),
  tld: z.string().max(MAX_TERM_LENGTH).optional(),
})

/** The tree that a server follows, on its word. */
export interface ServerDeployment {
  profile: ProfileName
  network: Network
  deployment: Deployment
}

/**
 * The tree that a JSON document describes.
 *
 * @param document.says Who or what it is, for the message: what comes before "the covenant version".
 * @throws MiningError `NEWER_COVENANT` where this release does not know the rules of its covenant.
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

/** What the user has configured, to compare with what a server says. Nothing is compared with what is left out. */
export interface ExpectedDeployment {
  profile?: ProfileName
  network?: Network
  genesis?: Outpoint
  terms?: TermsOverrides
  /** The whole tree, where all of it is known: then it is what counts. */
  deployment?: Deployment
}

/**
 * Asks a server which tree it follows (`/deployment.json`), and compares it with what the user has configured. What is
 * configured counts; a server that says otherwise is of no use.
 *
 * @param url Without a slash at the end.
 * @throws MiningError `NO_ANSWER`; `BAD_INDEX`, where it is another kind of server; `NO_TREE`; `NEWER_COVENANT`;
 * `OTHER_TREE`, with the first difference.
 */
export async function serverDeployment(
  url: string,
  expected: ExpectedDeployment = {},
  { signal }: { signal?: AbortSignal } = {},
): Promise<ServerDeployment> {
  const { body } = await askJson({ url: `${url}/deployment.json`, timeout: TIMEOUT, signal })
  const answer = server.safeParse(body)
  if (!answer.success) throw new MiningError('BAD_INDEX', `${url} is not a minetree server`)
  requireSame(url, [['PROFILE', expected.profile, answer.data.profile]])
  if (answer.data.genesis === undefined) throw new MiningError('NO_TREE', `${url} follows no tree of names`)
  const tree = treeJson.safeParse(body)
  if (!tree.success) throw new MiningError('BAD_INDEX', `${url} describes a tree that cannot be`)
  const said = treeOfJson(tree.data, { says: `${url} names` })
  const { network, deployment } = said
  const meant = expected.deployment
  const genesis = meant?.genesis ?? expected.genesis
  requireSame(url, [
    ['NETWORK', expected.network, network],
    ['GENESIS', genesis && formatOutpoint(genesis), formatOutpoint(deployment.genesis)],
    ...comparedTerms(expected.terms ?? {}, deployment),
    ...(meant ? comparedTerms(overridesOf(meant), deployment) : []),
    ['NAME_TLD', meant && (meant.tld ?? 'none'), deployment.tld ?? 'none'],
  ])
  return { ...said, deployment: meant ?? deployment }
}

type Setting = string | number | undefined
type Comparison<Name extends string = string> = readonly [name: Name, set: Setting, said: Setting]

/** The setting of a term. */
export type ComparedTerm = 'COVENANT_VERSION' | 'DIFFICULTY' | 'NAME_MARKER' | 'NAME_TLD'

/** @throws MiningError `OTHER_TREE`. */
function requireSame(url: string, settings: readonly Comparison[]): void {
  for (const [name, set, said] of settings)
    if (set !== undefined && set !== said)
      throw new MiningError('OTHER_TREE', `${name} is ${set}, and ${url} follows ${said}`)
}

/** Terms as they are set, each with its setting and with what a server says of it. */
export function comparedTerms(terms: TermsOverrides, said: DeploymentTerms): Comparison<ComparedTerm>[] {
  const { covenantVersion, difficulty, nameMarker, nameTld } = terms
  return [
    ['COVENANT_VERSION', covenantVersion, said.covenantVersion],
    ['DIFFICULTY', difficulty, said.difficulty],
    ['NAME_MARKER', nameMarker, readUtf8(said.marker)],
    ['NAME_TLD', nameTld, said.tld ?? 'none'],
  ]
}

function overridesOf({ covenantVersion, difficulty, marker }: DeploymentTerms): TermsOverrides {
  return { covenantVersion, difficulty, nameMarker: readUtf8(marker) }
}
