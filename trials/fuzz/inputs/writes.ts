import { deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import { varint } from '../../../test/support/protocol/raw-transaction.js'
import { type FuzzRequest, get, post, submit } from '../request.js'
import type { Prey } from '../world.js'
import { HUGE_COUNTS, mutated } from './bytes.js'
import { hostileHeaders, topicHeaders } from './headers.js'
import { hostileText, inTarget } from './text.js'
import {
  beefWith,
  craftedTransactions,
  goodPaths,
  type Made,
  runningTransactions,
  strangeBeefs,
} from './transactions.js'

type Requests = fc.Arbitrary<FuzzRequest[]>

/** All requests that store something, and requests for what was stored. */
export function writes(prey: Prey): Record<string, Requests> {
  const beefs = prey.submissions.map(({ beef }) => beef)
  const topics = fc.constantFrom(['tm_names'], ['tm_ordinals'], ['tm_ordinals', 'tm_names'])
  const form = fc.record({ version: fc.constantFrom<1 | 2>(1, 2), isAtomic: fc.boolean() })
  const read = readsOf()
  return {
    'submit a changed BEEF': fc.tuple(mutated(beefs), topics).map(([beef, all]) => [submit(beef, all)]),
    'submit a BEEF by its grammar': fc
      .tuple(strangeBeefs(prey), topics)
      .map(([beef, all]) => [submit(beef, all)]),
    'submit under strange headers': fc
      .tuple(
        fc.constantFrom(...beefs),
        topicHeaders,
        hostileHeaders,
        fc.nat({ max: 5 }),
        fc.constantFrom(...HUGE_COUNTS),
      )
      .map(([beef, headers, more, form, count]) => {
        const all = [
          ...headers,
          ...more.filter(([name]) => !headers.some(([taken]) => taken.toLowerCase() === name.toLowerCase())),
        ]
        return [post('/submit', framed(beef, { form, count }), all)]
      }),
    'submit strange content, and read it': craftedTransactions(prey).chain((subject) =>
      fc
        .tuple(goodPaths(subject.txid), form, topics, read(subject))
        .map(([path, options, all, reads]) => [submit(beefWith(subject, path, options), all), ...reads]),
    ),
    'submit strange content without a proof': fc
      .tuple(craftedTransactions(prey), form, topics)
      .map(([subject, options, all]) => [submit(beefWith(subject, undefined, options), all)]),
    'submit scripts to be run': fc
      .tuple(runningTransactions(prey), form)
      .map(([{ locked, unlocking }, options]) => [
        submit(beefWith(unlocking, undefined, { ...options, unproven: [locked.raw] })),
      ]),
  }
}

/** A body as it is, compressed, or after a length that may be wrong. */
function framed(beef: Uint8Array, { form, count }: { form: number; count: Uint8Array }): Uint8Array {
  switch (form) {
    case 0:
      return gzipSync(beef)
    case 1:
      return deflateSync(beef)
    case 2:
      return concatBytes(varint(beef.length), beef, Uint8Array.of(1, 2, 3))
    case 3:
      return concatBytes(count, beef)
    case 4:
      return new Uint8Array()
    default:
      return beef
  }
}

/** Reads the content of a stranger's transaction back by every route that shows it. */
function readsOf(): (subject: Made) => fc.Arbitrary<FuzzRequest[]> {
  const below = fc.oneof(
    fc.constantFrom('', '/', '/a', '/sub/a', '/.', '?raw', '/index.html', '/b/'),
    hostileText.map((text) => `/${inTarget(text)}`),
  )
  return ({ txid, outputs }) =>
    fc
      .tuple(
        fc.nat({ max: Math.max(outputs - 1, 0) }),
        below,
        fc.constantFrom('', ':0', ':-1', ':1'),
        hostileHeaders,
      )
      .map(([vout, path, sequence, headers]) => {
        const outpoint = `${txid}_${vout}`
        return [
          get(`/content/${outpoint}${sequence}${path}`, headers),
          get(`/content/${txid}`),
          get(`/svc/gateway/metadata/${outpoint}${sequence}`),
          get(`/svc/gateway/stream/${outpoint}`, headers),
          get(`/svc/gateway/provenance/${outpoint}`),
        ]
      })
}
