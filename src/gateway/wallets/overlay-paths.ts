import type { RequestHandler } from 'express'

/** What wallets send below their prefixes, and a host of an engine has at its root. */
const PATHS = new Set(['/submit', '/lookup'])

/**
 * Has the routes of an engine's host answer what wallets send below the prefixes, with the topics in the form that those
 * take: wallets join their names by commas.
 *
 * @param prefixes Such as `/1sat/overlay`.
 */
export function overlayPaths(prefixes: readonly string[]): RequestHandler {
  return (request, _response, next) => {
    const prefix = prefixes.find((each) => request.url.startsWith(`${each}/`))
    const path = prefix === undefined ? '' : request.path.slice(prefix.length)
    if (PATHS.has(path)) {
      request.url = path
      const topics = request.headers['x-topics']
      if (typeof topics === 'string' && !topics.trimStart().startsWith('['))
        request.headers['x-topics'] = JSON.stringify(topics.split(',').map((topic) => topic.trim()))
    }
    next()
  }
}
