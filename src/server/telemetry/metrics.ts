import type { STEAK } from '@bsv/sdk'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { answerFor } from '../../gateway/http/errors.js'
import type { OverlayEvent } from '../submission/overlay.js'
import type { Submit } from '../submission/submission-queue.js'
import { type EndedRequest, requestMetrics } from './request-metrics.js'

/** How often something was answered from memory, and how often it was not, since the start. */
export interface CacheUse {
  hits: number
  misses: number
}

/** What is counted elsewhere, and asked for whenever somebody reads the metrics. What is not there counts as 0. */
export interface MetricsSources {
  /** What each cache did, by its name. */
  caches?: Readonly<Record<string, Readonly<CacheUse>>>
  /** Hooks that failed, are noted, and wait to be repeated. */
  failedHooksWaiting?: () => number | Promise<number>
  /** Transactions that the index is behind what the engine holds, as far as that is known: left to compare or to rebuild. */
  indexLag?: () => number | Promise<number>
  /** 1 while something is left to be done of what earlier writes began. */
  reevaluating?: () => number
}

/** Upper bounds of the times that submissions are counted by, in seconds: they wait for those before them. */
const SECONDS = [0.01, 0.05, 0.25, 1, 5, 30, 120]

/**
 * What a server counts (docs/metrics.md). Each has a registry of its own, as a process may run several. No label comes from
 * a stranger: topics, codes and routes are the host's own words, and there are few of them.
 */
export class Metrics {
  private readonly registry = new Registry()
  private readonly sources: MetricsSources
  /** Counts a request that is over. */
  readonly countRequest: (ended: EndedRequest) => void

  /** @param options.prefixes Those that routers are mounted below. */
  constructor({ prefixes = [], ...sources }: MetricsSources & { prefixes?: readonly string[] } = {}) {
    this.sources = { ...sources }
    this.countRequest = requestMetrics({ registry: this.registry, prefixes })
    this.readSources()
  }

  private readonly outputs = this.counter('minetree_admitted_outputs_total', 'Outputs admitted, by topic.', [
    'topic',
  ])
  private readonly transactions = this.counter(
    'minetree_admitted_transactions_total',
    'Transactions with admitted outputs, by topic.',
    ['topic'],
  )
  private readonly refusals = this.counter(
    'minetree_refusals_total',
    'Refusals by topics, by topic and code.',
    ['topic', 'code'],
  )
  private readonly refusedSubmissions = this.counter(
    'minetree_refused_submissions_total',
    'Submissions answered with an error, by code.',
    ['code'],
  )
  private gathering: Promise<string> | undefined
  private readonly conflicts = this.counter(
    'minetree_conflicts_total',
    'Submissions refused because they conflict with a transaction that counts.',
  )
  private readonly reorganised = this.counter(
    'minetree_reorganised_transactions_total',
    'Transactions deactivated or reactivated because a conflict was resolved differently.',
  )
  private readonly synced = this.counter(
    'minetree_sync_graphs_total',
    'Graphs offered by peers and missing here, by result.',
    ['result'],
  )
  private readonly failedHooks = this.counter(
    'minetree_failed_hooks_total',
    'Hooks that failed after their submission was written, or failed again on retry, by service and by where they are recorded.',
    ['service', 'kept'],
  )
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

  /** Counts what happened in the overlay, in this thread or in another. */
  readonly count = (event: OverlayEvent): void => {
    switch (event.kind) {
      case 'refused':
        this.refusals.inc({ topic: event.refusal.topic, code: event.refusal.code })
        break
      case 'hook failed':
        this.failedHooks.inc({ service: event.failure.service, kept: event.failure.kept })
        break
      case 'reorganised':
        this.reorganised.inc(event.transactions)
        break
      case 'synced':
        this.synced.inc({ result: event.result })
        break
      case 'admitted':
        this.countAdmitted(event.steak)
    }
  }

  /** The same way to submit, with submissions counted that wait and that are refused, and how long they take. */
  counted(submit: Submit): Submit {
    return async (submitted) => {
      this.waiting.inc()
      const done = this.submissionTimes.startTimer()
      try {
        return await submit(submitted)
      } catch (error) {
        const code = answerFor(error)?.code ?? 'INTERNAL'
        this.refusedSubmissions.inc({ code })
        if (code === 'CONFLICT') this.conflicts.inc()
        throw error
      } finally {
        this.waiting.dec()
        done()
      }
    }
  }

  /** Names where else something is counted. */
  ask(sources: MetricsSources): void {
    Object.assign(this.sources, sources)
  }

  /**
   * Adds what Node says of the process: memory, processor time, event loop, garbage collection. It is looked after until the
   * process ends, and is asked for by whoever owns that.
   */
  addProcess(): void {
    collectDefaultMetrics({ register: this.registry })
  }

  /**
   * All of it in the text format of Prometheus, and the media type of that. Calls that arrive while it is gathered get the
   * same: nobody is limited here, and some numbers are counted in the store.
   */
  async text(): Promise<{ type: string; body: string }> {
    this.gathering ??= this.registry.metrics().finally(() => {
      this.gathering = undefined
    })
    return { type: this.registry.contentType, body: await this.gathering }
  }

  private countAdmitted(steak: STEAK): void {
    for (const [topic, { outputsToAdmit }] of Object.entries(steak)) {
      if (outputsToAdmit.length === 0) continue
      this.transactions.inc({ topic })
      this.outputs.inc({ topic }, outputsToAdmit.length)
    }
  }

  private counter<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
  ): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }

  private readSources(): void {
    const { registry, sources } = this
    new Gauge({
      name: 'minetree_failed_hooks_waiting',
      help: 'Failed hooks recorded for a retry.',
      registers: [registry],
      async collect() {
        this.set(await told(sources.failedHooksWaiting))
      },
    })
    new Gauge({
      name: 'minetree_reevaluating',
      help: '1 while transactions that waited for others are being reevaluated, else 0.',
      registers: [registry],
      async collect() {
        this.set(await told(sources.reevaluating))
      },
    })
    new Gauge({
      name: 'minetree_index_lag_transactions',
      help: 'Transactions that the index still has to compare or rebuild.',
      registers: [registry],
      async collect() {
        this.set(await told(sources.indexLag))
      },
    })
    new Counter({
      name: 'minetree_cache_lookups_total',
      help: 'Cache lookups, by cache and result.',
      labelNames: ['cache', 'result'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [cache, { hits, misses }] of Object.entries(sources.caches ?? {})) {
          this.inc({ cache, result: 'hit' }, hits)
          this.inc({ cache, result: 'miss' }, misses)
        }
      },
    })
  }
}

/** What cannot be had, as where the store is gone, is no number: the others are needed all the more. */
async function told(source: (() => number | Promise<number>) | undefined): Promise<number> {
  try {
    return (await source?.()) ?? 0
  } catch {
    // Whoever needs the store otherwise has logged what is wrong with it.
    return Number.NaN
  }
}
