import type {
  LookupFormula,
  LookupQuestion,
  LookupService,
  OutputAdmittedByTopic,
  OutputSpent,
  ServiceMetadata,
} from '../graph/overlay-interfaces.js'
import { LOOKUP_SERVICE_METADATA } from '../graph/service-metadata.js'
import { atomicSubject } from '../protocol/beef.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { meansTopic, TOPICS } from '../protocol/profile.js'
import type { GraphReads } from '../read/fact-store.js'
import type { HostHooks } from '../read/host-index.js'
import { ORDINALS_LOOKUP_DOCUMENTATION } from './documentation.js'
import { type OrdinalsQuery, readOrdinalsQuery } from './queries.js'

export interface OrdinalsLookupServiceOptions {
  reader: Pick<GraphReads, 'ordinals' | 'listings'>
  /** In the host of another engine: receives the calls of its hooks. */
  hooks?: HostHooks | undefined
}

/** `ls_ordinals`: ordinals and content by outpoint and by their attributes (`docs/spec/overlay.md`; BRC-24). */
export class OrdinalsLookupService implements LookupService {
  constructor(private readonly options: OrdinalsLookupServiceOptions) {}

  get admissionMode(): 'locking-script' | 'whole-tx' {
    return this.options.hooks?.needsTransactions === false ? 'locking-script' : 'whole-tx'
  }

  get spendNotificationMode(): 'txid' | 'whole-tx' {
    return this.options.hooks?.needsTransactions === false ? 'txid' : 'whole-tx'
  }

  async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    if (meansTopic(payload.topic, TOPICS.ordinals)) await this.options.hooks?.admitted(payload)
  }

  /** A spend counts even if its transaction admits nothing: the ordinal is burnt. A name may be in its own topic alone. */
  async outputSpent(payload: OutputSpent): Promise<void> {
    const { hooks } = this.options
    if (!meansTopic(payload.topic, TOPICS.ordinals) && !meansTopic(payload.topic, TOPICS.names)) return
    if (payload.mode === 'whole-tx')
      await hooks?.spentBy(atomicSubject(payload.spendingAtomicBEEF), payload.spendingAtomicBEEF)
    else if (payload.mode !== 'none') await hooks?.spentBy(payload.spendingTxid)
  }

  async outputEvicted(txid: string, outputIndex: number): Promise<void> {
    await this.options.hooks?.evicted({ txid, vout: outputIndex })
  }

  /** Stops following the engine. */
  async close(): Promise<void> {
    await this.options.hooks?.close()
  }

  /** @throws QueryError for a question of no known form. */
  async lookup(question: LookupQuestion): Promise<LookupFormula> {
    const query = readOrdinalsQuery(question.query)
    await this.options.hooks?.opened()
    const found = await this.find(query)
    return found.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  private async find(asked: OrdinalsQuery): Promise<Outpoint[]> {
    const { reader } = this.options
    if ('attributes' in asked) {
      const { attributes, limit, after } = asked
      return await reader.listings.tipsWith({ attributes, limit, ...(after && { after }) })
    }
    const { outpoint, seq } = asked
    const output =
      seq === undefined ? reader.ordinals.output(outpoint) : reader.ordinals.at(outpoint, seq)?.output
    return output === undefined ? [] : [output.outpoint]
  }

  async getDocumentation(): Promise<string> {
    return ORDINALS_LOOKUP_DOCUMENTATION
  }

  async getMetaData(): Promise<ServiceMetadata> {
    return LOOKUP_SERVICE_METADATA.ordinals
  }
}
