import { performance } from 'node:perf_hooks'
import type { Request } from 'express'
import { Counter, Histogram, type Registry } from 'prom-client'
import type { ErrorCode } from '../../gateway/http/errors.js'
import { routeLabels } from '../http/route-label.js'

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
