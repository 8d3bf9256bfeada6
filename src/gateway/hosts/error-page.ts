import { createHash } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { ErrorPage } from '../http/error-response.js'

const STYLE = `:root{color-scheme:light dark}
body{font:1.05rem/1.6 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.25rem}
h1{font-size:1.3rem}p{overflow-wrap:anywhere}small{opacity:.7}`

/** Nothing runs in it, nothing is loaded, and only its own style counts. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'`

/** An error as a page. It belongs to the origin of whatever the host shows, and has nothing in it that could harm that. */
export const errorPage: ErrorPage = async ({ code, message, data, status }) => {
  const { mine } = data ?? {}
  const link =
    typeof mine === 'string' ? `\n<p><a href="${escaped(mine)}">Mine it in the browser</a></p>` : ''
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(STATUS_CODES[status] ?? code)}</title>
<style>${STYLE}</style>
<h1>${escaped(STATUS_CODES[status] ?? code)}</h1>
<p>${escaped(message)}</p>${link}
<p><small>${status} ${escaped(code)}</small></p>
</html>
`
  return { html, headers: { 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff' } }
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
