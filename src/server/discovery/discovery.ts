import type { LookupQuestion } from '@bsv/sdk'
import { Mutex } from 'async-mutex'
import { z } from 'zod'
import { QueryError } from '../../../backend/src/graph/errors.js'
import type { Topic } from '../../../backend/src/graph/overlay-interfaces.js'
import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { farOutput } from '../../../backend/src/graph/stored-transaction.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES, TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { AnsweringOutput, AnsweringService } from '../../../backend/src/read/provenance.js'
import type { Config } from '../config/config.js'
import {
  ADVERTISEMENTS,
  type Advertisement,
  type AdvertisementProtocol,
  AdvertisementReader,
  advertisedHost,
  MAX_ADVERTISEMENT_BYTES,
} from './advertisement.js'

/** How clients find this host: `tm_ship` and `tm_slap` hold its own advertisements, `ls_ship` and `ls_slap` find them. */
export interface Discovery {
  reader: AdvertisementReader
  managers: Record<string, Topic>
  lookupServices: Record<string, AnsweringService>
  /** Has the tokens of a transaction found from now on; those of others never are. Call it only for a checked approval. */
  approve(txid: string): Promise<void>
  /** What is advertised, and what a run of `minetree advertise` would change. */
  state(): Promise<DiscoveryState>
}

export interface DiscoveryState {
  url: string
  /** The host's topics and lookup services that have no token for its URL. */
  missing: string[]
  /** Other URLs that its tokens still name. */
  otherUrls: string[]
}

type DiscoveryConfig = Pick<Config, 'serverPrivateKey' | 'hostingUrl' | 'deployment'>

/** Undefined unless both `SERVER_PRIVATE_KEY` and `HOSTING_URL` are set. */
export function openDiscovery(config: DiscoveryConfig, graph: FactStore): Discovery | undefined {
  const host = advertisedHost(config)
  if (host === undefined) return undefined
  const { key, url } = host
  const reader = new AdvertisementReader(key.toPublicKey())
  const managers: Record<string, Topic> = {}
  const lookupServices: Record<string, AnsweringService> = {}
  // One at a time: two in parallel would each overwrite the other's entry in the list.
  const approving = new Mutex()
  for (const protocol of ['SHIP', 'SLAP'] as const) {
    const { topic, service } = ADVERTISEMENTS[protocol]
    managers[topic] = new AdvertisementTopic(protocol)
    lookupServices[service] = new AdvertisementLookup(protocol, { reader, url, graph })
  }
  return {
    ...{ reader, managers, lookupServices },
    approve: (txid) => approving.runExclusive(() => addApproved(txid, graph)),
    async state() {
      const tokens = await liveTokens(['SHIP', 'SLAP'], { reader, graph })
      const [here, elsewhere] = [true, false].map((isHere) =>
        tokens.filter((token) => (token.url === url) === isHere),
      )
      const followsTree = config.deployment !== undefined
      return {
        url,
        missing: wantedAdvertisements({ url, followsTree })
          .map(({ topicOrService }) => topicOrService)
          .filter((name) => !here?.some(({ topicOrService }) => topicOrService === name)),
        otherUrls: [...new Set(elsewhere?.map((token) => token.url))],
      }
    },
  }
}

/**
 * The advertisements that a host should have. They include `ls_ship`: a client that knows only this host, as its tracker,
 * asks there which hosts have a topic.
 */
export function wantedAdvertisements({
  url,
  followsTree,
}: {
  url: string
  followsTree: boolean
}): Advertisement[] {
  const topics = followsTree ? [TOPICS.names, TOPICS.ordinals] : [TOPICS.ordinals]
  const services = followsTree
    ? [LOOKUP_SERVICES.names, LOOKUP_SERVICES.ordinals]
    : [LOOKUP_SERVICES.ordinals]
  return [
    ...topics.map((topicOrService) => ({ protocol: 'SHIP' as const, url, topicOrService })),
    ...[...services, ADVERTISEMENTS.SHIP.service].map((topicOrService) => ({
      protocol: 'SLAP' as const,
      url,
      topicOrService,
    })),
  ]
}

/** `tm_ship` or `tm_slap`: the advertisements of this host. */
class AdvertisementTopic implements Topic {
  constructor(private readonly protocol: AdvertisementProtocol) {}

  async getDocumentation(): Promise<string> {
    const { topic } = ADVERTISEMENTS[this.protocol]
    return `# ${topic}

The ${this.protocol} advertisements of this host (BRC-88), and of no other: PushDrop tokens that its own key has signed. Spending
a token revokes it.
`
  }

  async getMetaData() {
    return {
      name: ADVERTISEMENTS[this.protocol].topic,
      shortDescription: `The ${this.protocol} advertisements of this host.`,
    }
  }
}

const text = z.string().max(1000)
const page = {
  findAll: z.boolean().optional(),
  domain: text.optional(),
  identityKey: text.optional(),
  limit: z.int().min(0).optional(),
  skip: z.int().min(0).optional(),
  sortOrder: z.enum(['asc', 'desc']).default('desc'),
}
/** Like `SHIPQuery` and `SLAPQuery` of the overlay services; `names` are the topics or the service. */
const QUERIES = {
  SHIP: z
    .strictObject({ ...page, topics: z.array(text).max(100).optional() })
    .transform(({ topics, ...rest }) => ({ ...rest, names: topics })),
  SLAP: z
    .strictObject({ ...page, service: text.optional() })
    .transform(({ service, ...rest }) => ({ ...rest, names: service === undefined ? undefined : [service] })),
}

