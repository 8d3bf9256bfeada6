import { BINARY_DIRECTORY } from './binary-directory.js'
import { utf8 } from './bytes.js'
import {
  COVENANT_LIMITS,
  type CovenantLimits,
  type CovenantVersion,
  type Deployment,
  type DeploymentTerms,
} from './mint.js'
import { checkedOutpoint, type Outpoint, parseOutpoint } from './outpoint.js'

export type ProfileName = 'local' | 'mainnet'

/**
 * The differences between a private network and the live one (`docs/spec/protocol.md`, Profiles). If a field lists several
 * values, the first is written, and all of them are read.
 */
export interface Profile {
  name: ProfileName
  gatewayPrefixes: string[]
  namesPrefixes: string[]
  /** Path prefixes below which wallets find transactions (`/beef`), their outputs (`/txo`), and the overlay once more. */
  walletPrefixes: string[]
  directoryContentTypes: string[]
  streamChunkContentTypes: string[]
  /** The parameter that the content type of a stream's first chunk carries. */
  streamMarker: string
  nameContentType: string
  /** The protocol marker of name outputs, as text. */
  nameMarker: string
  /** The outpoint of the tree's deployment, if it is known beforehand. */
  genesis?: string
  covenantVersion: CovenantVersion
  /** Zero bits of a solution. */
  difficulty: number
  /** The limits of the tree's covenant, if known. */
  covenantLimits?: CovenantLimits
  /** Other names that topics answer to, each with the topic it means. */
  topicAliases: Record<string, string>
  lookupServiceAliases: Record<string, string>
}

export const TOPICS = { names: 'tm_names', ordinals: 'tm_ordinals' } as const
export const LOOKUP_SERVICES = { names: 'ls_names', ordinals: 'ls_ordinals' } as const

/** Whether a topic is this one, or an alias of it in any profile. */
export function meansTopic(topic: string, meant: string): boolean {
  return topicNames(meant).includes(topic)
}

export function topicNames(topic: string): string[] {
  const aliases = Object.values(PROFILES).flatMap(({ topicAliases }) => Object.entries(topicAliases))
  return [topic, ...aliases.flatMap(([alias, meant]) => (meant === topic ? [alias] : []))]
}

/** A profile whose tree is known beforehand. */
type KnownProfile = Profile & { genesis: string }

export const PROFILES: { local: Profile; mainnet: KnownProfile } = {
  local: {
    name: 'local',
    gatewayPrefixes: ['/svc/gateway'],
    namesPrefixes: ['/svc/names'],
    walletPrefixes: ['/svc'],
    directoryContentTypes: ['gw-fs/json', 'ord-fs/json', BINARY_DIRECTORY],
    streamChunkContentTypes: ['gw/stream', 'ordfs/stream'],
    streamMarker: 'stream=gw',
    nameContentType: 'application/name-claim',
    // A default for local networks only, where anything will do: the address of the hash of "minetree local names". A public
    // deployment chooses its own.
    nameMarker: '1NhSTuNY3ALi9QHGibKLUkhd78d5qMhLCr',
    // As the live tree, which a local network stands in for (`docs/spec/protocol.md`, Mints).
    covenantVersion: 1,
    difficulty: 22,
    covenantLimits: COVENANT_LIMITS,
    topicAliases: {},
    lookupServiceAliases: {},
  },
  mainnet: {
    name: 'mainnet',
    gatewayPrefixes: ['/1sat/ordfs', '/svc/gateway'],
    namesPrefixes: ['/1sat/opns', '/svc/names'],
    walletPrefixes: ['/1sat', '/svc'],
    directoryContentTypes: ['ord-fs/json', 'gw-fs/json', BINARY_DIRECTORY],
    streamChunkContentTypes: ['ordfs/stream', 'gw/stream'],
    streamMarker: 'stream=ordfs',
    nameContentType: 'application/op-ns',
    nameMarker: '1opNSUJVbBc2Vf8LFNSoywGGK4jMcGVrC',
    // In block 806214.
    genesis: '58b7558ea379f24266c7e2f5fe321992ad9a724fd7a87423ba412677179ccb25_0',
    covenantVersion: 1,
    difficulty: 22,
    // opns-overlay spells them both ways.
    topicAliases: { tm_opns: TOPICS.names, tm_OpNS: TOPICS.names },
    lookupServiceAliases: { ls_opns: LOOKUP_SERVICES.names, ls_OpNS: LOOKUP_SERVICES.names },
  },
}

/** Settings of an operator that override a profile. */
export interface TermsOverrides {
  covenantVersion?: CovenantVersion
  difficulty?: number
  nameMarker?: string
  nameTld?: string
}

/** The rules of a profile's tree of names, whatever its genesis. */
export function termsOf(profile: Profile, overrides: TermsOverrides = {}): DeploymentTerms {
  return {
    covenantVersion: overrides.covenantVersion ?? profile.covenantVersion,
    difficulty: overrides.difficulty ?? profile.difficulty,
    nameContentType: profile.nameContentType,
    marker: utf8(overrides.nameMarker ?? profile.nameMarker),
    tld: overrides.nameTld,
    limits: profile.covenantLimits,
  }
}

/**
 * A profile's tree of names; undefined if no genesis is known.
 *
 * @throws PointerError if the genesis is no outpoint: a text, for example, would make a tree that no transaction belongs to.
 */
export function deploymentOf(profile: KnownProfile, overrides?: TermsOverrides): Deployment
export function deploymentOf(profile: Profile, overrides: TermsOverrides & { genesis: Outpoint }): Deployment
export function deploymentOf(
  profile: Profile,
  overrides?: TermsOverrides & { genesis?: Outpoint },
): Deployment | undefined
export function deploymentOf(
  profile: Profile,
  { genesis, ...overrides }: TermsOverrides & { genesis?: Outpoint } = {},
): Deployment | undefined {
  const own = profile.genesis === undefined ? undefined : parseOutpoint(profile.genesis)
  const known = genesis === undefined ? own : checkedOutpoint(genesis)
  return known && { ...termsOf(profile, overrides), genesis: known }
}
