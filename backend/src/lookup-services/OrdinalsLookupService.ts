import type { LookupFormula, LookupService, OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import type { LookupQuestion } from '@bsv/sdk'
import { z } from 'zod'
import { flowOf } from '../graph/flow.js'
import {
  type GraphWriter,
  ORIGIN,
  type OrdinalsReader,
  type TransactionReader,
} from '../graph/graph-store.js'
import { ordinalsRecords } from '../graph/ordinals-records.js'
import { QueryError } from '../graph/query-error.js'
import { graphRecords, mergeRecords } from '../graph/records.js'
import { placingRecords, transactionRecords } from '../graph/transaction-records.js'
import { LOOKUP_SERVICES, TOPICS } from '../protocol/profile.js'
import { admittedBeef, type SubmissionSource } from './admission.js'
import { ORDINALS_LOOKUP_DOCUMENTATION } from './ordinals-documentation.js'
import { outpointText } from './outpoint-text.js'

export interface OrdinalsLookupServiceOptions {
  reader: OrdinalsReader & TransactionReader
  writer: GraphWriter
  /** Given by a host that reads submissions itself; without it the engine is asked for whole transactions. */
  submissions?: SubmissionSource
}

const query = z.strictObject({ outpoint: outpointText, seq: z.int().min(ORIGIN).optional() })

const FORMS = 'ls_ordinals answers {outpoint: "<txid>_<vout>", seq}: seq is left out, -2, -1, 0, 1 …'

/** `ls_ordinals`: ordinals and content by outpoint (`spec/overlay.md`; BRC-24). */
export class OrdinalsLookupService implements LookupService {
  readonly admissionMode: 'locking-script' | 'whole-tx'
  readonly spendNotificationMode = 'txid'

  constructor(private readonly options: OrdinalsLookupServiceOptions) {
    this.admissionMode = options.submissions === undefined ? 'whole-tx' : 'locking-script'
  }

  async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    if (payload.topic !== TOPICS.ordinals) return
    const { reader, writer, submissions } = this.options
    const beef = admittedBeef(payload, submissions)
    await writer.record(
      mergeRecords([
        transactionRecords(beef),
        placingRecords(beef),
        ordinalsRecords({
          transaction: beef.subject,
          vout: payload.outputIndex,
          flow: await flowOf(beef, reader),
        }),
      ]),
    )
  }

  /** A spend counts even where its transaction admits nothing: the ordinal is burnt. */
  async outputSpent(payload: OutputSpent): Promise<void> {
    if (payload.topic !== TOPICS.ordinals || payload.mode !== 'txid') return
    const outpoint = { txid: payload.txid, vout: payload.outputIndex }
    await this.options.writer.record(graphRecords({ spends: [{ outpoint, spender: payload.spendingTxid }] }))
  }

  async outputEvicted(txid: string, outputIndex: number): Promise<void> {
    await this.options.writer.evict({ txid, vout: outputIndex })
  }

  /** @throws QueryError for a question of no known form. */
  async lookup(question: LookupQuestion): Promise<LookupFormula> {
    const parsed = query.safeParse(question.query)
    if (!parsed.success) throw new QueryError(FORMS, { cause: parsed.error })
    const { outpoint, seq } = parsed.data
    const { reader } = this.options
    const held =
      seq === undefined ? await reader.output(outpoint) : (await reader.ordinalAt(outpoint, seq))?.output
    return held === undefined ? [] : [{ txid: held.outpoint.txid, outputIndex: held.outpoint.vout }]
  }

  async getDocumentation(): Promise<string> {
    return ORDINALS_LOOKUP_DOCUMENTATION
  }

  async getMetaData(): Promise<{ name: string; shortDescription: string }> {
    return { name: LOOKUP_SERVICES.ordinals, shortDescription: 'Ordinals and content by outpoint.' }
  }
}
