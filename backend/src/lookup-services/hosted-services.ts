import { BlocklistFilter } from '../graph/blocklist-filter.js'
import type { OpenEngineOutputs } from '../graph/engine-outputs.js'
import type { HookOutbox } from '../graph/hook-outbox.js'
import { hostRules, shareIndex } from '../graph/host-index.js'
import type { HostStore } from '../graph/host-store.js'
import type { Deployment } from '../protocol/mint.js'
import { deploymentOf, LOOKUP_SERVICES, PROFILES, TOPICS } from '../protocol/profile.js'
import type { HookFailure } from './hook-retries.js'
import type { RetryOptions } from './hooks.js'
import { missedHooks } from './missed-hooks.js'
import { NamesLookupService } from './NamesLookupService.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/** What the lookup services of another engine's host work with. */
export interface HostedIndex {
  store: HostStore
  outbox: HookOutbox
  /** The storage of the host's engine, where it can be reached. */
  openEngine: OpenEngineOutputs | undefined
}

export interface HostedServiceOptions {
  /** Called for every hook that failed and will be retried: to log or count them. */
  onHookFailure?: (failure: HookFailure) => void
}

export interface HostedNamesOptions extends HostedServiceOptions {
  /** The tree to follow; mainnet's by default. */
  deployment?: Deployment
}

/** `ls_names` in the host of another engine. Topic managers of the same process consult its store from now on. */
export function hostedNames(
  index: HostedIndex,
  { deployment = deploymentOf(PROFILES.mainnet), onHookFailure }: HostedNamesOptions,
): NamesLookupService {
  const { store } = index
  shareIndex(store)
  hostRules(store).deployment = deployment
  return new NamesLookupService({
    reader: new BlocklistFilter(store),
    writer: store,
    deployment,
    retries: retriesOf(index, { service: LOOKUP_SERVICES.names, topic: TOPICS.names, onHookFailure }),
    derives: true,
    assemblesHistories: false,
  })
}

/** `ls_ordinals` in the host of another engine. Topic managers of the same process consult its store from now on. */
export function hostedOrdinals(
  index: HostedIndex,
  { onHookFailure }: HostedServiceOptions,
): OrdinalsLookupService {
  const { store } = index
  shareIndex(store)
  return new OrdinalsLookupService({
    reader: new BlocklistFilter(store),
    writer: store,
    retries: retriesOf(index, { service: LOOKUP_SERVICES.ordinals, topic: TOPICS.ordinals, onHookFailure }),
    derivesBy: () => hostRules(store),
  })
}

function retriesOf(
  { store, outbox, openEngine }: HostedIndex,
  {
    onHookFailure,
    ...of
  }: { service: string; topic: string; onHookFailure: HostedServiceOptions['onHookFailure'] },
): RetryOptions {
  return {
    outbox,
    onHookFailure,
    ...(openEngine && { missed: () => missedHooks({ ...of, openEngine, index: store }) }),
  }
}
