/** For hosts: the routes over the graph, on an Express app of their own. */
export {
  attachGateway,
  type GatewayApp,
  type GatewayOptions,
  type GatewayStores,
} from './attach-gateway.js'
export { attachSync } from './attach-sync.js'
export type { GatewayLimits } from './gateway-limits.js'
