import { z } from 'zod'
import { damagedBlobs } from '../../../backend/src/graph/errors.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { described, type Routes } from '../../gateway/http/operation.js'
import { count } from '../../gateway/http/schemas.js'
import type { Config } from '../config/config.js'
import { packageVersion } from '../config/package-info.js'
import type { IndexStatus } from '../store/index-status.js'
import { type ChainParts, chainShape, chainStatus } from '../telemetry/chain-status.js'
import { publicText } from '../telemetry/public-text.js'
import type { OverlayEngine } from '../writer/overlay-engine.js'

const okShape = z.strictObject({ status: z.literal('ok') })

function healthShape(ready: boolean) {
  return z.strictObject({
    version: z.string().describe('The version of the host.'),
    status: z.literal(ready ? 'ok' : 'error'),
    live: z.literal(true),
    ready: z.literal(ready),
    reasons: z
      .record(z.string(), z.string())
      .describe('The reasons why the host is not ready, by component.'),
    index: z
      .strictObject({
        state: z.enum([
          'rebuilding',
          'equal',
          'resuming',
          'behind',
          'stale',
        ] satisfies IndexStatus['state'][]),
        done: z.number().min(0).max(1).describe('The completed fraction.'),
        outdated: z
          .string()
          .optional()
          .describe('Why this gateway must be restarted: the log has other rules than it was started with.'),
      })
      .describe(
        'Whether the index reflects the whole log. While it is `rebuilding` or `stale`, only health is answered.',
      ),
    service: z
      .strictObject({
        name: z.literal('minetree'),
        advertisableFQDN: z.string().describe('The host of HOSTING_URL; empty if it is not set.'),
        port: count,
        network: z.enum(['main', 'test']),
        uptimeMs: count,
        topicManagerCount: count,
        lookupServiceCount: count,
      })
      .describe('The service, in the format of OverlayExpress.'),
    checks: z
      .array(
        z.strictObject({
          name: z.string(),
          scope: z.enum(['live', 'ready']),
          critical: z.literal(true),
          status: z.enum(['ok', 'error']),
          message: z.string().optional(),
          durationMs: count,
        }),
      )
      .describe(
        'The checks behind `live` and `ready`, in the format of OverlayExpress. `reasons` explains failures.',
      ),
    damaged: z
      .array(z.string())
      .optional()
      .describe(
        'Stored data found damaged since the start, as the SHA-256 of content or the txid of a transaction. Up to 100.',
      ),
    refused: z
      .record(z.string(), z.record(z.string(), z.int().min(1)))
      .describe('Refusals since the start, by topic and code.'),
    ...chainShape.shape,
  })
}

/**
 * `/health/live`: the process responds. `/health/ready`: the store responds too, and every part of the host is ready. `/health`:
 * both in one, with reasons, the state of the index, how far the host has followed the chain, and the refusals of the topics since
 * the start. Anyone may read them: errors show only the origins of URLs.
 */
export function healthRoutes(health: Health): Routes {
  return routes({
    live: (_request, response) => response.set('Cache-Control', 'no-store').json({ status: 'ok' }),
    ready: async (_request, response) => {
      const [reason] = Object.values(await health.notReady())
      if (reason !== undefined) throw new AnswerError('NOT_READY', reason)
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    },
    health: async (_request, response) => {
      const report = await health.report()
      response.set('Cache-Control', 'no-store').status(report.ready ? 200 : 503)
      response.json(report)
    },
  })
}

export interface Health {
  notReady(): Promise<Record<string, string>>
  report(): Promise<HealthReport>
}

export type HealthReport = z.output<ReturnType<typeof healthShape>>

/**
 * Why a host is not ready, by part: a sentence, or undefined if the part is ready. A host that is ready gets traffic, so a part
 * gives a reason if it would answer wrongly, or not at all.
 */
export type Readiness = Record<string, () => string | undefined>

/** The part of a host that is pinged, besides those that report reasons themselves. */
const STORE = 'store'

export function healthOf(host: {
  config: Pick<Config, 'hostingUrl' | 'network'>
  port: () => number
  /** Missing until the store is open. */
  engine?: Pick<OverlayEngine, 'managers' | 'lookupServices'>
  ping: () => Promise<void>
  readiness: Readiness
  index: () => IndexStatus
  refused: () => Record<string, Record<string, number>>
  chain?: ChainParts | undefined
}): Health {
  const { config, port, engine, ping, readiness, index, refused, chain = {} } = host
  const { hostingUrl, network } = config
  const version = packageVersion()
  const begun = monotonic()
  const since = (time: number): number => Math.round(monotonic() - time)
  let pinging: Promise<void> | undefined
  const notReady = async (): Promise<Record<string, string>> => {
    try {
      // Calls that arrive mid-query share its answer: there is no rate limit here, and the store has few connections.
      pinging ??= ping().finally(() => {
        pinging = undefined
      })
      await pinging
    } catch {
      // Other users of the store have logged the error; here only success matters.
      return { [STORE]: 'the store does not respond' }
    }
    const reasons = Object.entries(readiness).map(([part, reasonOf]) => [part, reasonOf()] as const)
    return Object.fromEntries(
      reasons.flatMap(([part, reason]) => (reason ? [[part, publicText(reason)]] : [])),
    )
  }
  return {
    notReady,
    async report() {
      const asked = monotonic()
      const reasons = await notReady()
      const durationMs = since(asked)
      const damaged = damagedBlobs()
      const ready = Object.keys(reasons).length === 0
      const check = (name: string): HealthReport['checks'][number] => {
        const { [name]: message } = reasons
        const status = message === undefined ? 'ok' : 'error'
        return {
          ...{ name, scope: 'ready', critical: true, status, ...(message && { message }) },
          durationMs: name === STORE ? durationMs : 0,
        }
      }
      return {
        ...{ version, status: ready ? 'ok' : 'error', live: true, ready, reasons },
        ...chainStatus(chain),
        index: index(),
        ...(damaged.length > 0 && { damaged }),
        refused: refused(),
        service: {
          name: 'minetree',
          advertisableFQDN: hostingUrl === undefined ? '' : new URL(hostingUrl).hostname,
          ...{ port: port(), network, uptimeMs: since(begun) },
          topicManagerCount: Object.keys(engine?.managers ?? {}).length,
          lookupServiceCount: Object.keys(engine?.lookupServices ?? {}).length,
        },
        checks: [
          { name: 'process', scope: 'live', critical: true, status: 'ok', durationMs: 0 },
          ...[STORE, ...Object.keys(readiness)].map(check),
        ],
      } as HealthReport
    },
  }
}

const routes = described({
  tag: 'health',
  operations: {
    live: {
      route: 'GET /health/live',
      summary: 'Liveness: whether the process responds',
      answer: { description: 'The process responds.', json: okShape },
    },
    ready: {
      route: 'GET /health/ready',
      summary:
        'Readiness: whether the store responds and has space, the chain tracker responds, and the index matches the admitted set',
      answer: { description: 'The host is ready.', json: okShape },
      errors: {
        NOT_READY: 'The host is not ready. `error` has the first reason, `/health` has all of them.',
      },
    },
    health: {
      route: 'GET /health',
      summary: 'Detailed liveness and readiness, progress in following the chain, and refusals',
      answer: { description: 'The host is ready.', json: healthShape(true) },
      otherAnswers: {
        503: { description: 'The process answers, but is not ready.', json: healthShape(false) },
      },
    },
  },
})
