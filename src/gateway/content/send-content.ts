import type { Request, Response } from 'express'
import { type GraphReader, SHORT_BODY } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import { sendChunks } from '../http/send-chunks.js'
import { sendHead } from '../http/send-head.js'
import { shortOf, wholeRange } from '../http/whole-range.js'

/** Answers with a body and the headers that are its own (`spec/http.md`, Content). */
export async function sendContent(options: {
  request: Request
  response: Response
  store: GraphReader
  content: ContentSummary
  /** For what a browser would run. */
  policy: string
}): Promise<void> {
  const { response, store, content } = options
  const range = sendHead(options)
  if (range === undefined) return
  if (content.length <= SHORT_BODY) {
    const body = await store.content.shortBody(content.sha256)
    if (body?.length !== content.length) throw shortOf(content.length, body?.length ?? 0)
    response.end(range.length === body.length ? body : body.subarray(range.from, range.from + range.length))
    return
  }
  await sendChunks(response, {
    pieces: wholeRange(store.content.chunks(content.sha256, range), range.length),
    length: range.length,
  })
}
