import fc from 'fast-check'
import { bytes } from '../../../test/support/protocol/arbitraries.js'
import { bytesOf, type FuzzRequest, get, postJson, submit } from '../request.js'
import type { Prey } from '../world.js'
import { mutated } from './bytes.js'
import { hostileText } from './text.js'

const latin1 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'))

const LINES = [
  'Content-Length: 5',
  'Content-Length: 0',
  'Content-Length: -1',
  'Content-Length: 1e3',
  'Content-Length: 18446744073709551616',
  'Content-Length: 5, 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding : chunked',
  'Expect: 100-continue',
  'Expect: 200-ok',
  'Connection: upgrade',
  'Upgrade: h2c',
  'Connection: keep-alive, close',
  'Host: other',
  ' folded',
  ': no name',
  'no colon',
  'X: \0',
  'X: \r',
  'X-Topics: ["tm_ordinals"]',
]

const CHUNKS = [
  '0\r\n\r\n',
  '5\r\nhello\r\n0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '5;a=b\r\nhello\r\n',
  '-1\r\n',
  '5\r\nhello',
  '0\r\nX: y\r\n\r\n',
  '',
]

/** Bytes on a connection that are no request, or several, or half of one. */
export function rawBytes(prey: Prey): fc.Arbitrary<FuzzRequest[]> {
  const whole = [
    get('/health'),
    get(`/content/${prey.outpoints[0]}`, [['Range', 'bytes=0-1']]),
    postJson('/lookup', '{"service":"ls_names","query":{"name":"prey"}}'),
    submit(prey.submissions[0]?.beef ?? new Uint8Array()),
  ].map(bytesOf)
  const head = fc
    .record({
      method: fc.constantFrom('GET', 'POST', 'HEAD', 'get', 'BREW', '', 'PRI'),
      target: fc.oneof(
        fc.constantFrom('/health', '/submit', '/lookup', '/svc/gateway/preview', '*', '', '/ /', '/\0'),
        hostileText.map((text) => `/${text}`),
      ),
      version: fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', ''),
      lines: fc.array(fc.constantFrom(...LINES), { maxLength: 5 }),
      end: fc.constantFrom('\r\n', '\r\n', '\n', '\r'),
      body: fc.oneof(fc.constantFrom(...CHUNKS), hostileText),
      times: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 20 })),
    })
    .map(({ method, target, version, lines, end, body, times }) => {
      const all = [`${method} ${target} ${version}`, 'Host: fuzz', ...lines, '', '']
      return latin1((all.join(end) + body).repeat(times))
    })
  const flood = fc.constantFrom(
    latin1(`GET /health HTTP/1.1\r\nHost: x\r\n${'x: y\r\n'.repeat(5000)}\r\n`),
    latin1(`GET /${'a'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`),
    latin1(`GET /health HTTP/1.1\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`),
    latin1('\r\n'.repeat(10_000)),
    latin1('GET /health HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100)),
  )
  return fc
    .oneof({ weight: 4, arbitrary: mutated(whole) }, { weight: 4, arbitrary: head }, flood, bytes(200))
    .map((raw) => [{ raw }])
}
