/** An answer as received, read strictly by RFC 9112. */
export interface FuzzAnswer {
  status: number
  /** By lower-case names; repeated ones are joined by commas. */
  headers: ReadonlyMap<string, string>
  body: Buffer
}

/** The bytes are no answers. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError'
}

const HEAD_END = Buffer.from('\r\n\r\n')
const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e\x80-\xff]*$/
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)$/

/**
 * Reads the answers on a connection, except those of 1xx.
 *
 * @param options.isHead Whether the answer to the request at a position has no body, whatever its headers say.
 * @throws AnswerError unless the bytes are exactly answers.
 */
export function readAnswers(bytes: Buffer, options: { isHead: (position: number) => boolean }): FuzzAnswer[] {
  const answers: FuzzAnswer[] = []
  for (let at = 0; at < bytes.length; ) {
    const headEnd = bytes.indexOf(HEAD_END, at)
    if (headEnd < 0) throw new AnswerError('the head of an answer breaks off')
    const { status, headers } = readHead(bytes.toString('latin1', at, headEnd))
    const from = headEnd + HEAD_END.length
    if (status < 200) {
      at = from
      continue
    }
    const hasBody = !options.isHead(answers.length) && status !== 204 && status !== 304
    const { body, end } = hasBody ? readBody(bytes, { from, headers }) : { body: Buffer.alloc(0), end: from }
    answers.push({ status, headers, body })
    at = end
  }
  return answers
}

function readHead(head: string): Pick<FuzzAnswer, 'status' | 'headers'> {
  const [line = '', ...fields] = head.split('\r\n')
  const status = STATUS_LINE.exec(line)?.[1]
  if (status === undefined) throw new AnswerError(`no status line: ${JSON.stringify(line.slice(0, 100))}`)
  const headers = new Map<string, string>()
  for (const field of fields) {
    const [, name = '', value = ''] = FIELD.exec(field) ?? []
    if (name === '') throw new AnswerError(`no header: ${JSON.stringify(field.slice(0, 100))}`)
    const key = name.toLowerCase()
    const before = headers.get(key)
    headers.set(key, before === undefined ? value.trim() : `${before}, ${value.trim()}`)
  }
  return { status: Number(status), headers }
}

function readBody(
  bytes: Buffer,
  { from, headers }: { from: number; headers: FuzzAnswer['headers'] },
): { body: Buffer; end: number } {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(bytes, from)
  const length = headers.get('content-length')
  const end = length === undefined ? bytes.length : from + Number(length)
  if (!(end <= bytes.length)) throw new AnswerError(`a body of ${length} bytes has ${bytes.length - from}`)
  return { body: bytes.subarray(from, end), end }
}

function readChunks(bytes: Buffer, from: number): { body: Buffer; end: number } {
  const chunks: Buffer[] = []
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const size = lineEnd < 0 ? '' : bytes.toString('latin1', at, lineEnd)
    if (!/^[0-9a-f]{1,8}$/i.test(size)) throw new AnswerError('the chunks of a body break off')
    const start = lineEnd + 2
    const end = start + Number.parseInt(size, 16)
    if (bytes.toString('latin1', end, end + 2) !== '\r\n') throw new AnswerError('a chunk breaks off')
    if (end === start) return { body: Buffer.concat(chunks), end: end + 2 }
    chunks.push(bytes.subarray(start, end))
    at = end + 2
  }
}
