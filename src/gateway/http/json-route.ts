import type { Request, RequestHandler, Response } from 'express'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import type { GatewayParts } from './gateway-parts.js'
import { jsonResponse, namesJsonResponse, type StoredResponse, unlessAsked } from './stored-response.js'
import { incomplete } from './tree-progress.js'

export interface JsonAnswer {
  value: unknown
  /** By default, everything. */
  dependsOn?: readonly Dependency[]
  /** By default, clients have to revalidate it. */
  cache?: string
}

interface JsonRouteOptions {
  /** A request with one of these parameters is answered without the cache. */
  query?: { shape: object }
  /** Whether the answer is an object that says as of which block it holds, and whether it is complete. */
  isAboutNames?: boolean
}

/** Answers with JSON that has an entity tag, and is cached until something that it depends on changes. */
export function jsonRoute<Params extends Record<string, string>>(
  { responses, progress }: Pick<GatewayParts, 'responses' | 'progress'>,
  read: (request: Pick<Request<Params>, 'params' | 'path' | 'query'>, response: Response) => JsonAnswer,
  { query = { shape: {} }, isAboutNames = false }: JsonRouteOptions = {},
): RequestHandler<Params> {
  const queryKey = unlessAsked(Object.keys(query.shape))
  return (request, response) => {
    const made = (): StoredResponse => {
      const { value, dependsOn = [dependency.all], cache } = read(request, response)
      const options = { cache, dependsOn }
      return isAboutNames
        ? namesJsonResponse({ ...(value as object), ...incomplete(progress) }, options)
        : jsonResponse(value, options)
    }
    return responses.respond(request as never, response, made, { queryKey, isAboutNames })
  }
}
