import type { Express, Request } from 'express'
import { AnswerError, methodNotAllowed } from '../../gateway/http/errors.js'

/** The part of an Express 5 router's layer that is read here. Router 2.2 leaves the matched part of a path in `path`. */
interface Layer {
  match(path: string): boolean | { path: string }
  path?: string
  route?: { methods: Record<string, boolean> }
  handle: { stack?: Layer[] }
}

/** The error for a request that no route has answered: its path has routes for other methods, or none at all. */
export function refusalOf(app: Express, request: Request): AnswerError {
  const { method, baseUrl, path } = request
  const { stack } = app.router as unknown as { stack: Layer[] }
  const allowed = allowedMethods(stack, baseUrl + path)
  if (allowed.has('GET')) allowed.add('HEAD')
  if (allowed.size === 0 || allowed.has(method))
    return new AnswerError('NOT_FOUND', 'there is no route for this path')
  return methodNotAllowed(method, [...allowed].sort())
}

function allowedMethods(stack: Layer[], path: string): Set<string> {
  const methods = new Set<string>()
  for (const layer of stack) {
    const matched = matchedPart(layer, path)
    if (matched === undefined) continue
    const { route, handle } = layer
    for (const method of Object.keys(route?.methods ?? {})) methods.add(method.toUpperCase())
    const below = path.slice(matched.length)
    const inner = allowedMethods(handle.stack ?? [], below.startsWith('/') ? below : `/${below}`)
    for (const method of inner) methods.add(method)
  }
  return methods
}

function matchedPart(layer: Layer, path: string): string | undefined {
  try {
    const match = layer.match(path)
    if (match === false) return undefined
    return match === true ? (layer.path ?? '') : match.path
  } catch {
    // A broken escape.
    return undefined
  }
}
