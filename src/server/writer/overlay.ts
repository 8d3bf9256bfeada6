import type { STEAK } from '@bsv/sdk'
import type { Logger } from 'pino'
import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { answeringServices } from '../../../backend/src/lookup-services/services.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { type BlockHeaders, ProofVerifier } from '../../chain/tracker/chain-tracker.js'
import type { Config } from '../config/config.js'
import { type Discovery, openDiscovery } from '../discovery/discovery.js'
import { policyOf } from '../store/admission-options.js'
import { LocalChain } from './local-chain.js'
import { openBlockHeaders } from './open-headers.js'
import { OverlayEngine } from './overlay-engine.js'

/** The usual refusals: most transactions are neither a mint nor an ordinal. */
const ORDINARY = new Set(['NO_NODE_SPENT', 'NO_ORDINAL'])

export type OverlayEvent =
  | { kind: 'refused'; refusal: TopicRefusal }
  /** A write admitted outputs. Not emitted for a submission that was known before. */
  | { kind: 'admitted'; admissions: AdmissionRecord[] }
  /** A conflict was resolved differently: how many transactions were deactivated or reactivated. */
  | { kind: 'reorganised'; transactions: number }
  /** The network reported a new status of a transaction. */
  | { kind: 'sighted'; status: Sighting }
  /** A peer's graph was taken, could not be taken for now, or is not for this host (`docs/follow.md`). */
  | { kind: 'synced'; result: 'taken' | 'open' | 'unwanted' }

export interface Overlay {
  engine: OverlayEngine
  proofs: ProofVerifier
  /** How clients find this host; undefined if they cannot. */
  discovery?: Discovery | undefined
  /** Subscribes to all events. Returns a function that unsubscribes. */
  onEvent(listener: (event: OverlayEvent) => void): () => void
  /** Passes on an event of another thread, or of the store. */
  emit(event: OverlayEvent): void
  /** How often each topic has refused something since the start, by topic and code. */
  refused(): Record<string, Record<string, number>>
  close(): Promise<void>
}

/** Connects the topic managers, the lookup services and the engine to one store. */
export function createOverlay(options: {
  config: Config
  graph: FactStore
  /** Holds non-final submissions. */
  held?: FactStore['held']
  /** The block headers to check proofs against; by default, according to the settings. */
  headers?: BlockHeaders | undefined
  logger: Logger
}): Overlay {
  const { config, graph, held, logger } = options
  const { headers = openBlockHeaders({ config, store: graph.headers, logger }) } = options
  const { deployment, limits } = config
  const proofs = new ProofVerifier({ headers, graph, logger })
  const reader = graph.served
  const listeners = new Set<(event: OverlayEvent) => void>()
  const refused: Record<string, Record<string, number>> = {}
  const emit = (event: OverlayEvent): void => {
    if (event.kind === 'refused') {
      const { topic, code } = event.refusal
      const counts = refused[topic] ?? {}
      refused[topic] = { ...counts, [code]: (counts[code] ?? 0) + 1 }
    }
    for (const listener of listeners) listener(event)
  }
  const onEvent = (listener: (event: OverlayEvent) => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const services = answeringServices(reader, {
    deployment,
    asksNetwork: config.chainSources.length > 0,
  })
  const discovery = openDiscovery(config, graph)
  const engine: OverlayEngine = new OverlayEngine({
    managers: {
      [TOPICS.names]: new NamesTopicManager({ deployment }),
      [TOPICS.ordinals]: new OrdinalsTopicManager({ policy: policyOf(config) }),
      ...discovery?.managers,
    },
    lookupServices: { ...services, ...discovery?.lookupServices },
    ...{ graph, held, proofs, deployment, limits },
    ...(config.minesBlocks && { chain: new LocalChain(graph) }),
    claimsIn: discovery && ((transaction) => discovery.reader.claimsIn(transaction)),
    onAdmitted: (admissions) => emit({ kind: 'admitted', admissions }),
    onRefusal(refusal, requestId) {
      logger[ORDINARY.has(refusal.code) ? 'debug' : 'info']({ requestId, refusal }, 'not admitted')
      emit({ kind: 'refused', refusal })
    },
  })
  return {
    ...{ engine, proofs, discovery, emit, onEvent },
    refused: () => structuredClone(refused),
    async close() {
      await headers?.close()
    },
  }
}

/** The topics to submit to, without duplicates: a mint belongs in both (`docs/spec/overlay.md`, Topics and lookups). */
export function withOrdinals(topics: string[]): string[] {
  return [...new Set(topics.includes(TOPICS.names) ? [...topics, TOPICS.ordinals] : topics)]
}

export function admittedCount(steak: STEAK): number {
  return Object.values(steak).reduce((count, { outputsToAdmit }) => count + outputsToAdmit.length, 0)
}
