import type { Response } from 'express'
import type { ServedType } from './content-type.js'

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

/**
 * Content is a stranger's: it is never sniffed into another type, any site may embed it, and what a browser
 * would run runs in an origin of its own (`spec/http.md`, Content).
 */
export function setSecurityHeaders(response: Response, type: ServedType): void {
  response.setHeader('X-Content-Type-Options', 'nosniff')
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin')
  if (type.active) response.setHeader('Content-Security-Policy', SANDBOX)
}
