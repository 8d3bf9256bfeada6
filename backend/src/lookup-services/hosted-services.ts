import type { RootChecker } from '../graph/overlay-interfaces.js'
import type { Deployment } from '../protocol/mint.js'
import { deploymentOf, PROFILES } from '../protocol/profile.js'
import type { FactStore, GraphReads } from '../read/fact-store.js'
import { type HostHooks, hostRules, shareIndex } from '../read/host-index.js'
import { NamesLookupService } from './NamesLookupService.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/** The index of a host, which follows the host's engine. */
export interface Hosted extends HostHooks {
  store: FactStore
  users: number
}

export interface HostedServiceOptions {
  /** Called with errors after which work is retried, to log or count them; by default, a line is written to standard error. */
  onFailure?: (error: unknown) => void
  /** Checks the proofs of submissions where the storage of the host's engine cannot be read. */
  chainTracker?: RootChecker
}

export interface HostedNamesOptions extends HostedServiceOptions {
  /** The tree to follow; mainnet's by default. */
  deployment?: Deployment
}

/** `ls_names` in the host of another engine. Topic managers of the same process consult its store from now on. */
export function hostedNames(hosted: Hosted, deployment = deploymentOf(PROFILES.mainnet)): NamesLookupService {
  hostRules(hosted.store).deployment = deployment
  return new NamesLookupService({
    reader: reading(hosted),
    hooks: hosted,
    deployment,
    assemblesHistories: false,
  })
}

/** `ls_ordinals` in the host of another engine. Topic managers of the same process consult its store from now on. */
export function hostedOrdinals(hosted: Hosted): OrdinalsLookupService {
  return new OrdinalsLookupService({ reader: reading(hosted), hooks: hosted })
}

function reading(hosted: Hosted): GraphReads {
  shareIndex(hosted.store)
  hosted.users++
  return hosted.store.served
}
