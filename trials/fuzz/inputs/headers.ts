import fc from 'fast-check'
import { hostileText } from './text.js'

/** A header's value: text for one line, as bytes. */
export function inLine(text: string): string {
  const bytes = Buffer.from(text, 'utf8').filter((byte) => byte === 0x09 || (byte >= 0x20 && byte !== 0x7f))
  return Buffer.from(bytes).toString('latin1')
}

const position = fc.oneof(
  fc.nat({ max: 20 }).map(String),
  fc.constantFrom('', '-0', '9007199254740993', '9'.repeat(30), '1e1', ' 1', '0x1'),
)
const span = fc.tuple(position, position).map(([from, to]) => `${from}-${to}`)
const ranges = fc.oneof(
  span.map((one) => `bytes=${one}`),
  fc.array(span, { minLength: 2, maxLength: 40 }).map((all) => `bytes=${all.join()}`),
  fc
    .tuple(span, fc.integer({ min: 100, max: 2000 }))
    .map(([one, times]) => `bytes=${`${one},`.repeat(times)}${one}`.slice(0, 12_000)),
  hostileText.map((text) => `bytes=${text}`),
  fc.constantFrom(
    'items=0-1',
    'bytes',
    'bytes=',
    'bytes=-',
    'Bytes=0-0',
    'bytes = 0-0',
    'bytes=0-0,,',
    'bytes=5-2',
  ),
  hostileText,
)
const tags = fc.oneof(
  fc.constantFrom('*', '"', 'W/', 'W/""', '""', '"a", *', ',', '"a"'.repeat(500), 'W/"a", '.repeat(500)),
  fc.stringMatching(/^[0-9a-f]{64}$/).map((hash) => `"${hash}"`),
  hostileText.map((text) => `"${text}"`),
  hostileText,
)
const DATES = ['Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', 'now', '0']
const accepted = fc.oneof(
  fc.constantFrom(
    '*/*',
    'application/octet-stream',
    'text/html;q=0',
    'a/b;q=2',
    '*',
    '/',
    ';;;',
    '*/*,'.repeat(800),
    'application/json;q=1e9',
  ),
  hostileText,
)

const header: fc.Arbitrary<[string, string]> = fc.oneof(
  { weight: 4, arbitrary: ranges.map((value): [string, string] => ['Range', value]) },
  { weight: 3, arbitrary: tags.map((value): [string, string] => ['If-None-Match', value]) },
  fc.oneof(tags, fc.constantFrom(...DATES)).map((value): [string, string] => ['If-Range', value]),
  fc.oneof(tags, fc.constantFrom(...DATES)).map((value): [string, string] => ['If-Modified-Since', value]),
  accepted.map((value): [string, string] => ['Accept', value]),
  hostileText.map((value): [string, string] => ['X-Request-Id', value]),
  fc
    .oneof(fc.constantFrom('yes', 'no', 'YES', 'yes, yes'), hostileText)
    .map((value): [string, string] => ['X-Aggregation', value]),
  fc.tuple(
    fc.constantFrom(
      'Accept-Encoding',
      'Accept-Language',
      'Access-Control-Request-Headers',
      'Access-Control-Request-Method',
      'Authorization',
      'Cache-Control',
      'Content-Encoding',
      'Content-Type',
      'Cookie',
      'Forwarded',
      'Origin',
      'Referer',
      'Service-Worker',
      'Upgrade',
      'User-Agent',
      'X-Forwarded-For',
      'X-Forwarded-Proto',
      'X-HTTP-Method-Override',
      'x-bsv-topic',
      'traceparent',
    ),
    hostileText,
  ),
  fc.tuple(fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/).filter(isAllowed), hostileText),
)

/** The excluded headers would make it another request: raw bytes do that. */
function isAllowed(name: string): boolean {
  return !/^(?:content-length|transfer-encoding|connection|host|expect|upgrade|te|trailer)$/i.test(name)
}

/** Headers that do not change where a request ends. */
export const hostileHeaders: fc.Arbitrary<[string, string][]> = fc
  .array(header, { maxLength: 4 })
  .map((headers) => headers.map(([name, value]): [string, string] => [name, inLine(value)]))

/** Headers of a client that wants a part of something, or has it already. */
export const partHeaders: fc.Arbitrary<[string, string][]> = fc
  .tuple(ranges, fc.option(tags, { freq: 2, nil: undefined }), fc.option(tags, { freq: 2, nil: undefined }))
  .map(([range, known, unless]) => {
    const headers: [string, string][] = [['Range', inLine(range)]]
    if (known !== undefined) headers.push(['If-None-Match', inLine(known)])
    if (unless !== undefined) headers.push(['If-Range', inLine(unless)])
    return headers
  })

/** Headers, with a valid or an invalid `X-Topics`. */
export const topicHeaders: fc.Arbitrary<[string, string][]> = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        '["tm_names"]',
        '["tm_ordinals"]',
        '["tm_ordinals","tm_names"]',
        '["tm_opns"]',
        '[]',
        '"tm_names"',
        'tm_names',
      ),
      fc
        .array(fc.oneof(fc.constantFrom('tm_names', 'tm_ordinals'), hostileText), { maxLength: 40 })
        .map((all) => JSON.stringify(all)),
      fc.json({ maxDepth: 2 }),
      fc.integer({ min: 1, max: 6000 }).map((times) => '['.repeat(times)),
      hostileText,
    ),
    fc.constantFrom(undefined, 'true', 'false', 'TRUE'),
    fc.constantFrom(undefined, undefined, undefined, 'gzip', 'br', 'deflate', 'identity', 'unheard-of'),
    fc.constantFrom('application/octet-stream', 'application/json', 'text/plain; charset=none', 'a'),
  )
  .map(([topics, offChain, encoding, type]) => {
    const headers: [string, string][] = [
      ['Content-Type', type],
      ['X-Topics', inLine(topics)],
    ]
    if (offChain !== undefined) headers.push(['x-includes-off-chain-values', offChain])
    if (encoding !== undefined) headers.push(['Content-Encoding', encoding])
    return headers
  })
