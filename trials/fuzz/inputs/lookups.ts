import fc from 'fast-check'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { p2pkh } from '../../../test/support/protocol/fake-chain.js'
import type { Prey } from '../world.js'
import { mutatedText } from './bytes.js'
import { hostileJson, hostileText, names, outpoints } from './text.js'

/** Questions of every form, with values of every kind; the same with edits in their text; and other input. */
export function lookups(prey: Prey): fc.Arbitrary<Uint8Array> {
  const owners = [1, 2].map((seed) => encodeAddress(toHex(p2pkh(seed).subarray(3, 23)), 'main'))
  const value: fc.Arbitrary<unknown> = fc.oneof(
    { weight: 3, arbitrary: names(prey) },
    { weight: 3, arbitrary: outpoints(prey) },
    fc.constantFrom<unknown>('', null, true, -2, -1, 0, 1, 100, 101, 1.5, 2 ** 53, 'text/plain', ...owners),
    fc.array(outpoints(prey), { maxLength: 20 }),
    fc.dictionary(
      fc.constantFrom('said', 'step', '__proto__', 'x'),
      fc.oneof(fc.constantFrom('kept', '0', '1'), hostileText),
      { maxKeys: 4 },
    ),
  )
  const key = fc.constantFrom(
    'name',
    'origin',
    'mine',
    'node',
    'origins',
    'prefix',
    'limit',
    'after',
    'outpoint',
    'seq',
    'map',
    'parent',
    'contentType',
    'owner',
    'history',
  )
  const good = fc.oneof(
    names(prey).map((name) => ({ service: 'ls_names', query: { name } })),
    names(prey).map((origin) => ({ service: 'ls_names', query: { origin, history: true } })),
    names(prey).map((prefix) => ({ service: 'ls_names', query: { prefix, limit: 2 } })),
    outpoints(prey).map((outpoint) => ({ service: 'ls_ordinals', query: { outpoint, seq: -1 } })),
    fc.constantFrom(...owners).map((owner) => ({ service: 'ls_ordinals', query: { owner, limit: 5 } })),
    hostileText.map((contentType) => ({ service: 'ls_ordinals', query: { contentType } })),
    fc
      .dictionary(fc.constantFrom('said', 'step'), hostileText, { minKeys: 1 })
      .map((map) => ({ service: 'ls_ordinals', query: { map, limit: 3 } })),
  )
  const strange = fc.record({
    service: fc.oneof(fc.constantFrom('ls_names', 'ls_ordinals', 'ls_opns', '__proto__'), hostileText),
    query: fc.dictionary(key, value, { maxKeys: 3 }),
  })
  const text = (object: unknown): Uint8Array => new Uint8Array(Buffer.from(JSON.stringify(object), 'utf8'))
  const sources = [
    { service: 'ls_names', query: { name: 'prey', history: true } },
    { service: 'ls_ordinals', query: { map: { said: 'prey' }, limit: 10, after: prey.outpoints[0] } },
  ].map((object) => JSON.stringify(object))
  return fc.oneof(
    { weight: 3, arbitrary: good.map(text) },
    { weight: 3, arbitrary: strange.map(text) },
    mutatedText(sources),
    hostileJson.map((json) => new Uint8Array(Buffer.from(json, 'utf8'))),
    hostileJson.map(
      (json) => new Uint8Array(Buffer.from(`{"service":"ls_ordinals","query":${json}}`, 'utf8')),
    ),
  )
}
