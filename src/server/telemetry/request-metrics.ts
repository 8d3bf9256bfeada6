import type { Request } from 'express'
import { Counter, Histogram, type Registry } from 'prom-client'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { ErrorCode } from '../../gateway/http/errors.js'

/** Upper bounds of the buckets of request durations, in seconds: from a cached response to a long download. */
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]
/** All further methods that Node parses are `other`. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])

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

/** Counts requests and their durations. */
export function requestMetrics(
  registry: Registry,
  prefixes: readonly string[],
): (ended: EndedRequest) => void {
  const registers = [registry]
  const durations = new Histogram({
    name: 'minetree_http_request_duration_seconds',
    help: 'Time from a request to the end of its response, by route, method and status class.',
    labelNames: ['route', 'method', 'status'],
    buckets: SECONDS,
    registers,
  })
  const errors = new Counter({
    name: 'minetree_error_answers_total',
    help: 'Requests answered with an error, by code.',
    labelNames: ['code'],
    registers,
  })
  const routeOf = routeLabels(prefixes)
  return ({ request, status, code, complete, started }) => {
    if (code !== undefined) errors.inc({ code })
    const labels = {
      route: routeOf(request),
      method: METHODS.has(request.method) ? request.method : 'other',
      // A client that left first has no status.
      status: complete ? `${Math.floor(status / 100)}xx` : 'aborted',
    }
    durations.observe(labels, (monotonic() - started) / 1000)
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
