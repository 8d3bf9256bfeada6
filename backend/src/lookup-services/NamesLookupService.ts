import type { LookupFormula, LookupService, OutputAdmittedByTopic } from '@bsv/overlay'
import type { LookupQuestion } from '@bsv/sdk'
import { z } from 'zod'
import type { GraphWriter, NamesReader, OrdinalsReader } from '../graph/graph-store.js'
import { namesRecords } from '../graph/names-records.js'
import { QueryError } from '../graph/query-error.js'
import { mergeRecords } from '../graph/records.js'
import { transactionRecords } from '../graph/transaction-records.js'
import { isName } from '../protocol/mine-node.js'
import type { Deployment } from '../protocol/mint.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { LOOKUP_SERVICES, TOPICS } from '../protocol/profile.js'
import { admittedBeef, type SubmissionSource } from './admission.js'
import { NAMES_LOOKUP_DOCUMENTATION } from './names-documentation.js'
import { outpointText } from './outpoint-text.js'

export interface NamesLookupServiceOptions {
  reader: NamesReader & Pick<OrdinalsReader, 'currentOutput'>
  writer: GraphWriter
  deployment: Deployment | undefined
  /** Given by a host that reads submissions itself; without it the engine is asked for whole transactions. */
  submissions?: SubmissionSource
}

const nameText = z.string().refine(isName, 'a name is 1 to 255 characters of a-z 0-9 -')
const domainText = z
  .string()
  .refine((text) => text === '' || isName(text), 'a prefix is up to 255 characters of a-z 0-9 -')
const query = z.union([
  z.strictObject({ name: nameText }),
  z.strictObject({ origin: nameText }),
  z.strictObject({ mine: nameText }),
  z.strictObject({ node: domainText }),
  z.strictObject({ origins: z.array(outpointText).max(1000) }),
  z.strictObject({
    prefix: domainText,
    limit: z.int().min(1).max(100).default(100),
    after: domainText.optional(),
  }),
])

const FORMS =
  'ls_names answers {name}, {origin: name}, {mine: name}, {node: prefix}, {origins: [outpoint…]} (at most 1000) and {prefix, limit, after} (limit 1 to 100)'

/** `ls_names`: who holds a name, where it was mined, where mining goes on (`spec/overlay.md`; BRC-24, BRC-174). */
export class NamesLookupService implements LookupService {
  readonly admissionMode: 'locking-script' | 'whole-tx'
  /** Only an admitted mint spends a node, and it tells so itself: the engine's notices add nothing. */
  readonly spendNotificationMode = 'none'

  constructor(private readonly options: NamesLookupServiceOptions) {
    this.admissionMode = options.submissions === undefined ? 'whole-tx' : 'locking-script'
  }

  async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    const { deployment, writer, submissions } = this.options
    if (payload.topic !== TOPICS.names || deployment === undefined) return
    const beef = admittedBeef(payload, submissions)
    const { genesis } = deployment
    await writer.record(
      mergeRecords([
        transactionRecords(beef),
        namesRecords({ transaction: beef.subject, vout: payload.outputIndex, genesis }),
      ]),
    )
  }

  async outputEvicted(txid: string, outputIndex: number): Promise<void> {
    await this.options.writer.evict({ txid, vout: outputIndex })
  }

  /** @throws QueryError for a question of no known form. */
  async lookup(question: LookupQuestion): Promise<LookupFormula> {
    const parsed = query.safeParse(question.query)
    if (!parsed.success) throw new QueryError(FORMS, { cause: parsed.error })
    const found = await this.find(parsed.data)
    return found.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  private async find(asked: z.output<typeof query>): Promise<Outpoint[]> {
    const { reader } = this.options
    if ('name' in asked) {
      const origin = await reader.nameOrigin(asked.name)
      return some(origin && (await reader.currentOutput(origin)))
    }
    if ('origin' in asked) return some(await reader.nameOrigin(asked.origin))
    if ('mine' in asked) {
      const node = await reader.longestNode(asked.mine)
      return some(node && node.domain !== asked.mine ? node.outpoint : undefined)
    }
    if ('node' in asked) return some(await reader.liveNode(asked.node))
    if ('origins' in asked) return (await reader.genuineOrigins(asked.origins)).map((name) => name.outpoint)
    const { prefix, limit, after } = asked
    const names = await reader.namesByPrefix({ prefix, limit, ...(after !== undefined && { after }) })
    return names.map((name) => name.outpoint)
  }

  async getDocumentation(): Promise<string> {
    return NAMES_LOOKUP_DOCUMENTATION
  }

  async getMetaData(): Promise<{ name: string; shortDescription: string }> {
    return {
      name: LOOKUP_SERVICES.names,
      shortDescription: 'Who holds a mined name, and where mining goes on.',
    }
  }
}

function some(outpoint: Outpoint | undefined): Outpoint[] {
  return outpoint === undefined ? [] : [outpoint]
}
