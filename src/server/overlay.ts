import type { STEAK } from '@bsv/sdk'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { GuardedStore } from '../../backend/src/graph/guarded-store.js'
import type { HookNotes } from '../../backend/src/graph/hook-note.js'
import type { HookFailure } from '../../backend/src/lookup-services/failed-hooks.js'
import type { Remembering } from '../../backend/src/lookup-services/hooks.js'
import { NamesLookupService } from '../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../backend/src/lookup-services/OrdinalsLookupService.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES, TOPICS } from '../../backend/src/protocol/profile.js'
import NamesTopicManager from '../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../backend/src/topic-managers/OrdinalsTopicManager.js'
import type { Refusal } from '../../backend/src/topic-managers/refusal.js'
import { openHeadersSource } from './chain-tracker.js'
import type { Config } from './config.js'
import { OverlayEngine } from './overlay-engine.js'
import { ProofCheck } from './proof-check.js'
import { CurrentSubmission } from './submission.js'

export type { Refusal }

export interface Overlay {
  engine: OverlayEngine
  proofs: ProofCheck
  /** Called with every refusal of a topic manager, until the function that comes back is called. */
  onRefusal(listener: (refusal: Refusal) => void): () => void
  /** Tells of a refusal that was made elsewhere in this process. */
  tellRefusal(refusal: Refusal): void
  /** How often each topic has refused something since the start, by topic and code. */
  refused(): Record<string, Record<string, number>>
  /** Called with every hook that failed, until the function that comes back is called. */
  onHookFailure(listener: (failure: HookFailure) => void): () => void
  /** Repeats no failed hook any more; resolves when none is under way. */
  close(): Promise<void>
}

/** Puts the topics, the lookup services and the engine together over one store. */
export function createOverlay({
  config,
  graph,
  notes,
  repeats = true,
  logger,
}: {
  config: Config
  graph: GraphStore
  /** Where hooks are noted that failed after their submission was written. */
  notes: HookNotes
  /** Whether they are repeated here; by default, they are. */
  repeats?: boolean
  logger: Logger
}): Overlay {
  const { deployment, maxContentBytes, contentTypes } = config
  const policy = { maxContentBytes, ...(contentTypes && { contentTypes }) }
  const submission = new CurrentSubmission(graph)
  const proofs = new ProofCheck(openHeadersSource(config))
  const served = new GuardedStore(graph)
  const listeners = new Set<(refusal: Refusal) => void>()
  const refused: Record<string, Record<string, number>> = {}
  const onRefusal = (refusal: Refusal): void => {
    logger.info({ refusal }, 'not admitted')
    const counts = refused[refusal.topic] ?? {}
    refused[refusal.topic] = { ...counts, [refusal.code]: (counts[refusal.code] ?? 0) + 1 }
    for (const listener of listeners) listener(refusal)
  }
  const hookListeners = new Set<(failure: HookFailure) => void>()
  const remembering: Remembering = {
    notes,
    repeats,
    turn: (round) => engine.exclusively(round),
    onHookFailure(failure) {
      const { service, note, kept, error } = failure
      const about = note && { hook: note.hook, outpoint: formatOutpoint(note.outpoint) }
      logger.error({ err: error, service, ...about, kept }, 'a hook failed')
      for (const listener of hookListeners) listener(failure)
    },
  }
  const services = {
    [LOOKUP_SERVICES.names]: new NamesLookupService({
      reader: served,
      writer: submission,
      deployment,
      submissions: submission,
      remembering,
      maxOrigins: config.limits.maxOrigins,
    }),
    [LOOKUP_SERVICES.ordinals]: new OrdinalsLookupService({
      reader: served,
      writer: submission,
      submissions: submission,
      remembering,
    }),
  }
  const engine: OverlayEngine = new OverlayEngine({
    managers: {
      [TOPICS.names]: new NamesTopicManager({ deployment, store: graph, onRefusal }),
      [TOPICS.ordinals]: new OrdinalsTopicManager({ store: graph, policy, onRefusal }),
    },
    lookupServices: services,
    graph,
    submission,
    proofs,
    limits: config.limits,
    ...(config.hostingUrl && { hostingURL: config.hostingUrl }),
    logger,
  })
  return {
    engine,
    proofs,
    tellRefusal: onRefusal,
    refused: () => structuredClone(refused),
    onRefusal(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    onHookFailure(listener) {
      hookListeners.add(listener)
      return () => hookListeners.delete(listener)
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
