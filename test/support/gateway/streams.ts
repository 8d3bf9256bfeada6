import { type Lives, livesOn } from '../graph/lives.js'
import { type FakeChain, type FakeTransaction, inscriptionScript } from '../protocol/fake-chain.js'
import type { TestServer } from '../server/test-server.js'
import { text } from './site.js'

/** The script of a chunk behind the first one. */
export function chunk(body: Uint8Array | string, contentType = 'gw/stream'): Uint8Array {
  return inscriptionScript(typeof body === 'string' ? text(body, contentType) : { contentType, body })
}

/** A body cut at these lengths; the last chunk has the rest. */
export function cut(body: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  let at = 0
  for (const length of lengths) {
    chunks.push(body.subarray(at, at + length))
    at += length
  }
  return [...chunks, body.subarray(at)]
}

/** Lives on a server, with one that is a stream of these bodies. */
export interface Streams extends Lives {
  streamOf(bodies: readonly (Uint8Array | string)[], contentType?: string): Promise<FakeTransaction[]>
  /** Goes on from the last step with these scripts. */
  goOn(steps: readonly FakeTransaction[], scripts: readonly Uint8Array[]): Promise<FakeTransaction[]>
}

export function streamsOn(server: TestServer, chain: FakeChain): Streams {
  const lives = livesOn(server, chain)
  return {
    ...lives,
    streamOf: ([first = '', ...further], contentType = 'image/x-test') =>
      lives.life(
        chunk(first, contentType),
        further.map((body) => chunk(body)),
      ),
    goOn: async (steps, scripts) => {
      const all = [...steps]
      for (const script of scripts) {
        const before = lastOf(all)
        const next = lives.transferred(before, script)
        await lives.submit(next, { with: [before] })
        all.push(next)
      }
      return all
    },
  }
}

/** The step that a life has come to. */
export function lastOf(steps: readonly FakeTransaction[]): FakeTransaction {
  const last = steps.at(-1)
  if (last === undefined) throw new Error('there is no step to go on from')
  return last
}

/** Where a step of a life is served as a stream. */
export function streamPath(step: FakeTransaction | undefined, prefix = '/svc/gateway'): string {
  return `${prefix}/stream/${step?.outpoint(0) ?? ''}`
}
