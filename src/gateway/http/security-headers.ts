import type { Response } from 'express'

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

/** The `Content-Security-Policy` of what a browser would run, with the directives that an operator adds, in one header. */
export function sandboxPolicy(additions?: string): string {
  return additions === undefined ? SANDBOX : `${SANDBOX}; ${additions}`
}

/**
 * Content is a stranger's: it is never sniffed into another type, any site may embed it, and what a browser
 * would run runs in an origin of its own (`spec/http.md`, Content).
 */
export function setSecurityHeaders(
  response: Response,
  type: { active: false } | { active: boolean; policy: string },
): void {
  response.setHeader('X-Content-Type-Options', 'nosniff')
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin')
  if (type.active) response.setHeader('Content-Security-Policy', type.policy)
}
