import type { Request } from 'express'

/** What no route answers to: whoever asks makes up paths without end, and there is one label for all of them. */
export const NO_ROUTE = 'none'

/**
 * Makes a function that says which route has answered a request, as `/svc/names/origin/:name`. It is never the path that
 * was asked for: there are as many labels as routes, whatever strangers ask.
 *
 * @param prefixes Those that routers are mounted below.
 */
export function routeLabels(prefixes: readonly string[]): (request: Request) => string {
  const longest = Math.max(0, ...prefixes.map(({ length }) => length))
  const isBelow = (path: string, prefix: string): boolean =>
    path.startsWith(prefix) && ['', '/', '?'].includes(path.charAt(prefix.length))
  // As many as there are routes: this is asked for every answer.
  const known = new Map<unknown, string>()
  return ({ route, originalUrl }) => {
    const pattern: unknown = route?.path
    if (pattern === undefined) return NO_ROUTE
    let text = known.get(pattern)
    if (text === undefined) {
      text = written(pattern)
      known.set(pattern, text)
    }
    // Not `baseUrl`: it is written as it was asked for, and after an error it is that of the app.
    const asked = originalUrl.slice(0, longest + 1).toLowerCase()
    const prefix = prefixes.find((each) => isBelow(asked, each)) ?? ''
    return prefix + text
  }
}

/** A pattern for a person to read: of a regular expression, what every match begins with. */
function written(pattern: unknown): string {
  if (!(pattern instanceof RegExp)) return String(pattern)
  const [beginning = ''] = /^(?:\\?[/\w-])*/.exec(pattern.source.replace(/^\^/, '')) ?? []
  return `${beginning.replaceAll('\\', '')}*`
}
