import fc from 'fast-check'
import { bytes } from '../../../test/support/protocol/arbitraries.js'
import { type FuzzRequest, post, postJson } from '../request.js'
import type { Prey } from '../world.js'
import { mutatedText } from './bytes.js'
import { hostileHeaders, partHeaders } from './headers.js'
import { lookups } from './lookups.js'
import { hostileJson, hostileText, inTarget, names, outpoints, references } from './text.js'

type Requests = fc.Arbitrary<FuzzRequest[]>

/** All requests that only read. */
export function reads(prey: Prey): Record<string, Requests> {
  const reference = references(prey).map(inTarget)
  const name = names(prey).map(inTarget)
  const text = hostileText.map(inTarget)
  const asked = (target: fc.Arbitrary<string>): Requests =>
    fc
      .tuple(fc.constantFrom('GET', 'GET', 'GET', 'HEAD'), target, hostileHeaders)
      .map(([method, path, headers]) => [{ method, target: path, headers }])
  const parts = (target: fc.Arbitrary<string>): Requests =>
    fc.tuple(target, partHeaders).map(([path, headers]) => [{ method: 'GET', target: path, headers }])
  const joined = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
    fc.tuple(...parts).map((all) => all.join(''))
  const sent = (target: string, bodies: fc.Arbitrary<Uint8Array | string>): Requests =>
    fc.tuple(bodies, hostileHeaders).map(([body, headers]) => {
      const request = typeof body === 'string' ? postJson(target, body, headers) : post(target, body, headers)
      return [request]
    })
  const segment = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('', 'a b', 'a%20b', 'sub', 'up', 'c.txt', '.', 'index.html') },
    text,
  )
  const below = fc
    .array(segment, { maxLength: 12 })
    .map((segments) => segments.map((each) => `/${inTarget(each)}`).join(''))
  const list = fc.array(references(prey), { maxLength: 120 })
  return {
    'content by strange paths': asked(
      joined(
        fc.constant('/content/'),
        reference,
        below,
        fc.constantFrom('', '?raw', '?raw=&raw', '?', '?%', '?a[b]=c'),
      ),
    ),
    'paths into directories': asked(
      joined(
        fc.constant('/content/'),
        fc.constantFrom(...prey.directories),
        fc.constantFrom('', ':-1', ':0'),
        below,
      ),
    ),
    'parts of streams': parts(
      joined(
        fc.constant('/svc/gateway/stream/'),
        fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...prey.streams) }, reference),
      ),
    ),
    'parts of content': parts(joined(fc.constant('/content/'), reference, fc.constantFrom('', '?raw'))),
    metadata: asked(joined(fc.constant('/svc/gateway/metadata/'), reference)),
    'metadata of many': sent(
      '/svc/gateway/metadata',
      fc.oneof(
        list.map((all) => JSON.stringify(all)),
        list.map((all) => JSON.stringify({ outpoints: all })),
        mutatedText([JSON.stringify(prey.outpoints.slice(0, 3))]),
        hostileJson,
      ),
    ),
    proofs: asked(joined(fc.constant('/svc/gateway/proof/'), reference, fc.constantFrom('', '?next'))),
    provenance: asked(joined(fc.constant('/svc/gateway/provenance/'), outpoints(prey).map(inTarget))),
    'previews in paths': asked(
      joined(
        fc.constant('/svc/gateway/preview/'),
        fc.oneof(
          bytes(100).map((body) => Buffer.from(body).toString('base64url')),
          text,
        ),
      ),
    ),
    'previews of bodies': sent('/svc/gateway/preview', bytes(200)),
    names: asked(
      joined(
        fc.constantFrom('/svc/names/', '/svc/names/origin/', '/svc/names/mine/', '/svc/names/proof/'),
        name,
      ),
    ),
    'lists of names': asked(
      joined(
        fc.constant('/svc/names?'),
        query(
          fc.constantFrom('prefix', 'after', 'limit', 'x'),
          fc.oneof(name, fc.constantFrom('0', '1', '100', '101'), text),
        ),
      ),
    ),
    'origins of names': sent(
      '/svc/names/origins',
      fc.oneof(
        fc.array(outpoints(prey), { maxLength: 1100 }).map((all) => JSON.stringify(all)),
        mutatedText([JSON.stringify(prey.outpoints.slice(0, 3))]),
        hostileJson,
      ),
    ),
    lookups: fc
      .tuple(lookups(prey), fc.constantFrom(undefined, undefined, 'yes'), hostileHeaders)
      .map(([body, aggregated, headers]) => [
        post(
          '/lookup',
          body,
          aggregated === undefined ? headers : [...headers, ['X-Aggregation', aggregated]],
        ),
      ]),
    documentation: asked(
      joined(
        fc.constantFrom('/getDocumentationForTopicManager?', '/getDocumentationForLookupServiceProvider?'),
        query(
          fc.constantFrom('manager', 'lookupService', '__proto__'),
          fc.oneof(fc.constantFrom('tm_names', 'ls_names'), text),
        ),
      ),
    ),
    'whatever else there is': asked(
      joined(
        fc.constantFrom(
          '/health',
          '/health/live',
          '/health/ready',
          '/metrics',
          '/openapi.json',
          '/deployment.json',
          '/mine',
          '/mine/main.js',
          '/mine/',
          '/listTopicManagers',
          '/listLookupServiceProviders',
          '/',
        ),
        fc.oneof({ weight: 3, arbitrary: fc.constant('') }, text),
      ),
    ),
  }
}

function query(keys: fc.Arbitrary<string>, values: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .array(fc.tuple(keys, values), { maxLength: 5 })
    .map((all) => all.map(([key, value]) => `${key}=${value}`).join('&'))
}
