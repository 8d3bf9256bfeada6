import { createHash } from 'node:crypto'
import { errorTitle, escaped, sentence } from '../../explorer/text.js'
import type { ErrorPage } from '../http/error-response.js'

/** The parts of the explorer's style that an error page needs. */
const STYLE = `:root{color-scheme:light dark;--ink:light-dark(#1b1d1a,#e9ece7);--soft:light-dark(#5a6058,#9fa89f);--leaf:light-dark(#1f6b45,#7fd0a3)}
body{box-sizing:border-box;min-height:100vh;margin:0;padding:24px;display:grid;place-content:center;background:light-dark(#fbfaf7,#121512);color:var(--ink);font:1.05rem/1.55 Inter,ui-sans-serif,system-ui,sans-serif}
main{width:min(36rem,calc(100vw - 48px))}
svg{display:block;margin:0 0 28px -10px;fill:var(--leaf);stroke:var(--leaf);stroke-linecap:round}
path{fill:none}.leaf{fill:none;stroke-width:.5}
h1{margin:0 0 12px;font-size:2rem;line-height:1.15;letter-spacing:-.02em}
p{margin:0 0 18px;overflow-wrap:anywhere}
code{padding:2px 6px;border-radius:6px;background:light-dark(#f0f2ec,#1f251f);font:.86em ui-monospace,Menlo,Consolas,monospace}
.button{display:inline-block;padding:10px 20px;border-radius:99px;background:var(--leaf);color:light-dark(#fff,#0d1a13);font-weight:600;text-decoration:none}
.button:focus-visible{outline:2px solid var(--ink);outline-offset:3px}
.status{margin:0 0 8px;color:var(--soft);font:600 .85rem ui-monospace,Menlo,Consolas,monospace}`

/** Nothing runs or is loaded, and only this style applies. Framing stays allowed to all pages that may frame the site. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`

const MARK = `<svg width="110" height="110" viewBox="0 0 26 28" aria-hidden="true" focusable="false"><path d="M13 25V14M13 14 6 8M13 14l7-6M6 8V4" stroke-width="1.2"/><circle cx="13" cy="14" r="1.6"/><circle cx="6" cy="8" r="1.4"/><circle cx="13" cy="25" r="1.5"/><circle class="leaf" cx="20.4" cy="24.6" r="1.4"/></svg>`

/** An error as a page. It has the origin of the host's content, so it contains nothing that could harm that. */
export const errorPage: ErrorPage = async ({ code, message, data, status }) => {
  const { mine, name } = data ?? {}
  const isFree = typeof mine === 'string' && typeof name === 'string'
  const title = isFree ? `Nobody has mined ${name}.` : errorTitle({ code, status })
  const said = isFree ? howToMine({ name, mine }) : `<p>${escaped(sentence(message))}</p>`
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
<main>
${MARK}
<p class="status">${status} ${escaped(code)}</p>
<h1>${escaped(title)}</h1>
${said}
</main>
</html>
`
  return { html, headers: { 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff' } }
}

function howToMine({ name, mine }: { name: string; mine: string }): string {
  const service = mine.replace(/\/mine\?.*$/, '')
  return `<p>It will belong to whoever first finds a proof of work for each of its characters.</p>
<p><a class="button" href="${escaped(mine)}">Mine it in the browser</a></p>
<p>Or in a terminal: <code>npx minetree mine ${escaped(name)} --url ${escaped(service)}</code></p>`
}
