import { attachGateway as attach } from './attach-gateway.js'
import type { GatewayApp, GatewayOptions, GatewayStores } from './gateway-options.js'

export { attachSync } from './attach-sync.js'
export type { GatewayApp, GatewayOptions, GatewayStores } from './gateway-options.js'
export type { GatewayLimits } from './http/gateway-parts.js'

/** For hosts: adds the routes over the graph to an Express app of their own. Its type names nothing from Express. */
export const attachGateway: (app: GatewayApp, stores: GatewayStores, options?: GatewayOptions) => void =
  attach
