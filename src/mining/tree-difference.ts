import type { Network } from '../../backend/src/protocol/address.js'
import { readUtf8 } from '../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { ProfileName, TermsOverrides } from '../../backend/src/protocol/profile.js'

/** The tree that a server claims to follow. */
export interface ServerDeployment {
  profile: ProfileName
  network: Network
  deployment: Deployment
}

/** The user's settings, to compare with a server's. Missing ones are not compared. */
export interface ExpectedDeployment {
  profile?: ProfileName
  network?: Network
  genesis?: Outpoint
  terms?: TermsOverrides
  /** The whole tree, if all of it is known; it takes precedence over `genesis` and `terms`. */
  deployment?: Deployment
}

/** A setting in which two trees differ, by the name of its environment variable. */
export interface TreeDifference {
  setting: string
  expected: string | number
  actual: string | number
}

/** The first setting that differs from what is expected; undefined if all agree. */
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

export function profileDifference(
  expected: Pick<ExpectedDeployment, 'profile'>,
  { profile }: Pick<ServerDeployment, 'profile'>,
): TreeDifference | undefined {
  if (expected.profile === undefined || expected.profile === profile) return undefined
  return { setting: 'PROFILE', expected: expected.profile, actual: profile }
}
