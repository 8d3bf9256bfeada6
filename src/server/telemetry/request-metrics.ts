import { performance } from 'node:perf_hooks'
import type { Request } from 'express'
import { Counter, Histogram, type Registry } from 'prom-client'
import type { ErrorCode } from '../../gateway/http/errors.js'

/** Upper bounds of the buckets of request durations, in seconds: from a response out of memory to a long download. */
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]
/** All other methods that Node parses share one label. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']

/** How a request ended: its status class, or `aborted` if the client left before the end. */
type Outcome = '1xx' | '2xx' | '3xx' | '4xx' | '5xx' | 'aborted'

const OUTCOMES: readonly Outcome[] = ['1xx', '2xx', '3xx', '4xx', '5xx']

/** A request whose response was sent, or whose client left. */
export interface EndedRequest {
  request: Request
  status: number
  /** The code of an error response; undefined for any other. */
  code: ErrorCode | undefined
  complete: boolean
  /** When it arrived, by `performance.now()`. */
  started: number
}

/**
 * Counts requests and their durations. The labels of each kind of request are combined once, as this runs for every request
 * and some take hardly longer.
 */
export function requestMetrics(
  registry: Registry,
  prefixes: readonly string[],
): (ended: EndedRequest) => void {
  const histogram = new Histogram({
    name: 'minetree_http_request_duration_seconds',
    help: 'Time from a request to the end of its response, by route, method and status class.',
    labelNames: ['route', 'method', 'status'],
    buckets: SECONDS,
    registers: [registry],
  })
  const errors = new Counter({
    name: 'minetree_error_answers_total',
    help: 'Requests answered with an error, by code.',
    labelNames: ['code'],
    registers: [registry],
  })
  const routeOf = routeLabels(prefixes)
  const known = new Map<string, { observe(seconds: number): void }>()
  return ({ request, status, code, complete, started }) => {
    if (code !== undefined) errors.inc({ code })
    const seconds = (performance.now() - started) / 1000
    const route = routeOf(request)
    const outcome: Outcome = (complete && OUTCOMES[Math.floor(status / 100) - 1]) || 'aborted'
    const method = METHODS.includes(request.method) ? request.method : 'other'
    const key = `${outcome} ${method} ${route}`
    let counted = known.get(key)
    if (counted === undefined) {
      counted = histogram.labels(route, method, outcome)
      known.set(key, counted)
    }
    counted.observe(seconds)
  }
}

/** One label for all requests without a route: clients can make up paths without end. */
const NO_ROUTE = 'none'

/**
 * Returns a function from a request to the label of its route, such as `/svc/names/origin/:name`. It is never the path of the
 * request: there are as many labels as routes.
 *
 * @param prefixes The paths that routers are mounted at.
 */
function routeLabels(prefixes: readonly string[]): (request: Request) => string {
  const longest = Math.max(0, ...prefixes.map(({ length }) => length))
  const isBelow = (path: string, prefix: string): boolean =>
    path.startsWith(prefix) && ['', '/', '?'].includes(path.charAt(prefix.length))
  // As many entries as routes: this runs for every request.
  const known = new Map<unknown, string>()
  return ({ route, originalUrl }) => {
    const pattern: unknown = route?.path
    if (pattern === undefined) return NO_ROUTE
    let text = known.get(pattern)
    if (text === undefined) {
      text = labelOf(pattern)
      known.set(pattern, text)
    }
    // Not `baseUrl`: that has the client's spelling, and after an error it is that of the app.
    const start = originalUrl.slice(0, longest + 1).toLowerCase()
    const prefix = prefixes.find((each) => isBelow(start, each)) ?? ''
    return prefix + text
  }
}

/** A readable pattern: for a regular expression, the beginning that every match has. */
function labelOf(pattern: unknown): string {
  if (!(pattern instanceof RegExp)) return String(pattern)
  const [beginning = ''] = /^(?:\\?[/\w-])*/.exec(pattern.source.replace(/^\^/, '')) ?? []
  return `${beginning.replaceAll('\\', '')}*`
}
