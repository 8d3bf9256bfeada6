import fc from 'fast-check'
import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { DOMAINS } from '../domains.js'
import type { FuzzRequest } from '../request.js'
import type { Prey } from '../world.js'
import { hostileHeaders, inLine } from './headers.js'
import { hostileText, inTarget, references } from './text.js'

const ZONE = 'localhost'

/** Requests to hosts that show content, to hosts of the service, and to others. */
export function hostedRequests(prey: Prey): fc.Arbitrary<FuzzRequest[]> {
  const labels = prey.outpoints.map((outpoint) => `${outpointLabel(parseOutpoint(outpoint))}.c`)
  const known = fc.constantFrom(...prey.names, ...labels)
  const strange = fc.oneof(
    fc.constantFrom(
      '',
      'c',
      'x.c',
      'c.c',
      'a.b',
      '.',
      '..',
      '-',
      'xn--',
      'xn--80ak6aa92e',
      '__proto__',
      'constructor',
      '_ordfs',
      'www',
      'localhost',
      `${'0'.repeat(56)}.c`,
      `${'z'.repeat(56)}.c`,
      'a'.repeat(64),
      'a'.repeat(256),
      'a.'.repeat(200),
    ),
    fc.stringMatching(/^[0-9a-z]{56}$/).map((label) => `${label}.c`),
    hostileText,
  )
  const below = fc
    .tuple(
      fc.oneof({ weight: 2, arbitrary: known }, strange),
      fc.constantFrom('.', '.', '.', '', '..', '@', ':', '%2e', '\\'),
    )
    .map(([label, dot]) => label + dot + ZONE)
  const host = fc.oneof(
    { weight: 8, arbitrary: below },
    { weight: 2, arbitrary: below.map((text) => text.toUpperCase()) },
    { weight: 3, arbitrary: fc.constantFrom(...DOMAINS) },
    { weight: 1, arbitrary: fc.domain() },
    hostileText,
    fc.constantFrom(
      '',
      ZONE,
      '127.0.0.1',
      '[::1]',
      '[',
      '[]',
      ']',
      ':',
      ':80',
      ',',
      'a,b',
      `${ZONE}, ${ZONE}`,
      '*',
      '/',
      '?',
    ),
  )
  const port = fc.constantFrom('', '', ':', ':80', ':0', ':99999', ':999999', ':x', '.', '.:80', ' ')
  const path = fc.oneof(
    fc.constantFrom(
      '/',
      '/index.html',
      '/sub/',
      '/a%20b',
      '/?raw',
      '//',
      '/..',
      '/%',
      '/health',
      '/metrics',
      '/admin/block',
      '/submit',
      '/svc/names/prey',
      '/mine',
      '/content',
      '/content/',
    ),
    references(prey).map((reference) => `/content/${inTarget(reference)}`),
    hostileText.map((text) => `/${inTarget(text)}`),
  )
  const target = fc.oneof(
    { weight: 8, arbitrary: path },
    fc.tuple(below, path).map(([other, rest]) => `http://${inTarget(other)}${rest}`),
  )
  const forwarded = fc.option(host, { nil: undefined, freq: 3 })
  return fc
    .tuple(
      fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS'),
      host,
      port,
      target,
      hostileHeaders,
      forwarded,
    )
    .map(([method, name, suffix, line, headers, other]) => [
      {
        ...{ method, host: inLine(name + suffix), target: line },
        headers: other === undefined ? headers : [...headers, ['X-Forwarded-Host', inLine(other)] as const],
      },
    ])
}
