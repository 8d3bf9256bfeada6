import type { DeploymentTerms } from '../../backend/src/protocol/mint.js'
import type { ProfileName } from '../../backend/src/protocol/profile.js'
import type { VerificationStep } from './verified-error.js'
import type { TipPolicy } from './verified-fetch.js'
import type { Verification } from './verified-response.js'

/** What a site shows, and which servers it asks. All of it is JSON: the worker reads it in the host's page. */
export interface SiteConfig {
  /** A name or an outpoint, with a sequence if it has one. */
  site: string
  /** URLs of gateways, none of which is trusted. */
  gateways: string[]
  /** `mainnet` by default. */
  profile?: ProfileName
  /** The tree, if it is not that of the profile. */
  tree?: { genesis: string; nameMarker?: string; nameTld?: string } & Partial<
    Pick<DeploymentTerms, 'covenantVersion' | 'difficulty'>
  >
  /** Sources of block headers, not trusted either; `none` for a network without blocks. */
  headers:
    | { sources: string[]; checkpoint?: { height: number; hash: string }; network?: 'main' | 'test' }
    | 'none'
  tipPolicy?: TipPolicy
  requireProofs?: boolean
}

/** The page's question to the worker, before it loads anything from it. */
export interface SiteQuestion {
  kind: 'verify'
  /** Path and query. */
  path: string
}

/** The worker's answer. */
export type SiteVerdict =
  | ({ kind: 'verified'; status: number } & Pick<Verification, 'verified' | 'tip'>)
  | { kind: 'failed'; message: string; code?: string; step?: VerificationStep }

/** The paths at which the page expects its scripts. */
export const SITE_SCRIPTS = { page: '/verified-site.js', worker: '/verified-worker.js' } as const

/**
 * The page that a browser gets before there is a worker, for every path of the origin: it starts the worker, has it verify the
 * request, and only then loads the content. Serve this page and the two scripts of {@link SITE_SCRIPTS} from a host that you
 * trust: everything else may come from anybody.
 */
export function verifiedSitePage(config: SiteConfig): string {
  return textPage(
    config.site,
    `<main id="status" role="status">Verifying ${escaped(config.site)} …</main>${configElement(config)}<script type="module" src="${SITE_SCRIPTS.page}"></script>`,
  )
}

function configElement(config: SiteConfig): string {
  const json = JSON.stringify(config).replace(/</g, '\\u003c')
  return `<script type="application/json" id="site">${json}</script>`
}

/** The configuration in a page that {@link verifiedSitePage} made. @throws TypeError if it has none. */
export function siteConfigIn(page: string): SiteConfig {
  const [, json = ''] = /<script type="application\/json" id="site">([^<]*)<\/script>/.exec(page) ?? []
  try {
    const config = JSON.parse(json) as SiteConfig
    if (typeof config.site === 'string' && Array.isArray(config.gateways)) return config
  } catch {
    // No JSON is no configuration.
  }
  throw new TypeError('the page of this host has no site configuration')
}

const SOURCE = /^https?:\/\/[\w.:[\]-]+$/

function requireSource(url: string): void {
  if (SOURCE.test(new URL(url).origin)) return
  throw new TypeError(`not the address of a gateway or of a source of headers: ${JSON.stringify(url)}`)
}

/**
 * The `Content-Security-Policy` for the page and its scripts. A worker keeps the policy of its script while the script stays the
 * same, so the policy does not name the gateways, which may change.
 *
 * @throws TypeError if an address is no URL.
 */
export function verifiedSitePolicy({ gateways, headers }: SiteConfig): string {
  for (const url of [...gateways, ...(headers === 'none' ? [] : headers.sources)]) requireSource(url)
  return [
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "connect-src 'self' http: https:",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

export function textPage(title: string, body: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title><style>body{font:1rem/1.5 system-ui,sans-serif;margin:4rem auto;max-width:40rem;padding:0 1rem;overflow-wrap:anywhere}</style><body>${body}`
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => ESCAPES[sign] ?? sign)
}
