import { Router } from 'express'
import { z } from 'zod'
import type { ApiView } from '../../explorer/index.js'
import { CACHE } from '../http/caching.js'
import type { OperationGroup } from '../http/operation.js'
import type { RouteGroup } from '../http/route-group.js'
import { HTML_TYPE } from '../http/send-body.js'
import { jsonResponse, type StoredResponse, sendStored, textResponse } from '../http/stored-response.js'
import { type PageHosts, pageHeaders } from '../pages/page-headers.js'
import type { RenderPage } from '../pages/send-page.js'
import { capabilitiesRoutes } from '../wallets/capabilities-routes.js'
import { type DocumentOptions, openapiDocument } from './document.js'

interface Pages {
  render: RenderPage
  hostsOf: PageHosts
}

/**
 * What says which routes a host has: `/capabilities`, `/openapi.json` and, of a host with pages, `/api`.
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
  // It never changes, and takes some dozens of milliseconds: longer than a start should.
  let known: ApiView | undefined
  const document = (): ApiView => {
    known ??= openapiDocument({ ...options, groups: [...groups, ...about] })
    return known
  }
  const about: RouteGroup[] = [
    capabilitiesRoutes(walletPrefixes, groups),
    {
      needs: 'reads',
      prefixes: [''],
      operations: [OPENAPI_OPERATIONS],
      handler: openapiRoutes(document),
    },
  ]
  if (pages) about.push({ needs: 'reads', prefixes: [''], operations: [], handler: apiPage(document, pages) })
  return about
}

function openapiRoutes(document: () => object): Router {
  let written: StoredResponse | undefined
  return Router().get('/openapi.json', async (request, response) => {
    written ??= jsonResponse(document(), {
      cache: CACHE.revalidate,
      isTagged: true,
      dependsOn: [],
    }).compress()
    await sendStored({ request, response, stored: written })
  })
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

const OPENAPI_OPERATIONS: OperationGroup = {
  tag: 'health',
  operations: {
    openapi: {
      route: 'GET /openapi.json',
      summary: 'This document',
      answer: { description: 'An OpenAPI 3.1 document.', headers: ['ETag'], json: z.looseObject({}) },
    },
  },
}
