import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express'
import { CONTENT_PATH } from '../../gateway/content/content.js'
import type { ContentHosts } from '../../gateway/hosts/content-hosts.js'
import { type HostHandler, toOriginForm } from '../../gateway/hosts/host-content.js'
import { isAdmin } from './gates.js'
import type { Transfers } from './transfers.js'

/** An app that answers most requests before Express sees them. */
export interface App {
  (request: IncomingMessage, response: ServerResponse): void
  readonly express: Express
  /** Counts the bodies that the app reads; a server adds the answers that wait to be read. */
  readonly transfers?: Transfers
}

/** Hosts that show content; they have none of the service's routes. */
export interface HostedApp {
  hosts: Pick<ContentHosts, 'read'>
  gate: RequestHandler
  answer: HostHandler
  errors: ErrorRequestHandler
}

/**
 * Tries handlers first, and Express only if they pass a request on: finding the first handler takes Express as long as running it.
 * For the handlers, requests and responses look like Express's own.
 *
 * @param options.errors Sends the errors of these handlers. Express sends those of its routes itself.
 * @param options.hosted Comes before everything else, including the gates: paths mean something else on a host that shows content.
 */
export function aheadOfRoutes(
  express: Express,
  {
    handlers: [gate, answer],
    errors,
    hosted,
    transfers,
  }: {
    handlers: [RequestHandler, RequestHandler]
    errors: ErrorRequestHandler
    hosted: HostedApp
    transfers?: Transfers
  },
): App {
  const app = (request: IncomingMessage, response: ServerResponse): void => {
    const [asked, answered] = adopted(express, request, response)
    const shown = hosted.hosts.read(asked)
    const sendError = shown === undefined ? errors : hosted.errors
    const fail = (error: unknown): void => void sendError(error, asked, answered, () => {})
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
    if (shown === undefined) {
      // Overlay clients that have our address with a slash at its end put a second one before the path.
      if (asked.url.startsWith('//')) asked.originalUrl = asked.url = asked.url.replace(/^\/+/, '/')
      ask(gate, () => ask(answer, () => express(asked, answered)))
      return
    }
    toOriginForm(asked)
    answered.locals.host = shown.host
    ask(hosted.gate, () => hosted.answer(shown, asked, answered, fail))
  }
  return Object.assign(app, { express, ...(transfers && { transfers }) })
}

/** The methods of all routes. */
export const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST'])

/**
 * Answers reads from memory, and creates content that is not there: Express would take a tenth of the time to find that route. Leaves
 * everything else to Express.
 */
export function readsAhead(
  handlers: Record<'stored' | 'content' | 'refuse', RequestHandler>,
): RequestHandler {
  const { stored, content, refuse } = handlers
  return (request, response, next) => {
    const { method, path } = request
    if (method === 'POST' || isAdmin(path)) next()
    else if (!METHODS.has(method)) refuse(request, response, next)
    else
      stored(request, response, (error) => {
        if (error !== undefined || !CONTENT_PATH.test(request.path)) next(error)
        else content(request, response, next)
      })
  }
}

/** A path that has no route. */
const NOWHERE = '/-'

/** A request and its response as Express would pass them to its first handler. */
function adopted(
  express: Express,
  plain: IncomingMessage,
  plainResponse: ServerResponse,
): [request: Request, response: Response] {
  const request = withPrototype(plain, express.request)
  const response = withPrototype(plainResponse, express.response)
  response.locals = {}
  request.baseUrl = ''
  request.originalUrl = request.url
  // Express has no handler for a target without a path (`http://[/`, `http://`), so it gets one without a route.
  if (!request.url.startsWith('/') && !isParsable(request)) request.url = NOWHERE
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
