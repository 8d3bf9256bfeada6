import type { RequestListener } from 'node:http'
import type { Express } from 'express'

/**
 * Hands each request to the app. Express leads a request whose target it cannot read (as `http://[/`) past all routes,
 * to an error page of its own: here it comes to the app once more, with a target that no route answers to.
 */
export function listenerOf(app: Express): RequestListener {
  const asked = app as (...asked: [...Parameters<RequestListener>, otherwise?: () => void]) => void
  return (request, response) => {
    asked(request, response, () => {
      request.url = '/'
      asked(request, response)
    })
  }
}
