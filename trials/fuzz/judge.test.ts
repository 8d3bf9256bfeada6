import type { InFlightRequest } from './exchange.js'
import { judge } from './judge.js'
import { get, type PlainRequest } from './request.js'

// A fuzz without complaints finds nothing.

const ERROR = '{"error":"not an outpoint: \\"x\\"","code":"BAD_OUTPOINT"}'
const OPEN = 'Access-Control-Allow-Origin: *'
const AS_ERROR = `${OPEN}\r\nCache-Control: no-store\r\nContent-Type: application/json; charset=utf-8`

const CONTENT = get('/content/x')

/** An answer of this status with these headers, and its length before the body. */
function answer(status: string, headers: string, body = ''): string {
  return `HTTP/1.1 ${status}\r\n${headers}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

function complaintsOf(
  received: string,
  { request = CONTENT, end = 'closed' }: { request?: PlainRequest; end?: InFlightRequest['end'] } = {},
): string[] {
  return judge(request, { received: Buffer.from(received, 'latin1'), end, milliseconds: 1 }).complaints
}

test.each<[string, string, PlainRequest]>([
  ['an error in the one shape', answer('400 Bad Request', AS_ERROR, ERROR), CONTENT],
  [
    'content that nobody guesses the type of',
    answer('200 OK', `${OPEN}\r\nX-Content-Type-Options: nosniff`, 'x'),
    CONTENT,
  ],
  [
    'a body in chunks',
    `HTTP/1.1 200 OK\r\n${OPEN}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    get('/lookup'),
  ],
  [
    'a queue that is full',
    answer('503 Service Unavailable', `${AS_ERROR}\r\nRetry-After: 1`, ERROR),
    CONTENT,
  ],
  [
    'the head of an answer',
    `HTTP/1.1 200 OK\r\n${OPEN}\r\nContent-Length: 9\r\n\r\n`,
    { ...get('/health'), method: 'HEAD' },
  ],
  [
    'an operator’s route that is closed to others',
    answer('401 Unauthorized', AS_ERROR.replace(`${OPEN}\r\n`, ''), ERROR),
    get('/admin/blocked'),
  ],
])('%s is nothing to complain of', (_, received, request) => {
  expect(complaintsOf(received, { request })).toEqual([])
})

test.each<[string, string, RegExp]>([
  ['our fault', answer('500 Internal Server Error', AS_ERROR, ERROR), /status 500/],
  [
    'not being ready, without a time to come again',
    answer('503 Service Unavailable', AS_ERROR, ERROR),
    /status 503/,
  ],
  ['nothing', '', /no answer/],
  ['half a head', 'HTTP/1.1 200 OK\r\nX: ', /breaks off/],
  ['a header that is none', 'HTTP/1.1 200 OK\r\nX Y: z\r\n\r\n', /no header/],
  ['fewer bytes than it says', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx', /of 9 bytes has 1/],
  ['a second answer', answer('400 Bad Request', AS_ERROR, ERROR).repeat(2), /2 answers/],
  [
    'an error that is a page',
    answer('404 Not Found', `${OPEN}\r\nContent-Type: text/html`, '<p>'),
    /comes as text\/html/,
  ],
  ['an error without a code', answer('404 Not Found', AS_ERROR, '{"error":"nothing here"}'), /unknown code/],
  ['an error without a sentence', answer('404 Not Found', AS_ERROR, '{"code":"NOT_FOUND"}'), /no sentence/],
  ['a stack', answer('400 Bad Request', AS_ERROR, ERROR.replace('x', '/node_modules/a')), /of the inside/],
  [
    'an error for one origin alone',
    answer('400 Bad Request', AS_ERROR.replace('*', 'null'), ERROR),
    /other origins/,
  ],
  ['content of a type to be guessed', answer('200 OK', OPEN, 'x'), /guess/],
  [
    'a part that is another',
    answer('206 Partial Content', `${OPEN}\r\nContent-Range: bytes 0-4/10`, 'abc'),
    /a part of 3/,
  ],
])('%s is', (_, received, complaint) => {
  expect(complaintsOf(received).join()).toMatch(complaint)
})

test.each(['hung', 'refused'] as const)('a connection that %s is', (end) => {
  expect(complaintsOf('', { end })).toEqual([`the connection ${end}`])
})
