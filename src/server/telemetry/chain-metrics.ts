import { Counter, Gauge, type Registry } from 'prom-client'
import { z } from 'zod'
import { type SourceStatus, sourceStatus } from '../../chain/sources/status.js'
import { type ChainParts, chainShape, chainStatus } from './chain-status.js'

/** The metrics of each part, with the fields of the status that they show; those named `total` are counters. */
const METRICS: Record<keyof ChainParts, Record<string, string>> = {
  headers: { minetree_chain_height: 'height' },
  follower: {
    minetree_follow_lag_blocks: 'lag',
    minetree_follow_height: 'follow.height',
    minetree_follow_catching_up: 'follow.state',
    minetree_follow_sweep_coins: 'follow.sweep.coins',
    minetree_follow_sweep_asked: 'follow.sweep.asked',
    minetree_follow_unproven: 'follow.unproven',
    minetree_follow_mints_total: 'follow.mints',
    minetree_follow_transfers_total: 'follow.transfers',
    minetree_follow_failures_total: 'follow.failures',
  },
  ancestors: {
    minetree_ancestors_waiting: 'ancestors.waiting',
    minetree_ancestors_holes: 'ancestors.holes',
    minetree_ancestors_fetched_total: 'ancestors.fetched',
  },
  sources: { minetree_source_contradictions_total: 'contradictions' },
}

const OF_SOURCES = {
  minetree_source_requests_total: 'requests',
  minetree_source_failures_total: 'failures',
  minetree_source_resting: 'state',
} as const satisfies Record<string, keyof SourceStatus>

/** States are 1 or 0. */
const IS_STATE: Readonly<Record<string, number>> = {
  ...{ 'catching up': 1, 'keeping up': 0 },
  ...{ resting: 1, ok: 0 },
}

/** The value of a field; undefined if it is unknown. */
function valueAt(status: object, path: string): number | undefined {
  const value = path.split('.').reduce((at, key) => (at as Fields | undefined)?.[key], status as unknown)
  return typeof value === 'string' ? IS_STATE[value] : (value as number | undefined)
}

type Fields = Record<string, unknown>
type Help = (path: string) => string

/** The descriptions of the fields of a schema, by path. */
function descriptionsIn(schema: z.ZodType): Help {
  const described = z.toJSONSchema(schema) as unknown
  return (path) => {
    const field = path.split('.').reduce((at, key) => ((at as Fields).properties as Fields)[key], described)
    return String((field as Fields).description)
  }
}

/**
 * Adds the metrics of the parts that follow the chain. A part that is not configured has none, and an unknown value has no
 * sample, since 0 would be a height.
 */
export function addChainMetrics(registry: Registry, parts: ChainParts): void {
  const [helpOf, helpOfSource] = [chainShape, sourceStatus].map(descriptionsIn) as [Help, Help]
  for (const [part, metrics] of Object.entries(METRICS)) {
    if (parts[part as keyof ChainParts] === undefined) continue
    for (const [name, path] of Object.entries(metrics)) {
      addMetric({ name, help: helpOf(path), registers: [registry] }, (metric) => {
        const value = valueAt(chainStatus(parts), path)
        if (value === undefined) metric.remove()
        else metric.inc(value)
      })
    }
  }
  if (parts.sources === undefined && parts.headers === undefined) return
  for (const [name, field] of Object.entries(OF_SOURCES)) {
    const help = helpOfSource(field)
    // As many labels as sources in the settings.
    addMetric({ name, help, registers: [registry], labelNames: ['use', 'source'] }, (metric) => {
      const { sources = [], headers } = chainStatus(parts)
      for (const [use, asked] of Object.entries({ follow: sources, headers: headers?.sources ?? [] })) {
        // Two URLs of one origin share a name.
        for (const source of asked) metric.inc({ use, source: source.name }, valueAt(source, field))
      }
    })
  }
}

/** Adds a metric that `fill` fills whenever the metrics are read. */
function addMetric(
  options: { name: string; help: string; registers: Registry[]; labelNames?: string[] },
  fill: (metric: Counter | Gauge) => void,
): void {
  const Metric = options.name.endsWith('_total') ? Counter : Gauge
  new Metric({
    ...options,
    collect() {
      this.reset()
      fill(this)
    },
  })
}
