import type { RequestHandler } from 'express'
import { z } from 'zod'
import type { OperationGroup } from '../http/operation.js'
import type { RouteGroup } from '../http/route-group.js'

/** What wallets send below their prefixes, and a host of an engine has at its root. */
const PATHS = new Set(['/submit', '/lookup'])

/**
 * Has the routes of an engine's host answer what wallets send below the prefixes, with the topics in the form that those
 * take: wallets join their names by commas. The request goes through the whole app once more, as what guards a path of the host
 * may stand before the gateway.
 *
 * @param prefixes Such as `/1sat/overlay`, each with what stands for it then.
 */
export function overlayPaths(
  prefixes: readonly (readonly [from: string, to: string])[],
  app: RequestHandler,
): RequestHandler {
  return (request, response, next) => {
    const [from, to] = prefixes.find(([each]) => request.url.startsWith(`${each}/`)) ?? ['', '']
    const path = from === '' ? '' : request.path.slice(from.length)
    if (PATHS.has(path)) {
      request.url = to + path
      const topics = request.headers['x-topics']
      if (typeof topics === 'string' && !topics.trimStart().startsWith('['))
        request.headers['x-topics'] = JSON.stringify(topics.split(',').map((topic) => topic.trim()))
      app(request, response, next)
      return
    }
    next()
  }
}

/** What describes these paths in a host of an engine, which answers them itself: lookups only if `lookups` does not. */
export function overlayPathGroup(
  prefixes: readonly string[],
  { lookups = true }: { lookups?: boolean },
): RouteGroup {
  const { submit, lookup } = OPERATIONS
  const operations: OperationGroup = { tag: 'overlay', operations: { submit, ...(lookups && { lookup }) } }
  return { needs: 'writer', prefixes, operations: [operations], capability: 'overlay' }
}

const OPERATIONS = {
  submit: {
    route: 'POST /submit',
    summary: 'Submits a transaction to topics',
    description: 'As `/submit` of this host, which answers it.',
    headers: z.object({ 'X-Topics': z.string().describe('Topics, as a JSON array or joined by commas.') }),
    body: { description: 'A BEEF that ends with the transaction.', types: ['application/octet-stream'] },
    answer: { description: 'For each topic, which outputs it admitted.', json: z.looseObject({}) },
  },
  lookup: {
    route: 'POST /lookup',
    summary: 'Queries a lookup service',
    description: 'As `/lookup` of this host, which answers it.',
    body: { description: 'A service, and a query.', json: z.looseObject({}) },
    answer: { description: 'The matching outputs.', json: z.looseObject({}) },
  },
} satisfies OperationGroup['operations']
