import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import type { Profile } from '../../../backend/src/protocol/profile.js'
import { answerFor } from '../../gateway/http/errors.js'
import type { OverlayEvent } from '../writer/overlay.js'
import type { Submit } from '../writer/submission-queue.js'
import { addChainMetrics } from './chain-metrics.js'
import type { ChainParts } from './chain-status.js'
import { type EndedRequest, requestMetrics } from './request-metrics.js'

export interface CacheUse {
  hits: number
  misses: number
}

/** Values that are counted elsewhere, and read with the metrics. A missing one counts as 0. */
export interface MetricsSources {
  caches?: Readonly<Record<string, Readonly<CacheUse>>>
  indexLag?: () => number | Promise<number>
  chain?: ChainParts
}

export function routePrefixes({ gatewayPrefixes, namesPrefixes, walletPrefixes }: Profile): string[] {
  const forWallets = ['/beef', '/txo', '/overlay', ''].flatMap((path) =>
    walletPrefixes.map((prefix) => prefix + path),
  )
  return [...gatewayPrefixes, ...namesPrefixes, ...forWallets]
}

const COUNTERS = {
  minetree_admitted_outputs_total: ['Outputs admitted, by topic.', 'topic'],
  minetree_admitted_transactions_total: ['Transactions with admitted outputs, by topic.', 'topic'],
  minetree_refusals_total: ['Refusals by topics, by topic and code.', 'topic', 'code'],
  minetree_refused_submissions_total: [
    'Submissions answered with an error, by code: INTERNAL and NOT_READY are faults of this host.',
    'code',
  ],
  minetree_conflicts_total: ['Submissions refused because they conflict with a valid transaction.'],
  minetree_reorganised_transactions_total: [
    'Transactions deactivated or reactivated because a conflict was resolved differently.',
  ],
  minetree_sightings_total: ['New network statuses of transactions, `seen` or `rejected`.', 'status'],
  minetree_sync_graphs_total: [
    'Graphs offered by peers and missing here: `taken`, `open` (failed, tried again) or `unwanted`.',
    'result',
  ],
} satisfies Record<string, [help: string, ...labels: string[]]>

/** Upper bounds of the buckets of submission durations, in seconds, including the wait for earlier ones. */
const SECONDS = [0.01, 0.05, 0.25, 1, 5, 30, 120]

/**
 * The metrics of a server (`docs/operating.md`, Metrics). Each server has its own registry, as a process may run several. No label
 * comes from a client: topics, codes and routes are the host's own, and few.
 */
export class Metrics {
  private readonly registry = new Registry()
  readonly countRequest: (ended: EndedRequest) => void

  /** @param options.prefixes The paths where routers are mounted. */
  constructor(options: MetricsSources & { prefixes?: readonly string[] } = {}) {
    const { prefixes = [], chain = {}, caches = {}, indexLag } = options
    this.countRequest = requestMetrics(this.registry, prefixes)
    const registers = [this.registry]
    new Gauge({
      name: 'minetree_index_lag_transactions',
      help: 'Facts that the index still lacks.',
      registers,
      async collect() {
        this.set(await sampleOf(indexLag))
      },
    })
    new Counter({
      name: 'minetree_cache_lookups_total',
      help: 'Cache lookups, by cache and result.',
      labelNames: ['cache', 'result'],
      registers,
      collect() {
        this.reset()
        for (const [cache, { hits, misses }] of Object.entries(caches)) {
          this.inc({ cache, result: 'hit' }, hits)
          this.inc({ cache, result: 'miss' }, misses)
        }
      },
    })
    addChainMetrics(this.registry, chain)
  }

  private readonly counters = new Map(
    Object.entries(COUNTERS).map(([name, [help, ...labelNames]]) => {
      return [name, new Counter({ name, help, labelNames, registers: [this.registry] })]
    }),
  )
  private collecting: Promise<string> | undefined
  private readonly waiting = new Gauge({
    name: 'minetree_submissions_waiting',
    help: 'Submissions received and not answered yet: being verified, waiting or being written.',
    registers: [this.registry],
  })
  private readonly submissionTimes = new Histogram({
    name: 'minetree_submission_duration_seconds',
    help: 'Time from receiving a complete submission to finishing it, including its wait for earlier ones.',
    buckets: SECONDS,
    registers: [this.registry],
  })

  readonly countEvent = (event: OverlayEvent): void => {
    switch (event.kind) {
      case 'refused':
        this.count('minetree_refusals_total', { topic: event.refusal.topic, code: event.refusal.code })
        break
      case 'reorganised':
        this.count('minetree_reorganised_transactions_total', {}, event.transactions)
        break
      case 'sighted':
        this.count('minetree_sightings_total', { status: event.status })
        break
      case 'synced':
        this.count('minetree_sync_graphs_total', { result: event.result })
        break
      case 'admitted':
        this.countAdmitted(event.admissions)
    }
  }

  /** Wraps a submit function to count waiting and refused submissions and their durations. */
  counted(submit: Submit): Submit {
    return async (submitted) => {
      this.waiting.inc()
      const done = this.submissionTimes.startTimer()
      try {
        return await submit(submitted)
      } catch (error) {
        const code = answerFor(error)?.code ?? 'INTERNAL'
        this.count('minetree_refused_submissions_total', { code })
        if (code === 'CONFLICT') this.count('minetree_conflicts_total')
        throw error
      } finally {
        this.waiting.dec()
        done()
      }
    }
  }

  /**
   * Adds Node's metrics of the process: memory, processor time, event loop, garbage collection. They are collected until the
   * process ends, so only its owner asks for them.
   */
  addProcess(): void {
    // By default, the event-loop timer wakes an idle process a hundred times a second.
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: 200 })
  }

  /**
   * All metrics in the text format of Prometheus, and its media type. Concurrent calls share one result: this route has no rate
   * limit, and some numbers are counted in the store.
   */
  async text(): Promise<{ type: string; body: string }> {
    this.collecting ??= this.registry.metrics().finally(() => {
      this.collecting = undefined
    })
    return { type: this.registry.contentType, body: await this.collecting }
  }

  private countAdmitted(admissions: readonly AdmissionRecord[]): void {
    const known = new Set<string>()
    for (const { topic, outpoint } of admissions) {
      const transaction = `${topic} ${outpoint.txid}`
      if (!known.has(transaction)) this.count('minetree_admitted_transactions_total', { topic })
      known.add(transaction)
      this.count('minetree_admitted_outputs_total', { topic })
    }
  }

  private count(name: keyof typeof COUNTERS, labels: Record<string, string> = {}, by = 1): void {
    this.counters.get(name)?.inc(labels, by)
  }
}

/** The value of a source; NaN if it fails, such as without a store: the other metrics are needed all the more. */
async function sampleOf(source: (() => number | Promise<number>) | undefined): Promise<number> {
  try {
    return (await source?.()) ?? 0
  } catch {
    // Other users of the store have logged the error.
    return Number.NaN
  }
}
