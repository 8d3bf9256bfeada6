import { Router } from 'express'
import { z } from 'zod'
import { CACHE } from '../http/caching.js'
import type { OperationGroup } from '../http/operation.js'
import type { Capability, RouteGroup } from '../http/route-group.js'

/** Those of a host that has all, in their order. */
const CAPABILITIES = ['beef', 'txo', 'overlay', 'ordfs', 'image'] as const satisfies readonly Capability[]

/** `GET /capabilities`, at the root and below each of the prefixes: the groups of wallet routes that this host has. */
export function capabilitiesRoutes(prefixes: readonly string[], groups: readonly RouteGroup[]): RouteGroup {
  const capabilities = CAPABILITIES.filter((name) => groups.some(({ capability }) => capability === name))
  const routes = Router().get('/capabilities', (_request, response) => {
    response.set('Cache-Control', CACHE.revalidate).json(capabilities)
  })
  return {
    needs: 'reads',
    prefixes: ['', ...prefixes],
    operations: [CAPABILITIES_OPERATIONS],
    handler: Router()
      .use([...prefixes], routes)
      .use(routes),
  }
}

const CAPABILITIES_OPERATIONS: OperationGroup = {
  tag: 'transactions',
  operations: {
    capabilities: {
      route: 'GET /capabilities',
      summary: 'Which groups of routes for wallets this host has',
      description: 'What needs an index of the whole chain, such as `owner` and `arcade`, is not among them.',
      answer: { description: 'Their names.', json: z.array(z.enum(CAPABILITIES)) },
    },
  },
}
