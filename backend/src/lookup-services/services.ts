import type {
  LookupFormula,
  LookupQuestion,
  LookupService,
  OutputAdmittedByTopic,
  OutputSpent,
  RootChecker,
  ServiceMetadata,
} from '../graph/overlay-interfaces.js'
import { atomicSubject } from '../protocol/beef.js'
import type { Deployment } from '../protocol/mint.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { deploymentOf, LOOKUP_SERVICES, meansTopic, PROFILES, TOPICS } from '../protocol/profile.js'
import type { FactStore, GraphReads } from '../read/fact-store.js'
import { hostRules, shareIndex } from '../read/host-index.js'
import type { AnsweringService } from '../read/provenance.js'
import { NamesLookupService, type NamesLookupServiceOptions } from './NamesLookupService.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/** What the answers about names depend on, beside the index. */
export type NamesOptions = Pick<NamesLookupServiceOptions, 'deployment' | 'asksNetwork'>

/** `ls_names` and `ls_ordinals` over an index, by their names. */
export function answeringServices(
  reader: GraphReads,
  options: NamesOptions,
): Record<'ls_names' | 'ls_ordinals', AnsweringService> {
  return {
    [LOOKUP_SERVICES.names]: new NamesLookupService({ reader, ...options }),
    [LOOKUP_SERVICES.ordinals]: new OrdinalsLookupService(reader),
  }
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

/**
 * The index of a host, which follows the host's engine. Calls of hooks throw nothing: what cannot be recorded is kept and retried.
 */
export interface Hosted {
  readonly store: FactStore
  /** How many services use it. */
  users: number
  /**
   * Whether hooks need the BEEF, because the engine's tables cannot be read. Writing it for each output and service takes an
   * engine longer than the rest of a mint.
   */
  readonly needsTransactions: boolean
  /** The engine has verified a transaction, and stored an output of it. */
  admitted(payload: OutputAdmittedByTopic): Promise<void>
  /** The engine has verified a spender, but may still refuse it: 0.4.6 broadcasts after it has reported spends. */
  spentBy(txid: string, beef?: number[]): Promise<void>
  evicted(outpoint: Outpoint): Promise<void>
  close(): Promise<void>
}

/** `ls_names` in the host of another engine. Topic managers of the same process consult its store from now on. */
export function hostedNames(hosted: Hosted, deployment = deploymentOf(PROFILES.mainnet)): HostedService {
  hostRules(hosted.store).deployment = deployment
  const reader = hosted.store.served
  const service = new NamesLookupService({ reader, deployment, assemblesHistories: false })
  return new HostedService(service, hosted, { admitted: TOPICS.names, spent: [] })
}

/** `ls_ordinals` in the host of another engine. Topic managers of the same process consult its store from now on. */
export function hostedOrdinals(hosted: Hosted): HostedService {
  const service = new OrdinalsLookupService(hosted.store.served)
  // A name may be in its own topic alone.
  return new HostedService(service, hosted, {
    admitted: TOPICS.ordinals,
    spent: [TOPICS.ordinals, TOPICS.names],
  })
}

/** A lookup service in the host of another engine, whose calls of hooks it passes on to the index. */
class HostedService implements LookupService {
  /**
   * @param topics Those whose outputs and spends it passes on. A spend counts even if its transaction admits nothing: the ordinal
   * is burnt. Only an admitted mint spends a node, and its admission says so.
   */
  constructor(
    private readonly service: AnsweringService,
    private readonly hosted: Hosted,
    private readonly topics: { admitted: string; spent: readonly string[] },
  ) {
    shareIndex(hosted.store)
    hosted.users++
  }

  get admissionMode(): 'locking-script' | 'whole-tx' {
    return this.hosted.needsTransactions ? 'whole-tx' : 'locking-script'
  }

  get spendNotificationMode(): 'none' | 'txid' | 'whole-tx' {
    if (this.topics.spent.length === 0) return 'none'
    return this.hosted.needsTransactions ? 'whole-tx' : 'txid'
  }

  async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    if (meansTopic(payload.topic, this.topics.admitted)) await this.hosted.admitted(payload)
  }

  async outputSpent(payload: OutputSpent): Promise<void> {
    if (!this.topics.spent.some((topic) => meansTopic(payload.topic, topic))) return
    if (payload.mode === 'whole-tx')
      await this.hosted.spentBy(atomicSubject(payload.spendingAtomicBEEF), payload.spendingAtomicBEEF)
    else if (payload.mode !== 'none') await this.hosted.spentBy(payload.spendingTxid)
  }

  async outputEvicted(txid: string, outputIndex: number): Promise<void> {
    await this.hosted.evicted({ txid, vout: outputIndex })
  }

  /** @throws QueryError for a question of no known form. */
  lookup(question: LookupQuestion): Promise<LookupFormula> {
    return this.service.lookup(question)
  }

  getDocumentation(): Promise<string> {
    return this.service.getDocumentation()
  }

  getMetaData(): Promise<ServiceMetadata> {
    return this.service.getMetaData()
  }

  /** Stops following the engine. */
  async close(): Promise<void> {
    await this.hosted.close()
  }
}
