import { createHash } from 'node:crypto'
import { Router } from 'express'
import { z } from 'zod'
import { CACHE, endedByPrecondition, entityTag } from '../../gateway/http/caching.js'
import type { OperationGroup } from '../../gateway/http/operation.js'
import { JSON_TYPE } from '../../gateway/http/send-body.js'

/**
 * `/openapi.json`: a description of all routes.
 *
 * @param document Generates it, on the first request: that takes longer than starting a server should. It never changes.
 */
export function openapiRoutes(document: () => object): Router {
  let written: { text: string; tag: string } | undefined
  const write = () => {
    const text = JSON.stringify(document())
    return { text, tag: entityTag(createHash('sha256').update(text).digest('hex'), JSON_TYPE) }
  }
  return Router().get('/openapi.json', (request, response) => {
    written ??= write()
    const { text, tag } = written
    response.set({ 'Cache-Control': CACHE.revalidate, ETag: tag })
    if (!endedByPrecondition({ request, response, tag })) response.type(JSON_TYPE).send(text)
  })
}

export const OPENAPI_OPERATIONS: OperationGroup = {
  tag: 'health',
  operations: {
    openapi: {
      route: 'GET /openapi.json',
      summary: 'This document',
      answer: { description: 'An OpenAPI 3.1 document.', headers: ['ETag'], json: z.looseObject({}) },
    },
  },
}
