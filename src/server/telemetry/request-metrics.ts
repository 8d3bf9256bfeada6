import type { Request } from 'express'
import {
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from 'prom-client'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { ErrorCode } from '../../gateway/http/errors.js'

/** Upper bounds of the buckets of request durations, in seconds: from a cached response to a long download. */
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]
/** `other` stands for all further methods that Node parses. */
const METHODS: readonly string[] = ['other', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']
/** How a request ended: its status class, or `aborted` if the client left first. */
const OUTCOMES: readonly string[] = ['aborted', '1xx', '2xx', '3xx', '4xx', '5xx']

/** A request whose response was sent, or whose client left. */
export interface EndedRequest {
  request: Request
  status: number
  /** The code of an error response; undefined for any other. */
  code: ErrorCode | undefined
  /** The host whose content was requested; undefined for the service. */
  host: string | undefined
  complete: boolean
  /** When the request arrived, by `monotonic()`. */
  started: number
}

const DURATION = {
  name: 'minetree_http_request_duration_seconds',
  help: 'Time from a request to the end of its response, by route, method and status class.',
  labelNames: ['route', 'method', 'status'],
  buckets: SECONDS,
} as const

type Labels = Record<(typeof DURATION.labelNames)[number], string>

/** The durations of one kind of request. */
class Durations {
  /** How many fell in each bucket (not cumulative); the last is for those above all bounds. */
  private readonly counts = new Array<number>(SECONDS.length + 1).fill(0)
  private sum = 0

  constructor(private readonly labels: Labels) {}

  observe(seconds: number): void {
    let bucket = 0
    while (bucket < SECONDS.length && seconds > (SECONDS[bucket] ?? 0)) bucket++
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.sum += seconds
  }

  /** The values of a Prometheus histogram, whose buckets are cumulative. */
  values(): MetricValueWithName<string>[] {
    const { name } = DURATION
    let count = 0
    const buckets = this.counts.map((each, bucket) => {
      count += each
      const labels = { le: SECONDS[bucket] ?? '+Inf', ...this.labels }
      return { metricName: `${name}_bucket`, labels, value: count }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: this.labels, value: this.sum },
      { metricName: `${name}_count`, labels: this.labels, value: count },
    ]
  }
}

/** Counts by itself: `prom-client` builds the text of all labels for each observation, which takes ten times as long. */
class DurationHistogram extends Histogram {
  private readonly kinds: Durations[] = []

  of(labels: Labels): Durations {
    const durations = new Durations(labels)
    this.kinds.push(durations)
    return durations
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const { name, help } = DURATION
    const values = this.kinds.flatMap((kind) => kind.values())
    const metric = { name, help, type: 'histogram', aggregator: 'sum', values }
    // The type requires an enum that the library does not export as a value.
    return metric as unknown as MetricObjectWithValues<MetricValueWithName<string>>
  }

  /** Called by the registry instead of `get`, if there is one. */
  getForPromString(): ReturnType<DurationHistogram['get']> {
    return this.get()
  }
}

/**
 * Counts requests and their durations. This runs for every request, and some take hardly longer: the labels of each kind of
 * request are combined once and looked up by number, as text would be built and hashed each time.
 */
export function requestMetrics(
  registry: Registry,
  prefixes: readonly string[],
): (ended: EndedRequest) => void {
  const { buckets, labelNames, ...others } = DURATION
  const histogram = new DurationHistogram({
    ...others,
    buckets: [...buckets],
    labelNames: [...labelNames],
    registers: [registry],
  })
  const errors = new Counter({
    name: 'minetree_error_answers_total',
    help: 'Requests answered with an error, by code.',
    labelNames: ['code'],
    registers: [registry],
  })
  const routeOf = routeLabels(prefixes)
  /** Durations of each route, by outcome and method. */
  const durations = new Map<string, Map<number, Durations>>()
  return ({ request, status, code, complete, started }) => {
    if (code !== undefined) errors.inc({ code })
    const seconds = (monotonic() - started) / 1000
    const route = routeOf(request)
    const outcome = complete ? Math.floor(status / 100) : 0
    const method = Math.max(METHODS.indexOf(request.method), 0)
    let ofRoute = durations.get(route)
    if (ofRoute === undefined) {
      ofRoute = new Map()
      durations.set(route, ofRoute)
    }
    const kind = outcome * METHODS.length + method
    let duration = ofRoute.get(kind)
    if (duration === undefined) {
      duration = histogram.of({
        route,
        method: METHODS[method] ?? 'other',
        status: OUTCOMES[outcome] ?? 'aborted',
      })
      ofRoute.set(kind, duration)
    }
    duration.observe(seconds)
  }
}

/** One label for all requests without a route: clients can invent any number of paths. */
const NO_ROUTE = 'none'

/**
 * Returns a function from a request to the label of its route, such as `/svc/names/origin/:name`. It is never the requested
 * path: there are as many labels as routes.
 *
 * @param prefixes The paths where routers are mounted.
 */
function routeLabels(prefixes: readonly string[]): (request: Request) => string {
  const escaped = prefixes.map((prefix) => prefix.replace(/[^\w/]/g, '\\$&'))
  const anyPrefix = new RegExp(`^(?:${escaped.join('|')})(?=[/?]|$)`, 'i')
  // One entry per route, since this runs for every request.
  const known = new Map<unknown, string>()
  return ({ route, originalUrl }) => {
    const pattern: unknown = route?.path
    if (pattern === undefined) return NO_ROUTE
    let text = known.get(pattern)
    if (text === undefined) {
      text = labelOf(pattern)
      known.set(pattern, text)
    }
    // Routes of hosts that show content have no router prefix.
    if (!text.startsWith('/')) return text
    // Not `baseUrl`, which has the client's spelling and is the app's after an error.
    const [prefix = ''] = anyPrefix.exec(originalUrl) ?? []
    return prefix.toLowerCase() + text
  }
}

/** A readable pattern: for a regular expression, the common beginning of all matches. */
function labelOf(pattern: unknown): string {
  if (!(pattern instanceof RegExp)) return String(pattern)
  const [beginning = ''] = /^(?:\\?[/\w-])*/.exec(pattern.source.replace(/^\^/, '')) ?? []
  return `${beginning.replaceAll('\\', '')}*`
}
