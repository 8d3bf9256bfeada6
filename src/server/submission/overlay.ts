import type { STEAK } from '@bsv/sdk'
import type { Logger } from 'pino'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { HeldSubmissions } from '../../../backend/src/graph/held-submissions.js'
import type { HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { HookFailure } from '../../../backend/src/lookup-services/hook-outbox.js'
import type { Retrying } from '../../../backend/src/lookup-services/hooks.js'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES, TOPICS } from '../../../backend/src/protocol/profile.js'
import { admissionRules } from '../../../backend/src/topic-managers/admission-rules.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import type { Refusal } from '../../../backend/src/topic-managers/refusal.js'
import { type HeadersSource, openHeadersSource } from '../chain/chain-tracker.js'
import { ProofVerifier } from '../chain/proof-verifier.js'
import type { Config } from '../config/config.js'
import { OverlayEngine } from './overlay-engine.js'

export type { Refusal }

const ORDINARY = new Set(['NO_NODE_SPENT', 'NO_ORDINAL'])

/** What happens in an overlay, for whoever counts. */
export type OverlayEvent =
  | { kind: 'refused'; refusal: Refusal }
  /** A submission was stored, and its topics have admitted what they have; nothing of one that was known before. */
  | { kind: 'admitted'; steak: STEAK }
  /** A hook failed after its submission was written, or failed again when it was repeated. */
  | { kind: 'hook failed'; failure: HookFailure }
  /** A conflict was decided anew: so many transactions became silent, or count again. */
  | { kind: 'status changed'; transactions: number }
  /** A graph that a peer offers was taken, could not be for now, or is none for this host (`docs/sync.md`). */
  | { kind: 'synced'; result: 'taken' | 'open' | 'unwanted' }

export interface Overlay {
  engine: OverlayEngine
  proofs: ProofVerifier
  /** By what the store derives admissions. */
  admission: AdmissionOptions
  /** Called with every refusal of a topic manager, until the function that comes back is called. */
  onRefusal(listener: (refusal: Refusal) => void): () => void
  /** Called with everything that happens, until the function that comes back is called. */
  onEvent(listener: (event: OverlayEvent) => void): () => void
  /** Tells of what happened elsewhere in this process: in another thread, or in the store. */
  tell(event: OverlayEvent): void
  /** How often each topic has refused something since the start, by topic and code. */
  refused(): Record<string, Record<string, number>>
  /** Repeats no failed hook any more; resolves when none is under way. */
  close(): Promise<void>
}

/** Puts the topics, the lookup services and the engine together over one store. */
export function createOverlay({
  config,
  graph,
  notes,
  held,
  repeats = true,
  headers = openHeadersSource(config),
  logger,
}: {
  config: Config
  graph: GraphStore & Pick<HostStore, 'deriveBy'>
  /** Where hooks are noted that failed after their submission was written. */
  notes: HookOutbox
  /** Where submissions wait that are not final. */
  held?: HeldSubmissions
  /** Whether they are repeated here; by default, they are. */
  repeats?: boolean
  /** Against which proofs are checked; by default, what the settings name. */
  headers?: HeadersSource | undefined
  logger: Logger
}): Overlay {
  const { deployment, maxContentBytes, contentTypes } = config
  const policy = { maxContentBytes, ...(contentTypes && { contentTypes }) }
  const proofs = new ProofVerifier({ headers, graph, logger })
  const served = new BlocklistFilter(graph)
  const listeners = new Set<(event: OverlayEvent) => void>()
  const refused: Record<string, Record<string, number>> = {}
  const tell = (event: OverlayEvent): void => {
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
  const onRefusal = (refusal: Refusal, requestId: string | undefined): void => {
    // What most transactions are: neither a mint nor an ordinal.
    const level = ORDINARY.has(refusal.code) ? 'debug' : 'info'
    logger[level]({ requestId, refusal }, 'not admitted')
    tell({ kind: 'refused', refusal })
  }
  const remembering: Retrying = {
    notes,
    repeats,
    turn: (round) => engine.exclusively(round),
    onHookFailure(failure) {
      const { service, note, kept, error } = failure
      const about = note && { hook: note.hook, outpoint: formatOutpoint(note.outpoint) }
      logger.error({ err: error, service, ...about, kept }, 'a hook failed')
      tell({ kind: 'hook failed', failure })
    },
  }
  const services = {
    [LOOKUP_SERVICES.names]: new NamesLookupService({
      reader: served,
      writer: graph,
      deployment,
      remembering,
      maxOrigins: config.limits.maxOrigins,
    }),
    [LOOKUP_SERVICES.ordinals]: new OrdinalsLookupService({
      reader: served,
      writer: graph,
      remembering,
    }),
  }
  const engine: OverlayEngine = new OverlayEngine({
    managers: {
      [TOPICS.names]: new NamesTopicManager({ deployment, store: graph }),
      [TOPICS.ordinals]: new OrdinalsTopicManager({ store: graph, policy, seen: undefined }),
    },
    lookupServices: services,
    graph,
    held,
    proofs,
    deployment,
    limits: config.limits,
    onAdmitted: (steak) => tell({ kind: 'admitted', steak }),
    onRefusal,
  })
  const admission: AdmissionOptions = {
    rules: admissionRules({ deployment, policy, onRefusal: engine.noteRefusal }),
    pending: {
      maxTransactions: config.limits.maxPendingTransactions,
      maxBytes: config.limits.maxPendingBytes,
    },
    reevaluations: config.limits.maxReevaluations,
  }
  graph.deriveBy(admission)
  return {
    engine,
    proofs,
    admission,
    tell,
    onEvent,
    refused: () => structuredClone(refused),
    onRefusal(listener) {
      return onEvent((event) => {
        if (event.kind === 'refused') listener(event.refusal)
      })
    },
    async close() {
      await Promise.all(Object.values(services).map((service) => service.close()))
    },
  }
}

/** The topics to submit to when `topics` are asked for, each once: a mint belongs in both (`spec/overlay.md`, Topics). */
export function withOrdinals(topics: string[]): string[] {
  return [...new Set(topics.includes(TOPICS.names) ? [...topics, TOPICS.ordinals] : topics)]
}

/** How many outputs a STEAK says were admitted. */
export function admittedCount(steak: STEAK): number {
  return Object.values(steak).reduce((count, { outputsToAdmit }) => count + outputsToAdmit.length, 0)
}
