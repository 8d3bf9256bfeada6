import type { Bare, BareReady, Likeness } from './bare-server.js'
import type { GatewayReady } from './gateway-server.js'
import { cpuRatio, type Round, roundsByTurns, speedRatio, type Target, withProcess } from './load.js'
import { median } from './support.js'

/**
 * The cost of reads of the gateway: requests that are answered from memory, compared with `node:http`, and those that take a
 * route, compared with a bare Express handler. Each bare server is a separate process that sends the same bytes and headers.
 * Alternating.
 */
export async function* gateway(): AsyncGenerator<string> {
  yield* withProcess('./gateway-server.js', [], async function* (ready: GatewayReady, server) {
    const { url, forgetful, files, young, middle, flat, names, bodies } = ready
    const at = (...paths: string[]): Target => ({ origin: url, server, paths })
    const each = (from: string[], path: (one: string) => string): Target => at(...from.map(path))
    const long = (kib: keyof typeof bodies): Target => ({
      ...at(`/content/${bodies[kib]}`),
      length: kib * 1024,
    })
    yield* compareWithBare('node', {
      outpoint: { target: each(files, (file) => `/content/${file}`), wanted: 0.6 },
      tip: { target: each(files, (file) => `/content/${file}:-1`), wanted: 0.5 },
      step: { target: each(files, (file) => `/content/${file}:0`), wanted: 0.5 },
      file: { target: at(`/content/${flat}`), wanted: 0.5 },
      'origin/': { target: each(names, (name) => `/svc/names/origin/${name}`), wanted: 0.5 },
      'mine/': { target: each(names, (name) => `/svc/names/mine/${name}zz`), wanted: 0.5 },
      name: { target: each(names, (name) => `/svc/names/${name}`), wanted: 0.5 },
      metadata: { target: each(files, (file) => `/svc/gateway/metadata/${file}:-1`), wanted: 0.5 },
      '100 KiB': { target: long(100), wanted: 0.8 },
      '1 MiB': { target: long(1024), wanted: 0.8 },
      '10 MiB': { target: long(10_240), wanted: 0.2 },
    })
    // A query that changes nothing costs hardly more, and one that only changes a header is answered from memory as well.
    yield* compareWithBare('node', {
      'outpoint with a query that changes nothing': {
        target: each(files, (file) => `/content/${file}?utm_source=a`),
        wanted: 0.4,
      },
      'tip with ?map=true': { target: each(files, (file) => `/content/${file}:-1?map=true`), wanted: 0.3 },
      'origin/ with a query that changes nothing': {
        target: each(names, (name) => `/svc/names/origin/${name}?q`),
        wanted: 0.4,
      },
      'metadata with a query that changes nothing': {
        target: each(files, (file) => `/svc/gateway/metadata/${file}:-1?q`),
        wanted: 0.4,
      },
    })
    for (const [steps, outpoint] of Object.entries({ 10: young, 1000: middle })) {
      const path = `/svc/gateway/metadata/${outpoint}:-1`
      const asked = await roundsByTurns({ without: at(path), with: at(`${path}?map=true`) }, PAIRS)
      yield `metadata at step ${steps} with ?map=true, which changes nothing: ${speedRatio(asked.with, asked.without).toFixed(2)} times as fast as without by speed, ${cpuRatio(asked.with, asked.without).toFixed(2)} by CPU time (wanted: 0.95)`
    }
    const missing = (from: string[], path: (one: string) => string): Target => ({
      ...{ origin: forgetful, server },
      paths: from.map(path),
    })
    yield* compareWithBare('express', {
      'outpoint, not in memory': { target: missing(files, (file) => `/content/${file}`), wanted: 0.85 },
      'tip, not in memory': { target: missing(files, (file) => `/content/${file}:-1`), wanted: 0.85 },
      'origin/, not in memory': {
        target: missing(names, (name) => `/svc/names/origin/${name}`),
        wanted: 0.85,
      },
      'metadata, not in memory': {
        target: missing(files, (file) => `/svc/gateway/metadata/${file}:-1`),
        wanted: 0.85,
      },
    })
  })
}

/** A target of ours, and its wanted speed as a multiple of a bare one. */
interface Compared {
  target: Target
  wanted: number
}

/** Loads each of our targets, alternating with a bare server that answers like its first path. */
export async function* compareWithBare(
  kind: keyof Bare,
  ours: Record<string, Compared>,
): AsyncGenerator<string> {
  const likenesses = Object.values(ours).map(({ target: { origin, paths, headers } }) =>
    JSON.stringify({ url: `${origin}${paths[0]}`, headers } satisfies Likeness),
  )
  yield* withProcess('./bare-server.js', likenesses, async function* (bare: BareReady, server) {
    for (const [index, [what, { target, wanted }]] of Object.entries(ours).entries()) {
      const origin = bare[index]?.[kind] ?? ''
      const rounds = await roundsByTurns({ bare: { ...target, origin, server }, own: target }, PAIRS)
      const cpu = (of: Round[]): string => median(of.map((round) => round.cpu)).toFixed(0)
      const { own, bare: base } = rounds
      const named = kind === 'node' ? 'node:http' : 'bare Express'
      yield `${what} against ${named}: ${speedRatio(own, base).toFixed(2)} by speed, ${cpuRatio(own, base).toFixed(2)} by CPU time (${cpu(own)} µs to ${cpu(base)} µs; wanted: ${wanted})`
    }
  })
}

/** Rounds of each pair. */
const PAIRS = 15
