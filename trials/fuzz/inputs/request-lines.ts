import fc from 'fast-check'
import { bytes } from '../../../test/support/protocol/arbitraries.js'
import type { FuzzRequest } from '../request.js'
import type { Prey } from '../world.js'
import { hostileHeaders } from './headers.js'
import { hostileText, inTarget, references } from './text.js'

/** Targets and methods of every kind, including those without a route. */
export function requestLines(prey: Prey): fc.Arbitrary<FuzzRequest[]> {
  const methods = fc.constantFrom(
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'TRACE',
    'PROPFIND',
    'QUERY',
    'M-SEARCH',
    'CONNECT',
  )
  const path = fc.oneof(
    references(prey).map((reference) => `/content/${inTarget(reference)}`),
    fc.constantFrom(
      '/submit',
      '/lookup',
      '/svc/names/prey',
      '/svc/gateway/preview',
      '/health',
      '/requestSyncResponse',
      '/arc-ingest',
      '/admin/block',
    ),
    hostileText.map((text) => `/${inTarget(text)}`),
  )
  const target = fc.oneof(
    { weight: 3, arbitrary: path },
    path.map((rest) => `http://elsewhere.example${rest}`),
    path.map((rest) => `//${rest}`),
    fc.constantFrom(
      '*',
      'http://[/',
      'http://',
      'http:',
      '?',
      '/?',
      '//',
      '/%',
      'a',
      'elsewhere.example:80',
      'http://a:b@c/',
      '/\\..\\',
    ),
    fc
      .tuple(path, fc.integer({ min: 1, max: 200 }))
      .map(([rest, times]) => rest.repeat(times).slice(0, 12_000)),
  )
  return fc
    .tuple(methods, target, hostileHeaders, fc.option(bytes(100), { nil: undefined }))
    .map(([method, line, headers, body]) => [{ method, target: line, headers, ...(body && { body }) }])
}
