import { QueryError } from '../graph/errors.js'
import type { LookupQuestion, ServiceMetadata } from '../graph/overlay-interfaces.js'
import { type NameRecord, type NodeRecord, ORIGIN } from '../graph/records.js'
import { LOOKUP_SERVICE_METADATA } from '../graph/service-metadata.js'
import type { Deployment } from '../protocol/mint.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { GraphReads } from '../read/fact-store.js'
import {
  type AnsweringOutput,
  type AnsweringService,
  type HistoryOptions,
  nameHistory,
  nodeHistory,
  originHistory,
  type Part,
  type PartOptions,
} from '../read/provenance.js'
import { HOST_HISTORY, NAMES_LOOKUP_DOCUMENTATION } from './documentation.js'
import { type NamesQuery, readNamesQuery } from './queries.js'

export interface NamesLookupServiceOptions {
  reader: Pick<GraphReads, 'opened' | 'consistent' | 'transactions' | 'names' | 'ordinals'>
  deployment: Deployment | undefined
  /** Whether the host asks the network about transactions: then `{mine}` prefers a node that is proven or seen. */
  asksNetwork?: boolean
  /** Whether the host assembles histories; by default, it does. Engines cut histories off at proven transactions. */
  assemblesHistories?: boolean
}

/** An answering output, and how its history is read. */
interface Found {
  outpoint: Outpoint
  history: (options: HistoryOptions) => Promise<Part>
}

/** The most outputs of an answer that clients of `@bsv/sdk` 3 take from a host. */
const MAX_OUTPUTS = 256

/** `ls_names`: who holds a name, where it was mined, where mining goes on (`docs/spec/overlay.md`; BRC-24, BRC-174). */
export class NamesLookupService implements AnsweringService {
  constructor(private readonly options: NamesLookupServiceOptions) {}

  /** @throws QueryError for a question of no known form. */
  async lookup(question: LookupQuestion): Promise<AnsweringOutput[]> {
    const query = readNamesQuery(question.query)
    const { reader } = this.options
    await reader.opened?.()
    return reader.consistent(() => this.find(query))
  }

  /**
   * Whether an answer says that something does not exist: a missing output, or a spender of a live node. An answer that a name is
   * taken does not: its mint is here.
   */
  async saysAbsence(query: unknown, found: number): Promise<boolean> {
    const asked = readNamesQuery(query)
    const { reader } = this.options
    if ('mine' in asked) return found > 0 || reader.names.originOf(asked.mine) === undefined
    if ('node' in asked) return true
    if ('origins' in asked) return found < asked.origins.length
    return found === 0
  }

  private find(asked: NamesQuery): AnsweringOutput[] {
    if (!('history' in asked)) return this.findAll(asked).map(answering)
    const found = this.findOne(asked)
    if (found === undefined) return []
    const answer = answering(found.outpoint)
    const { deployment, assemblesHistories = true } = this.options
    if (!asked.history || deployment === undefined || !assemblesHistories) return [answer]
    const { known, maxBytes } = asked as PartOptions
    const options = { store: this.options.reader, genesis: deployment.genesis, known, maxBytes }
    return [{ ...answer, transactions: (pace) => found.history({ ...options, pace }) }]
  }

  private findOne(asked: Extract<NamesQuery, { history: boolean }>): Found | undefined {
    const { names } = this.options.reader
    if ('mine' in asked) {
      const seen = this.options.asksNetwork ? names.longestNode(asked.mine, { seen: true }) : undefined
      const node = seen ?? names.longestNode(asked.mine)
      return node && node.domain !== asked.mine ? foundNode(node) : undefined
    }
    if ('node' in asked) {
      const outpoint = names.liveNode(asked.node)
      return outpoint && foundNode({ outpoint, domain: asked.node })
    }
    if ('outpoint' in asked) return this.findOutput(asked.outpoint)
    if ('tipOf' in asked) {
      const name = this.nameIn(asked.tipOf)
      return name && isSameOutpoint(name.outpoint, asked.tipOf) ? this.findTip(name) : undefined
    }
    const name = 'name' in asked ? asked.name : asked.origin
    const outpoint = names.originOf(name)
    if (outpoint === undefined) return undefined
    return 'origin' in asked ? foundOrigin({ name, outpoint }) : this.findTip({ name, outpoint })
  }

  private findTip(name: NameRecord): Found | undefined {
    const tip = this.options.reader.ordinals.currentOfName(name.outpoint)
    return tip && foundName(name, tip)
  }

  /** An output that holds a node or a name, spent or not. */
  private findOutput(outpoint: Outpoint): Found | undefined {
    const name = this.nameIn(outpoint)
    if (name !== undefined) return foundName(name, outpoint)
    const node = this.options.reader.names.genuineNode(outpoint)
    return node && foundNode(node)
  }

  /** The name that an output holds or once held, with its origin. Throws BlockedError for an output that is blocked. */
  private nameIn(outpoint: Outpoint): NameRecord | undefined {
    const { names, ordinals } = this.options.reader
    const step = ordinals.at(outpoint, ORIGIN)
    const [name] = names.genuineOrigins([step?.origin ?? outpoint])
    return name
  }

  private findAll(asked: Exclude<NamesQuery, { history: boolean }>): Outpoint[] {
    const { reader } = this.options
    if ('origins' in asked) {
      const { origins, after } = asked
      const found = reader.names.genuineOrigins(origins)
      const genuine = new Set(found.map(({ outpoint }) => formatOutpoint(outpoint)))
      const last = origins.findLastIndex((each) => after !== undefined && isSameOutpoint(each, after))
      if (after !== undefined && last === -1) throw new QueryError('after must be one of the origins')
      const left = new Map(origins.slice(last + 1).map((each) => [formatOutpoint(each), each]))
      return [...left]
        .filter(([text]) => genuine.has(text))
        .map(([, each]) => each)
        .slice(0, MAX_OUTPUTS)
    }
    const { prefix, limit, after } = asked
    const names = reader.names.byPrefix({ prefix, limit, ...(after !== undefined && { after }) })
    return names.map(({ outpoint }) => outpoint)
  }

  async getDocumentation(): Promise<string> {
    const { assemblesHistories = true } = this.options
    return assemblesHistories ? NAMES_LOOKUP_DOCUMENTATION : NAMES_LOOKUP_DOCUMENTATION + HOST_HISTORY
  }

  async getMetaData(): Promise<ServiceMetadata> {
    return LOOKUP_SERVICE_METADATA.names
  }
}

function foundName({ name, outpoint: origin }: NameRecord, tip: Outpoint): Found {
  return { outpoint: tip, history: (options) => nameHistory({ name, origin, tip }, options) }
}

function foundOrigin({ name, outpoint }: NameRecord): Found {
  return { outpoint, history: (options) => originHistory({ name, origin: outpoint }, options) }
}

function foundNode(node: NodeRecord): Found {
  return { outpoint: node.outpoint, history: (options) => nodeHistory(node, options) }
}

function answering({ txid, vout }: Outpoint): AnsweringOutput {
  return { txid, outputIndex: vout }
}
