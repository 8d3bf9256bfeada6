import { createHash } from 'node:crypto'
import { Router } from 'express'
import type { Profile } from '../../../backend/src/protocol/profile.js'
import { CACHE } from '../../gateway/http/cache-policy.js'
import { endedByPrecondition, entityTag } from '../../gateway/http/entity-tag.js'
import { openapiDocument } from '../openapi/document.js'

/** `/openapi.json`: all routes in words that machines read. It is another after an update, and never in between. */
export function openapiRoutes(options: { profile: Profile; version: string }): Router {
  const text = JSON.stringify(openapiDocument(options))
  const tag = entityTag(createHash('sha256').update(text).digest('hex'))
  return Router().get('/openapi.json', (request, response) => {
    response.set({ 'Cache-Control': CACHE.revalidate, ETag: tag })
    if (!endedByPrecondition({ request, response, tag })) response.type('application/json').send(text)
  })
}
