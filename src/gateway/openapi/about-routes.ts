import { type RequestHandler, Router } from 'express'
import { z } from 'zod'
import type { ApiView } from '../../explorer/index.js'
import { CACHE } from '../http/caching.js'
import { below, type Capability, described, type RouteGroup, type Routes } from '../http/operation.js'
import { HTML_TYPE } from '../http/send-body.js'
import { jsonResponse, type StoredResponse, sendStored, textResponse } from '../http/stored-response.js'
import type { RenderPage } from '../pages/send-page.js'
import { type PageHosts, pageHeaders } from '../pages/send-page.js'
import { type DocumentOptions, openapiDocument } from './document.js'

interface Pages {
  render: RenderPage
  hostsOf: PageHosts
}

/**
 * Routes that describe a host's routes: `/capabilities`, `/openapi.json` and, if the host has pages, `/api`.
 *
 * @param options.groups All other routes of the host.
 */
export function aboutRoutes({
  groups,
  walletPrefixes,
  pages,
  ...options
}: Omit<DocumentOptions, 'groups'> & {
  groups: readonly RouteGroup[]
  walletPrefixes: readonly string[]
  pages: Pages | undefined
}): RouteGroup[] {
  // Made on first use: it never changes, but takes some dozens of milliseconds, too long for a start.
  let known: ApiView | undefined
  const document = (): ApiView => {
    known ??= openapiDocument({ ...options, groups: [...groups, ...about] })
    return known
  }
  const about: RouteGroup[] = [
    below(['', ...walletPrefixes], capabilitiesRoutes(groups)),
    below([''], openapiRoutes(document)),
  ]
  if (pages) about.push({ needs: 'reads', prefixes: [''], operations: [], handler: apiPage(document, pages) })
  return about
}

function openapiRoutes(document: () => object): Routes {
  let written: StoredResponse | undefined
  const openapi: RequestHandler = async (request, response) => {
    written ??= jsonResponse(document()).compress()
    await sendStored({ request, response, stored: written })
  }
  return ofDocument({ openapi })
}

function apiPage(document: () => ApiView, { render, hostsOf }: Pages): Router {
  const headers = pageHeaders(hostsOf)
  let page: StoredResponse | undefined
  return Router().get('/api', async (request, response) => {
    page ??= textResponse(await render(({ apiPage, site }) => apiPage({ site, api: document() })), {
      ...{ headers, type: HTML_TYPE, dependsOn: [] },
    }).compress()
    await sendStored({ request, response, stored: page })
  })
}

/** The capabilities of a host that has all, in order. */
const CAPABILITIES = ['beef', 'txo', 'overlay', 'ordfs', 'image'] as const satisfies readonly Capability[]

/** `GET /capabilities`: the groups of wallet routes that this host has. */
function capabilitiesRoutes(groups: readonly RouteGroup[]): Routes {
  const capabilities = CAPABILITIES.filter((name) => groups.some(({ capability }) => capability === name))
  return ofCapabilities({
    capabilities: (_request, response) => response.set('Cache-Control', CACHE.revalidate).json(capabilities),
  })
}

const ofCapabilities = described({
  tag: 'transactions',
  operations: {
    capabilities: {
      route: 'GET /capabilities',
      summary: 'The groups of wallet routes that this host has',
      description:
        'Groups that need an index of the whole chain, such as `owner` and `arcade`, are not included.',
      answer: { description: 'The names of the groups.', json: z.array(z.enum(CAPABILITIES)) },
    },
  },
})

const ofDocument = described({
  tag: 'health',
  operations: {
    openapi: {
      route: 'GET /openapi.json',
      summary: 'The OpenAPI document',
      answer: { description: 'An OpenAPI 3.1 document.', headers: ['ETag'], json: z.looseObject({}) },
    },
  },
})