type AdvertisementQuery = z.output<(typeof QUERIES)[AdvertisementProtocol]>

const APPROVED = 'advertisements'
/** The most approved transactions: every query reads them all. A host has its tokens in one or two. */
const MAX_APPROVED = 50
/** Bounds for reading an early output of a transaction that may have many inputs. */
const A_TOKEN = { longest: MAX_ADVERTISEMENT_BYTES, chunks: 128 }

async function liveTokens(
  protocols: readonly AdvertisementProtocol[],
  { reader, graph }: { reader: AdvertisementReader; graph: FactStore },
): Promise<(Advertisement & { outpoint: Outpoint })[]> {
  const approved = await approvedTxids(graph)
  const topics = protocols.map((protocol) => ADVERTISEMENTS[protocol].topic)
  const held = graph.consistent(() => {
    const unspent = topics.flatMap((topic) => approved.flatMap((txid) => unspentOf(txid, [topic], graph)))
    return graph.served.guard.served(unspent)
  })
  const tokens: (Advertisement & { outpoint: Outpoint })[] = []
  for (const { outpoint } of held) {
    const script = (await farOutput(outpoint, graph.transactions, A_TOKEN))?.lockingScript
    const token = script && reader.read(script)
    if (token !== undefined) tokens.push({ ...token, outpoint })
  }
  return tokens
}

/** The unspent outputs of a transaction that the topics hold; none if it has lost a conflict. */
function unspentOf(
  txid: string,
  topics: string[],
  { admissions, transactions }: FactStore,
): AdmissionRecord[] {
  if (transactions.reasonAgainst(txid) !== undefined) return []
  return admissions
    .ofTransaction(txid)
    .filter(({ topic, outpoint }) => topics.includes(topic) && transactions.spenderOf(outpoint) === undefined)
}

/** Adds an approved txid. If there are too many, one whose tokens are all revoked is forgotten first. */
async function addApproved(txid: string, graph: FactStore): Promise<void> {
  const approved = await approvedTxids(graph)
  if (approved.includes(txid)) return
  approved.push(txid)
  if (approved.length > MAX_APPROVED) approved.splice(firstRevoked(approved, graph), 1)
  await graph.settings.set(APPROVED, JSON.stringify(approved))
}

/** The index of the first transaction without a live token; of the oldest if all have one. */
function firstRevoked(txids: string[], graph: FactStore): number {
  const topics = Object.values(ADVERTISEMENTS).map(({ topic }) => topic)
  const first = txids.findIndex((txid) => unspentOf(txid, topics, graph).length === 0)
  return Math.max(first, 0)
}

async function approvedTxids({ settings }: FactStore): Promise<string[]> {
  return JSON.parse((await settings.get(APPROVED)) ?? '[]') as string[]
}

/** `ls_ship` or `ls_slap`: the unspent advertisements of this host. */
class AdvertisementLookup implements AnsweringService {
  constructor(
    private readonly protocol: AdvertisementProtocol,
    private readonly options: { reader: AdvertisementReader; url: string; graph: FactStore },
  ) {}

  /** @throws QueryError for a query of unknown form. */
  async lookup(question: LookupQuestion): Promise<AnsweringOutput[]> {
    const asked = this.readQuery(question.query)
    const tokens = await liveTokens([this.protocol], this.options)
    const found = tokens.filter((token) => this.isAsked(token, asked))
    if (asked.sortOrder === 'desc') found.reverse()
    const { skip = 0, limit = 0 } = asked
    return found
      .slice(skip, limit === 0 ? undefined : skip + limit)
      .map(({ outpoint: { txid, vout } }) => ({ txid, outputIndex: vout }))
  }

  private readQuery(query: unknown): AdvertisementQuery {
    const parsed = QUERIES[this.protocol].safeParse(query === 'findAll' ? {} : query)
    if (parsed.success) return parsed.data
    const names = this.protocol === 'SHIP' ? 'topics: ["tm_…"]' : 'service: "ls_…"'
    throw new QueryError(
      `${ADVERTISEMENTS[this.protocol].service} takes "findAll" or {${names}, domain, identityKey, limit, skip, sortOrder}, each optional`,
      { cause: parsed.error },
    )
  }

  /** Tokens for a URL that the host no longer has are found only by that URL or by their key. */
  private isAsked(token: Advertisement, { names, domain, identityKey }: AdvertisementQuery): boolean {
    const { reader, url } = this.options
    if (identityKey !== undefined && identityKey !== reader.identityKey.toString()) return false
    if (domain !== undefined ? token.url !== domain : identityKey === undefined && token.url !== url)
      return false
    return names === undefined || names.includes(token.topicOrService)
  }

  async getDocumentation(): Promise<string> {
    const { service } = ADVERTISEMENTS[this.protocol]
    const names = this.protocol === 'SHIP' ? '`{"topics": ["tm_names"]}`' : '`{"service": "ls_names"}`'
    return `# ${service}

The ${this.protocol} advertisements (BRC-88) of this host, and of no other. Queries: \`"findAll"\`, and ${names} with \`domain\`,
\`identityKey\`, \`limit\`, \`skip\` and \`sortOrder\`, each optional. Advertisements of a URL that the host no longer has are found
only by \`domain\` or \`identityKey\`.
`
  }

  async getMetaData() {
    const { service } = ADVERTISEMENTS[this.protocol]
    return { name: service, shortDescription: `Finds the ${this.protocol} advertisements of this host.` }
  }
}
