import { concatBytes, utf8 } from '../../backend/src/protocol/bytes.js'

/** A host of the service. */
export const OWN_HOST = 'fuzz'

/**
 * A complete request: a line, headers, and a body of the declared length. Text stands for bytes, one character each; the server
 * decides whether it is valid.
 */
export interface PlainRequest {
  method: string
  target: string
  headers: readonly (readonly [name: string, value: string])[]
  /** The `Host` header; by default, a host of the service. */
  host?: string
  body?: Uint8Array
}

/** Any bytes that somebody may send on a connection. */
export interface RawRequest {
  raw: Uint8Array
}

export type FuzzRequest = PlainRequest | RawRequest

export function isRaw(request: FuzzRequest): request is RawRequest {
  return 'raw' in request
}

/** The bytes to send; the answer should end the connection. */
export function bytesOf(request: FuzzRequest): Uint8Array {
  if (isRaw(request)) return request.raw
  const { method, target, headers, host = OWN_HOST, body } = request
  const lines = [`${method} ${target} HTTP/1.1`, `Host: ${host}`, 'Connection: close']
  for (const [name, value] of headers) lines.push(`${name}: ${value}`)
  if (body !== undefined) lines.push(`Content-Length: ${body.length}`)
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  return body === undefined ? head : concatBytes(head, body)
}

export function get(target: string, headers: PlainRequest['headers'] = []): PlainRequest {
  return { method: 'GET', target, headers }
}

export function post(
  target: string,
  body: Uint8Array | string,
  headers: PlainRequest['headers'] = [],
): PlainRequest {
  return { method: 'POST', target, headers, body: typeof body === 'string' ? utf8(body) : body }
}

/** A POST of JSON as text, so that invalid JSON can be sent, too. */
export function postJson(target: string, json: string, headers: PlainRequest['headers'] = []): PlainRequest {
  return post(target, json, [['Content-Type', 'application/json'], ...headers])
}

/** The submission of a BEEF. */
export function submit(beef: Uint8Array, topics: readonly string[] = ['tm_ordinals']): PlainRequest {
  return post('/submit', beef, [
    ['Content-Type', 'application/octet-stream'],
    ['X-Topics', JSON.stringify(topics)],
  ])
}
