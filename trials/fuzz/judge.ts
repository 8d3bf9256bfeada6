import { ERROR_STATUSES } from '../../src/gateway/http/errors.js'
import { AnswerError, type FuzzAnswer, readAnswers } from './answer.js'
import type { InFlightRequest } from './exchange.js'
import { type FuzzRequest, isRaw, type PlainRequest } from './request.js'

/** The judgement of an exchange: the status of each answer, and what no server should have done. */
export interface Judgement {
  statuses: number[]
  complaints: string[]
}

/** Paths whose body is strangers' content, of any type. */
const STRANGERS = /\/(?:content|stream|preview)(?:\/|$|\?)/
/** Routes that are not open to pages of other origins. */
const OPERATORS = /\/admin(?:\/|$|\?)/i
/** Internal details: a stack, a file, a statement. */
const INSIDE = /node_modules|\n\s+at |\.js:\d+|SQLITE|libsql|graph_[a-z]+/

/** Checks the answer to a request by the rules for all answers. */
export function judge(request: FuzzRequest, { received, end }: InFlightRequest): Judgement {
  if (end === 'hung' || end === 'refused') return { statuses: [], complaints: [`the connection ${end}`] }
  let answers: FuzzAnswer[]
  try {
    answers = readAnswers(received, { isHead: isRaw(request) ? unsure : () => request.method === 'HEAD' })
  } catch (error) {
    if (!(error instanceof AnswerError)) throw error
    // Nobody knows how many requests raw bytes are, and which of them are HEAD.
    return { statuses: [], complaints: isRaw(request) ? [] : [error.message] }
  }
  const complaints = isRaw(request)
    ? answers.flatMap(({ status }) => (status >= 500 ? [`status ${status}`] : []))
    : judgePlain(request, answers)
  return { statuses: answers.map(({ status }) => status), complaints }
}

function unsure(): boolean {
  return false
}

function judgePlain(request: PlainRequest, answers: FuzzAnswer[]): string[] {
  const [answer, ...more] = answers
  // Node ends the connection of such a request, for which nobody listens.
  if (answer === undefined) return request.method === 'CONNECT' ? [] : ['there is no answer']
  if (more.length > 0) return [`there are ${answers.length} answers`]
  const { status, headers, body } = answer
  const complaints: string[] = []
  if (status >= 500 && !isBusy(answer)) complaints.push(`status ${status}: ${body.toString('utf8')}`)
  if (!OPERATORS.test(request.target) && headers.get('access-control-allow-origin') !== '*')
    complaints.push('it is not open to other origins')
  if (status >= 400) complaints.push(...judgeError(request, answer))
  else complaints.push(...judgeGood(request, answer))
  return complaints
}

/** A full queue says so, and when to come again. */
function isBusy({ status, headers }: FuzzAnswer): boolean {
  return status === 503 && headers.has('retry-after')
}

/** The one shape of errors (`docs/spec/http.md`, Errors). */
function judgeError({ method, host, headers: sent }: PlainRequest, { headers, body }: FuzzAnswer): string[] {
  const complaints: string[] = []
  const type = headers.get('content-type') ?? ''
  // On a host that shows content, a request that prefers a page gets one.
  if (host !== undefined && type.startsWith('text/html') && sent.some(([name]) => /^accept$/i.test(name))) {
    const policy = headers.get('content-security-policy') ?? ''
    if (!policy.startsWith("default-src 'none'")) complaints.push('something may run in an error')
    if (INSIDE.test(body.toString('utf8'))) complaints.push('it tells of the inside')
    return complaints
  }
  if (type !== 'application/json; charset=utf-8') complaints.push(`an error comes as ${type}`)
  if (headers.get('cache-control') !== 'no-store') complaints.push('an error may be stored')
  if (method === 'HEAD') return complaints
  const text = body.toString('utf8')
  const said = parsed(text) as { error?: unknown; code?: unknown } | undefined
  if (typeof said?.error !== 'string' || said.error.length < 5) complaints.push(`no sentence: ${text}`)
  if (!Object.hasOwn(ERROR_STATUSES, String(said?.code))) complaints.push(`an unknown code: ${text}`)
  if (INSIDE.test(text)) complaints.push(`it tells of the inside: ${text}`)
  return complaints
}

function judgeGood({ method, target, host }: PlainRequest, { status, headers, body }: FuzzAnswer): string[] {
  const complaints: string[] = []
  const isHosted =
    target.startsWith('/') && /^(?:[^.@:]+(?:\.c)?\.localhost|[^@:]+\.example)\.?(?::\d*)?$/i.test(host ?? '')
  const isStrangers = isHosted || STRANGERS.test(target)
  if (isHosted && status === 200 && !headers.has('x-outpoint')) complaints.push('it is no content')
  const type = headers.get('content-type') ?? ''
  if (isStrangers && status === 200 && headers.get('x-content-type-options') !== 'nosniff')
    complaints.push('a browser may guess the type')
  if (method === 'HEAD') return complaints
  if (!isStrangers && type.startsWith('application/json') && parsed(body.toString('utf8')) === undefined)
    complaints.push('a body is no JSON')
  if (status !== 206) return complaints
  const boundary = /^multipart\/byteranges; boundary=(\S+)$/.exec(type)?.[1]
  if (boundary !== undefined && !headers.has('content-range')) {
    if (!body.toString('latin1').endsWith(`\r\n--${boundary}--\r\n`)) complaints.push('its parts do not end')
    return complaints
  }
  const [, from, to, length] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? []
  if (Number(to) - Number(from) + 1 !== body.length || !(Number(to) < Number(length)))
    complaints.push(`a part of ${body.length} bytes says ${headers.get('content-range')}`)
  return complaints
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller wants to know whether it is JSON.
    return undefined
  }
}
