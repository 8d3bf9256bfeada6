import type { LookupFormula, LookupQuestion, ServiceMetadata } from '../graph/overlay-interfaces.js'
import { LOOKUP_SERVICE_METADATA } from '../graph/service-metadata.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { GraphReads } from '../read/fact-store.js'
import type { AnsweringService } from '../read/provenance.js'
import { ORDINALS_LOOKUP_DOCUMENTATION } from './documentation.js'
import { type OrdinalsQuery, readOrdinalsQuery } from './queries.js'

/** `ls_ordinals`: ordinals and content by outpoint and by their attributes (`docs/spec/overlay.md`; BRC-24). */
export class OrdinalsLookupService implements AnsweringService {
  constructor(private readonly reader: Pick<GraphReads, 'opened' | 'ordinals' | 'listings'>) {}

  /** @throws QueryError for a question of no known form. */
  async lookup(question: LookupQuestion): Promise<LookupFormula> {
    const query = readOrdinalsQuery(question.query)
    await this.reader.opened?.()
    const found = await this.find(query)
    return found.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  private async find(asked: OrdinalsQuery): Promise<Outpoint[]> {
    const { reader } = this
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
