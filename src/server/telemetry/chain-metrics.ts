import { Counter, Gauge, type Registry } from 'prom-client'
import type { SourceStatus } from '../../chain/sources/chain-sources.js'
import { type ChainParts, type ChainStatus, chainStatus } from './chain-status.js'

type Row = [name: string, help: string, value: (status: ChainStatus) => number | undefined]

/** The metrics of each part; those named `total` are counters. */
const ROWS: Record<keyof ChainParts, Row[]> = {
  headers: [['minetree_chain_height', 'The height of the chain.', ({ height }) => height]],
  follower: [
    [
      'minetree_follow_lag_blocks',
      'Blocks since the last one up to which all followed outputs were checked.',
      ({ lag }) => lag,
    ],
    [
      'minetree_follow_height',
      'The height up to which all followed outputs were checked.',
      ({ follow }) => follow?.height,
    ],
    [
      'minetree_follow_catching_up',
      '1 while the host catches up with the chain, else 0.',
      ({ follow }) => (follow?.state === 'catching up' ? 1 : 0),
    ],
    [
      'minetree_follow_sweep_coins',
      'Coins that the current sweep checks.',
      ({ follow }) => follow?.sweep.coins,
    ],
    [
      'minetree_follow_sweep_asked',
      'Coins that the current sweep has checked.',
      ({ follow }) => follow?.sweep.asked,
    ],
    ['minetree_follow_unproven', 'Transactions that wait for a proof.', ({ follow }) => follow?.unproven],
    ['minetree_follow_mints_total', 'Mints admitted by following the chain.', ({ follow }) => follow?.mints],
    [
      'minetree_follow_transfers_total',
      'Transfers admitted by following the chain.',
      ({ follow }) => follow?.transfers,
    ],
    ['minetree_follow_failures_total', 'Failures to follow a coin.', ({ follow }) => follow?.failures],
  ],
  ancestors: [
    [
      'minetree_ancestors_waiting',
      'Ordinals whose ancestors are waiting to be fetched.',
      ({ ancestors }) => ancestors?.waiting,
    ],
    [
      'minetree_ancestors_holes',
      'Ordinals whose ancestors are too many or not in any source.',
      ({ ancestors }) => ancestors?.holes,
    ],
    ['minetree_ancestors_fetched_total', 'Ancestors fetched.', ({ ancestors }) => ancestors?.fetched],
  ],
  sources: [
    [
      'minetree_source_contradictions_total',
      'Contradictions between chain sources.',
      ({ contradictions }) => contradictions,
    ],
  ],
}

const OF_SOURCES: [name: string, help: string, value: (source: SourceStatus) => number][] = [
  ['minetree_source_requests_total', 'Requests to a chain source.', ({ requests }) => requests],
  ['minetree_source_failures_total', 'Failed requests to a chain source.', ({ failures }) => failures],
  [
    'minetree_source_resting',
    '1 while a chain source is paused after failures, else 0.',
    ({ state }) => (state === 'resting' ? 1 : 0),
  ],
]

/**
 * Adds the metrics of the parts that follow the chain. A part that is not configured has none, and an unknown value has no
 * sample, since 0 would be a height.
 */
export function addChainMetrics(registry: Registry, parts: ChainParts): void {
  for (const [part, rows] of Object.entries(ROWS)) {
    if (parts[part as keyof ChainParts] === undefined) continue
    for (const [name, help, read] of rows) {
      addMetric({ name, help, registers: [registry] }, (metric) => {
        const value = read(chainStatus(parts))
        if (value === undefined) metric.remove()
        else metric.inc(value)
      })
    }
  }
  if (parts.sources === undefined && parts.headers === undefined) return
  for (const [name, help, read] of OF_SOURCES) {
    // As many labels as sources in the settings.
    addMetric({ name, help, registers: [registry], labelNames: ['use', 'source'] }, (metric) => {
      const { sources = [], headers } = chainStatus(parts)
      for (const [use, asked] of Object.entries({ follow: sources, headers: headers?.sources ?? [] })) {
        // Two URLs of one origin share a name.
        for (const source of asked) metric.inc({ use, source: source.name }, read(source))
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
