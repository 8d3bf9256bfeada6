import type { Request, Response } from 'express'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { VERSION } from '../../../backend/src/graph/service-metadata.js'
import type { Network } from '../../../backend/src/protocol/address.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Profile } from '../../../backend/src/protocol/profile.js'
import type { Site } from '../../explorer/index.js'
import type { TreeProgress } from '../http/as-of.js'
import { endedByPrecondition, entityTag } from '../http/caching.js'
import type { ErrorPage } from '../http/error-response.js'
import { type HeaderFor, HTML_TYPE, setHeaders } from '../http/send-body.js'
import { type PageHosts, pageHeaders } from './page-headers.js'

// Loaded with the first page: a start needs none.
export const loadExplorer = () => import('../../explorer/index.js')

type Explorer = Awaited<ReturnType<typeof loadExplorer>>

export type RenderPage = (render: (explorer: Explorer & { site: Site }) => string) => Promise<string>

export interface SiteOptions {
  profile: Profile
  network: Network
  deployment: Deployment | undefined
  gatewayHost: string | undefined
  publicUrl: string | undefined
  /** The port that it listens on, where that is known. */
  port?: (() => number | undefined) | undefined
  /** What its paths begin with. */
  path: string
  /** Whether it has a page about its state. */
  hasStatus: boolean
  hasImages: boolean
  progress: TreeProgress
}

export function siteOf(options: SiteOptions): Site {
  const { profile, network, deployment, path, hasStatus, hasImages, progress } = options
  return {
    network: profile.name === 'local' ? 'local' : network,
    genesis: deployment && formatOutpoint(deployment.genesis),
    get gatewayHost() {
      return gatewayAuthority(options)
    },
    get catchingUp() {
      return progress.isCatchingUp ? progress.progress() : undefined
    },
    namesPrefix: profile.namesPrefixes[0] ?? '',
    gatewayPrefix: profile.gatewayPrefixes[0] ?? '',
    version: VERSION,
    ...{ path, hasStatus, hasImages },
  }
}

/** The zone of names as hosts with the port that clients use; undefined if that is not known. */
function gatewayAuthority({ gatewayHost, publicUrl, port: listened }: SiteOptions): string | undefined {
  if (gatewayHost === undefined) return undefined
  const port = publicUrl === undefined ? listened?.() : new URL(publicUrl).port
  if (port === undefined) return undefined
  return port === '' ? gatewayHost : `${gatewayHost}:${port}`
}

export function pageRenderer(site: Site, progress: TreeProgress): RenderPage {
  return async (render) => {
    const explorer = await loadExplorer()
    return explorer.withAsOf(render({ ...explorer, site }), progress.asOf)
  }
}

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
