import type { Request, Response } from 'express'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Site } from '../../explorer/index.js'
import { endedByPrecondition, entityTag } from '../../gateway/http/caching.js'
import type { ErrorPage } from '../../gateway/http/error-response.js'
import { type HeaderFor, HTML_TYPE, setHeaders } from '../../gateway/http/send-body.js'
import type { TreeProgress } from '../../gateway/http/tree-progress.js'
import type { Config } from '../config/config.js'
import { packageVersion } from '../config/package-info.js'
import { type PageHosts, pageHeaders } from './page-headers.js'

// Loaded with the first page: a start needs none.
export const loadExplorer = () => import('../../explorer/index.js')

type Explorer = Awaited<ReturnType<typeof loadExplorer>>

/** Renders a page of the explorer. */
export type RenderPage = (render: (explorer: Explorer & { site: Site }) => string) => Promise<string>

/**
 * What the pages say of a host.
 *
 * @param options.port Where it listens, once it does: the system chooses a port in place of 0. By default, where the settings say.
 */
export function siteOf(
  config: Config,
  options: { progress: TreeProgress; port?: (() => number | undefined) | undefined },
): Site {
  const { progress, port = () => config.port || undefined } = options
  const { profile, network, deployment } = config
  return {
    network: profile.name === 'local' ? 'local' : network,
    genesis: deployment && formatOutpoint(deployment.genesis),
    get gatewayHost() {
      return gatewayAuthority(config, port())
    },
    get catchingUp() {
      return progress.isCatchingUp ? progress.progress() : undefined
    },
    namesPrefix: profile.namesPrefixes[0] ?? '',
    gatewayPrefix: profile.gatewayPrefixes[0] ?? '',
    version: packageVersion(),
  }
}

/** The zone of names as hosts with the port that clients use; undefined if that is not known. */
function gatewayAuthority(
  { gatewayHost, hostingUrl }: Config,
  listened: number | undefined,
): string | undefined {
  if (gatewayHost === undefined) return undefined
  const port = hostingUrl === undefined ? listened : new URL(hostingUrl).port
  if (port === undefined) return undefined
  return port === '' ? gatewayHost : `${gatewayHost}:${port}`
}

export function pageRenderer(site: Site, progress: TreeProgress): RenderPage {
  return async (render) => {
    const explorer = await loadExplorer()
    return explorer.withAsOf(render({ ...explorer, site }), progress.asOf)
  }
}

/** Errors as pages of the explorer. */
export function errorPages(render: RenderPage, hostsOf: PageHosts): ErrorPage {
  const headers = { ...pageHeaders(hostsOf, { isFramed: true }), 'Cache-Control': 'no-store' }
  return async (error) => ({
    headers,
    html: await render(({ errorPage, site }) => errorPage({ site, error })),
  })
}

/**
 * Sends a page that was made for this request. Preconditions are for what there is (RFC 9110 13.2.1): a page that says that there
 * is nothing has no entity tag.
 */
export function sendPage({
  request,
  response,
  html,
  headers,
}: {
  request: Request
  response: Response
  html: string
  headers: Readonly<Record<string, HeaderFor[1]>>
}): void {
  const body = Buffer.from(html, 'utf8')
  setHeaders({ request, response, headers: Object.entries(headers) })
  if (response.statusCode === 200) {
    const tag = entityTag(sha256(body).toString('hex'), HTML_TYPE)
    response.setHeader('ETag', tag)
    if (endedByPrecondition({ request, response, tag })) return
  }
  response.setHeader('Content-Type', HTML_TYPE)
  response.setHeader('Content-Length', body.length)
  response.end(body)
}
