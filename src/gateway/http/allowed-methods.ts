import type { Request, RequestHandler } from 'express'
import { methodNotAllowed } from './errors.js'

/** The part of an Express 5 router that is read here. Router 2.2 stores the matched part of a path in the `path` of a layer. */
interface RouterStack {
  stack?: Layer[]
}

interface Layer {
  match(path: string): boolean | { path: string }
  path?: string
  route?: { methods: Record<string, boolean> }
  handle: RouterStack
}

/** The methods that routers have for a path; none if they do not have the path. */
export function allowedMethods(routers: readonly RouterStack[], path: string): Set<string> {
  const methods = routers.flatMap(({ stack = [] }) =>
    stack.flatMap((layer) => {
      const matched = matchedPart(layer, path)
      if (matched === undefined) return []
      const below = path.slice(matched.length)
      const inner = allowedMethods([layer.handle], below.startsWith('/') ? below : `/${below}`)
      return [...Object.keys(layer.route?.methods ?? {}).map((method) => method.toUpperCase()), ...inner]
    }),
  )
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
}

/**
 * Refuses methods that a path does not have, and passes on everything else, including unknown paths.
 *
 * @param methodsOf The methods for the path of a request; none if there is no such path.
 */
export function refusingOthers(methodsOf: (request: Request) => Set<string>): RequestHandler {
  return (request, _response, next) => {
    const { method } = request
    const allowed = methodsOf(request)
    if (allowed.size === 0 || allowed.has(method)) next()
    else next(methodNotAllowed(method, [...allowed].sort()))
  }
}

function matchedPart(layer: Layer, path: string): string | undefined {
  try {
    const match = layer.match(path)
    if (match === false) return undefined
    return match === true ? (layer.path ?? '') : match.path
  } catch {
    // The path has a broken escape.
    return undefined
  }
}
