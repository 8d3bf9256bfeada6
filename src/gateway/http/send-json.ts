import type { Response } from 'express'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Not `response.json()`, which writes and tags as the settings of the host's app say. */
export function sendJson(response: Response, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value), 'utf8')
  response.setHeader('Content-Type', JSON_TYPE)
  response.setHeader('Content-Length', body.length)
  response.end(body)
}
