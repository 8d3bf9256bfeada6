import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express'

/** An app that answers most requests before Express sees them. */
export interface App {
  (request: IncomingMessage, response: ServerResponse): void
  /** Its routes. */
  readonly express: Express
}

/**
 * Asks handlers first, and Express only if they pass a request on: finding the first handler takes Express as long as they do.
 * To them, requests and responses are Express's own.
 *
 * @param options.errors Sends the errors of these handlers. Express sends those of its routes itself.
 */
export function aheadOfRoutes(
  express: Express,
  {
    handlers: [gate, answer],
    errors,
  }: { handlers: [RequestHandler, RequestHandler]; errors: ErrorRequestHandler },
): App {
  const app = (request: IncomingMessage, response: ServerResponse): void => {
    const [asked, answered] = adopted(express, request, response)
    const fail = (error: unknown): void => void errors(error, asked, answered, () => {})
    const ask = (handler: RequestHandler, next: () => void): void => {
      try {
        handler(asked, answered, (error?: unknown) => {
          if (error === undefined) next()
          else fail(error)
        })
      } catch (error) {
        fail(error)
      }
    }
    ask(gate, () => ask(answer, () => express(asked, answered)))
  }
  return Object.assign(app, { express })
}

/** A request and its response as Express would pass them to its first handler. */
function adopted(
  express: Express,
  plain: IncomingMessage,
  plainResponse: ServerResponse,
): [request: Request, response: Response] {
  const request = withPrototype(plain, express.request)
  const response = withPrototype(plainResponse, express.response)
  response.locals = {}
  request.originalUrl = request.url
  // Express has no handler for a target without a path (`http://[/`, `http://`): this one has no route.
  if (!request.url.startsWith('/') && !isParsable(request)) request.url = '/'
  return [request, response]
}

function withPrototype<Adopted extends object>(plain: object, prototype: Adopted): Adopted {
  if (Object.getPrototypeOf(plain) !== prototype) Object.setPrototypeOf(plain, prototype)
  return plain as Adopted
}

function isParsable(request: Request): boolean {
  try {
    return typeof request.path === 'string'
  } catch {
    return false
  }
}
