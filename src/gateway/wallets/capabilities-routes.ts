import { Router } from 'express'
import { z } from 'zod'
import type { Profile } from '../../../backend/src/protocol/profile.js'
import { CACHE } from '../http/caching.js'
import type { OperationGroup } from '../http/operation.js'

/** Of those that `@1sat/types` lists, the ones that follow from the admitted graph. */
const CAPABILITIES = ['beef', 'txo', 'overlay', 'ordfs'] as const

/** `GET /capabilities`, at the root and below each of the prefixes: the groups of wallet routes that this host has. */
export function capabilitiesRoutes({ walletPrefixes, gatewayPrefixes }: Profile): Router {
  const [prefix = ''] = walletPrefixes
  const hasOrdfs = gatewayPrefixes.includes(`${prefix}/ordfs`)
  const capabilities = CAPABILITIES.filter((name) => name !== 'ordfs' || hasOrdfs)
  const routes = Router().get('/capabilities', (_request, response) => {
    response.set('Cache-Control', CACHE.revalidate).json(capabilities)
  })
  return Router().use(walletPrefixes, routes).use(routes)
}

export const CAPABILITIES_OPERATIONS: OperationGroup = {
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
