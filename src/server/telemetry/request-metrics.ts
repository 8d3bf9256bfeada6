import { performance } from 'node:perf_hooks'
import type { Request } from 'express'
import { Counter, Histogram, type Registry } from 'prom-client'
import type { ErrorCode } from '../../gateway/http/errors.js'

/** Upper bounds of the times that requests are counted by, in seconds: from what memory answers to a long download. */
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]
/** Every other word that Node reads as a method is one. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']

/** How a request ended: its status by hundreds, or `aborted`, where whoever asked was gone before the end. */
type Outcome = '1xx' | '2xx' | '3xx' | '4xx' | '5xx' | 'aborted'

const OUTCOMES: readonly Outcome[] = ['1xx', '2xx', '3xx', '4xx', '5xx']

/** A request that was answered, or left. */
export interface EndedRequest {
  request: Request
  status: number
  /** Of the error that it was answered with; undefined where it was none. */
  code: ErrorCode | undefined
  /** Whether the answer went out whole. */
  whole: boolean
  /** When it came, as `performance.now()` says. */
  started: number
}

/**
 * Counts requests and how long they took. The labels of each kind of request are put together once: this stands in the way
 * of every answer, of which some cost no more than a few of these steps.
 */
export function requestMetrics({
  registry,
  prefixes,
}: {
  registry: Registry
  prefixes: readonly string[]
}): (ended: EndedRequest) => void {
  const histogram = new Histogram({
    name: 'minetree_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer, by route, method and status class.',
    labelNames: ['route', 'method', 'status'],
    buckets: SECONDS,
    registers: [registry],
  })
  const errors = new Counter({
    name: 'minetree_error_answers_total',
    help: 'Requests answered with an error, by its code.',
    labelNames: ['code'],
    registers: [registry],
  })
  const labelOf = routeLabels(prefixes)
  const known = new Map<string, { observe(seconds: number): void }>()
  return ({ request, status, code, whole, started }) => {
    if (code !== undefined) errors.inc({ code })
    const seconds = (performance.now() - started) / 1000
    const route = labelOf(request)
    const outcome: Outcome = (whole && OUTCOMES[Math.floor(status / 100) - 1]) || 'aborted'
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

/** What no route answers to: whoever asks makes up paths without end, and there is one label for all of them. */
const NO_ROUTE = 'none'

/**
 * Makes a function that says which route has answered a request, as `/svc/names/origin/:name`. It is never the path that
 * was asked for: there are as many labels as routes, whatever strangers ask.
 *
 * @param prefixes Those that routers are mounted below.
 */
function routeLabels(prefixes: readonly string[]): (request: Request) => string {
  const longest = Math.max(0, ...prefixes.map(({ length }) => length))
  const isBelow = (path: string, prefix: string): boolean =>
    path.startsWith(prefix) && ['', '/', '?'].includes(path.charAt(prefix.length))
  // As many as there are routes: this is asked for every answer.
  const known = new Map<unknown, string>()
  return ({ route, originalUrl }) => {
    const pattern: unknown = route?.path
    if (pattern === undefined) return NO_ROUTE
    let text = known.get(pattern)
    if (text === undefined) {
      text = written(pattern)
      known.set(pattern, text)
    }
    // Not `baseUrl`: it is written as it was asked for, and after an error it is that of the app.
    const asked = originalUrl.slice(0, longest + 1).toLowerCase()
    const prefix = prefixes.find((each) => isBelow(asked, each)) ?? ''
    return prefix + text
  }
}

/** A pattern for a person to read: of a regular expression, what every match begins with. */
function written(pattern: unknown): string {
  if (!(pattern instanceof RegExp)) return String(pattern)
  const [beginning = ''] = /^(?:\\?[/\w-])*/.exec(pattern.source.replace(/^\^/, '')) ?? []
  return `${beginning.replaceAll('\\', '')}*`
}
