import type { Express } from 'express'

/** The part of an Express 5 router layer that is read here; `rawPath` is the path as it was given (router 2.3). */
interface Layer {
  rawPath: unknown
  route?: { methods: Record<string, boolean> }
  handle: { name: string; length: number; stack?: Layer[] }
}

type Path = string | RegExp

export interface ServedRoute {
  /** In upper case. */
  method: string
  /** Where the router that has the route is mounted. */
  prefix: string
  path: Path
}

export interface ServedRoutes {
  routes: ServedRoute[]
  /** Handlers that are neither routes nor error handlers: any of them may answer. */
  handlers: { name: string; prefix: string }[]
}

/** Finds everything that may answer a request, by walking the layers of an app. */
export function routesOf(app: Express): ServedRoutes {
  const found: ServedRoutes = { routes: [], handlers: [] }
  walk(app.router as unknown as { stack: Layer[] }, '', found)
  return found
}

function walk({ stack }: { stack: Layer[] }, prefix: string, found: ServedRoutes): void {
  for (const { rawPath, route, handle } of stack) {
    for (const path of pathsOf(rawPath)) {
      if (route !== undefined) {
        for (const method of Object.keys(route.methods))
          found.routes.push({ method: method.toUpperCase(), prefix, path })
        continue
      }
      if (path instanceof RegExp) throw new Error(`${path}: no router can be mounted there and be described`)
      const below = prefix + (path === '/' ? '' : path)
      if (handle.stack !== undefined) walk({ stack: handle.stack }, below, found)
      else if (handle.length !== 4) found.handlers.push({ name: handle.name, prefix: below })
    }
  }
}

function pathsOf(rawPath: unknown): Path[] {
  const paths = Array.isArray(rawPath) ? rawPath : [rawPath]
  if (paths.every((path) => typeof path === 'string' || path instanceof RegExp)) return paths
  throw new Error(`Express keeps its paths elsewhere now: ${String(rawPath)}`)
}
