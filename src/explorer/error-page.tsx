import type { VNode } from 'preact'
import { renderPage, SearchField, type Site } from './page.js'
import { BLOCK, errorTitle, sentence, shown } from './text.js'

export interface ErrorView {
  status: number
  code: string
  /** A sentence; may quote the request. */
  message: string
  requestId?: string | undefined
}

export function errorPage({ site, error }: { site: Site; error: ErrorView }): string {
  const { status, code, message, requestId } = error
  const title = errorTitle(error)
  return renderPage({
    site,
    title,
    isUnlisted: true,
    isStill: true,
    hasSearch: true,
    children: (
      <div class="hero">
        <div class="stack">
          <p class="hint mono">
            {status} {code}
          </p>
          <h1>{title}</h1>
          <p class="lede">
            <bdi>{sentence(shown(message, BLOCK))}</bdi>
          </p>
          <SearchField site={site} />
          {status >= 500 && requestId !== undefined && (
            <p class="hint">
              If you report this, add the id of the request: <code>{requestId}</code>
            </p>
          )}
        </div>
        <BareTree />
      </div>
    ),
  })
}

/** The logo, large, with a fallen leaf. */
function BareTree(): VNode {
  return (
    <svg class="bough" width="220" height="220" viewBox="0 0 26 28" aria-hidden="true" focusable="false">
      <path d="M13 25V14M13 14 6 8M13 14l7-6M6 8V4" stroke-width="1.2" />
      <circle cx="13" cy="14" r="1.6" />
      <circle cx="6" cy="8" r="1.4" />
      <circle class="pale" cx="20.4" cy="24.6" r="1.4" stroke-width="0.5" />
      <circle cx="13" cy="25" r="1.5" />
    </svg>
  )
}
