import type { GraphReader, GraphStore } from '../graph/graph-store.js'
import type {
  LookupFormula,
  LookupQuestion,
  LookupService,
  OutputAdmittedByTopic,
  OutputSpent,
  ServiceMetadata,
} from '../graph/overlay-interfaces.js'
import { graphRecords, mergeRecords } from '../graph/records.js'
import { LOOKUP_SERVICE_METADATA } from '../graph/service-metadata.js'
import { flowOf, ordinalsRecords, placingRecords, transactionRecords } from '../graph/transaction-records.js'
import type { Deployment } from '../protocol/mint.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { LOOKUP_SERVICES, meansTopic, TOPICS } from '../protocol/profile.js'
import { ORDINALS_LOOKUP_DOCUMENTATION } from './documentation.js'
import {
  admittedBeef,
  type EvictionWriter,
  Hooks,
  type RetryOptions,
  recordAll,
  recordBeef,
  recordEviction,
  spendingBeef,
} from './hooks.js'
import { type OrdinalsQuery, readOrdinalsQuery } from './queries.js'

export interface OrdinalsLookupServiceOptions {
  reader: Pick<GraphReader, 'consistent' | 'transactions' | 'ordinals' | 'attributes'>
  writer: Pick<GraphStore, 'record'> & EvictionWriter
  /** How hooks that fail are retried; without it, they throw. */
  retries?: RetryOptions
  /**
   * By what the store derives what the topics admit from all that hooks bring it; by default, it holds what an engine says is
   * admitted.
   */
  derivesBy?: () => { deployment?: Deployment }
}

/** `ls_ordinals`: ordinals and content by outpoint and by their attributes (`spec/overlay.md`; BRC-24). */
export class OrdinalsLookupService implements LookupService {
  readonly admissionMode = 'whole-tx'
  readonly spendNotificationMode = 'whole-tx'
  private readonly hooks: Hooks

  constructor(private readonly options: OrdinalsLookupServiceOptions) {
    const { writer, retries } = options
    this.hooks = new Hooks({
      service: LOOKUP_SERVICES.ordinals,
      retries,
      admit: (payload) => this.admit(payload),
      spend: (payload) => this.spend(payload),
      evict: (outpoint) => recordEviction(writer, outpoint),
    })
  }

  async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    if (meansTopic(payload.topic, TOPICS.ordinals)) await this.hooks.admitted(payload)
  }

  private async admit(payload: OutputAdmittedByTopic): Promise<void> {
    const { reader, writer, derivesBy } = this.options
    const beef = admittedBeef(payload)
    if (derivesBy !== undefined) {
      await recordBeef(writer, beef, derivesBy().deployment)
      return
    }
    await recordAll(
      writer,
      mergeRecords([
        transactionRecords(beef),
        placingRecords(beef),
        ordinalsRecords({
          transaction: beef.subject,
          vout: payload.outputIndex,
          flow: await flowOf(beef, reader.transactions),
        }),
      ]),
    )
  }

  async outputSpent(payload: OutputSpent): Promise<void> {
    const { topic } = payload
    // A name may have been submitted to its own topic alone, and is spent like any ordinal.
    const isName = this.options.derivesBy !== undefined && meansTopic(topic, TOPICS.names)
    if (isName || meansTopic(topic, TOPICS.ordinals)) await this.hooks.spent(payload)
  }

  /** A spend counts even if its transaction admits nothing: the ordinal is burnt. */
  private async spend(payload: OutputSpent): Promise<void> {
    const { writer, derivesBy } = this.options
    const beef = spendingBeef(payload)
    if (beef !== undefined) {
      if (derivesBy !== undefined) await recordBeef(writer, beef, derivesBy().deployment)
      else await recordAll(writer, transactionRecords(beef))
    } else if (payload.mode !== 'none' && payload.mode !== 'whole-tx') {
      const outpoint = { txid: payload.txid, vout: payload.outputIndex }
      await recordAll(writer, graphRecords({ spends: [{ outpoint, spender: payload.spendingTxid }] }))
    }
  }

  async outputEvicted(txid: string, outputIndex: number): Promise<void> {
    await this.hooks.evicted({ txid, vout: outputIndex })
  }

  /** Stops retrying failed hooks. */
  async close(): Promise<void> {
    await this.hooks.close()
  }

  /** @throws QueryError for a question of no known form. */
  async lookup(question: LookupQuestion): Promise<LookupFormula> {
    const query = readOrdinalsQuery(question.query)
    const found = await this.options.reader.consistent(() => this.find(query))
    return found.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  private async find(asked: OrdinalsQuery): Promise<Outpoint[]> {
    const { reader } = this.options
    if ('attributes' in asked) {
      const { attributes, limit, after } = asked
      return await reader.attributes.tipsWith({ attributes, limit, ...(after && { after }) })
    }
    const { outpoint, seq } = asked
    const output =
      seq === undefined
        ? await reader.ordinals.output(outpoint)
        : (await reader.ordinals.at(outpoint, seq))?.output
    return output === undefined ? [] : [output.outpoint]
  }

  async getDocumentation(): Promise<string> {
    return ORDINALS_LOOKUP_DOCUMENTATION
  }

  async getMetaData(): Promise<ServiceMetadata> {
    return LOOKUP_SERVICE_METADATA.ordinals
  }
}
