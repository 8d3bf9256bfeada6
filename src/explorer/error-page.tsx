import type { VNode } from 'preact'
import { renderPage, SearchField, type Site } from './page.js'
import { BLOCK, shown } from './text.js'

export interface ErrorView {
  status: number
  code: string
  /** A sentence; may quote what was asked. */
  message: string
  requestId?: string | undefined
}

/** What an error means to a reader, by its status. */
const TITLES: Record<number, string> = {
  400: 'This address cannot be right.',
  401: 'This is for the operator.',
  404: 'There is nothing here.',
  409: 'Somebody else was first.',
  412: 'It has changed meanwhile.',
  413: 'This is too much at once.',
  415: 'This cannot be read here.',
  416: 'It is not as long as that.',
  429: 'That was too fast.',
  451: 'The operator has blocked this.',
  500: 'Something broke here.',
  503: 'Not ready yet.',
}

export function errorPage({ site, error }: { site: Site; error: ErrorView }): string {
  const { status, code, message, requestId } = error
  const title = titleOf(error)
  return renderPage({
    site,
    title,
    isUnlisted: true,
    isStill: true,
    hasSearch: true,
    children: (
      <div class="error-page">
        <div>
          <p class="status">
            {status} {code}
          </p>
          <h1>{title}</h1>
          <p class="said">
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

function titleOf({ status, code }: ErrorView): string {
  if (code === 'ORIGIN_PENDING') return 'Its history is being fetched.'
  if (code === 'NOT_CAUGHT_UP') return 'Not known here yet.'
  return TITLES[status] ?? 'This did not work.'
}

/** With a capital, unless it begins with a name, and a full stop. */
function sentence(text: string): string {
  const start = / is not claimed$/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?…]$/.test(start) ? start : `${start}.`
}

/** The mark, large, with a leaf that has fallen. */
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
