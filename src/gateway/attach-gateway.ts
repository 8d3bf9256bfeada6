import { type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import { CONTENT_PATH } from './content/content.js'
import { type Gateway, openGateway } from './gateway.js'
import type { GatewayApp, GatewayOptions, GatewayStores } from './gateway-options.js'
import { toOriginForm } from './hosts/host-content.js'
import { allowedMethods, refusingOthers } from './http/allowed-methods.js'
import { mounted, type OperationGroup, type RouteGroup } from './http/operation.js'
import { crossOrigin, isPreflight } from './http/security-headers.js'
import { aboutRoutes } from './openapi/about-routes.js'
import { openPageFiles } from './pages/page-files.js'

/**
 * Adds everything that only reads the graph to an Express app (`docs/plugin.md`): content; below the profile's prefixes, names,
 * streams, metadata, previews, provenance, and what wallets request by txid and outpoint; `/deployment.json` and `/openapi.json`;
 * optionally the explorer, and hosts as sites. `docs/spec/http.md` specifies them for every host. Other paths are passed on, so call
 * this before the app's 404 handler, which OverlayExpress adds in `start`.
 *
 * Call it before body parsers too: these routes read bodies themselves, each up to its own limit, and accept a parsed body only if it
 * was parsed as JSON.
 *
 * Errors of these routes have the gateway's shape, `{"error","code"}`; other errors of the app are left alone. There are no limits
 * per client: a public host puts its own before these routes.
 *
 * The app may be of Express 4, like that of OverlayExpress 0.8: the one handler directly on it passes on its errors itself, and all
 * others are in a router of this package's own Express.
 *
 * @throws TypeError if the path does not begin with a slash, or ends with one; an error of the file system if the explorer is wanted
 * but the package was not built.
 */
export function attachGateway(app: GatewayApp, stores: GatewayStores, options: GatewayOptions = {}): void {
  const { path = '', profile = PROFILES.mainnet, overlay = true, explorer = false } = options
  if (!PATH.test(path)) throw new TypeError(`path must look like /minetree, and is ${JSON.stringify(path)}`)
  const pageFiles = explorer ? openPageFiles(explorer === true ? PAGES : explorer.files) : undefined
  const gateway = openGateway(stores, { ...options, pageFiles })
  const cors = options.crossOrigin === false ? undefined : crossOrigin()
  const { sites } = gateway
  if (sites.hosts.isNeeded) app.use(siteHandler(sites, [...(cors ? [cors] : []), ...gateway.opened]))
  const prefixes = profile.walletPrefixes.map((prefix) => `${prefix}/overlay`)
  const further = overlay
    ? [
        overlayPathGroup([...prefixes, ...(path === '' ? [] : [''])], {
          lookups: stores.lookupServices === undefined,
        }),
      ]
    : []
  const groups = [...gateway.groups, ...further]
  const all = [
    ...groups,
    ...aboutRoutes({
      ...{ groups, path, isServer: false, hasCors: cors !== undefined },
      walletPrefixes: profile.walletPrefixes,
      pages: explorer ? gateway : undefined,
    }),
  ]
  const below = path === '' ? app : Router()
  mountGateway(below, { gateway, groups: all, cors, refuse: refusingMethods(all) })
  if (below !== app) app.use(Router().use(path, below as Router))
  // On the app itself, since these lead to paths of the host.
  const passed = prefixes.map((prefix) => [path + prefix, path] as const)
  if (path !== '') passed.push([path, ''])
  if (overlay) app.use(overlayPaths(passed, app as unknown as RequestHandler))
}

/** The content paths in the form that `use` needs: the whole path. */
const CONTENT = /^\/content\/.+/
const READING = new Set(['GET', 'HEAD'])
const ROUTED = new Set(['GET', 'HEAD', 'POST'])

/** Excludes `/.` and `/..`, which clients resolve. */
const PATH = /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)*$/
const PAGES = new URL('../../pages/', import.meta.url)

/** Mounts the routes of a gateway and others of its host. If CORS headers are set, their preflights are answered. */
export function mountGateway(
  app: GatewayApp,
  {
    gateway: { groups: reading, content, opened, errors },
    groups,
    cors,
    refuse,
  }: {
    gateway: Gateway
    groups: readonly RouteGroup[]
    cors?: RequestHandler | undefined
    /** Refuses methods that a path does not have, if nothing after these routes does. */
    refuse?: RequestHandler
  },
): void {
  const origins = cors === undefined ? [] : [cors]
  for (const handler of origins) app.options(CONTENT_PATH, handler)
  // Directly on the app: a router of its own takes time that `npm run bench gateway` shows.
  app.get(CONTENT_PATH, ...origins, ...opened, content, errors)
  const routes = Router()
  for (const handler of origins) routes.use([CONTENT, ...groups.flatMap(pathsOf)], handler)
  // Routes that a host's engine may answer itself do not wait for the store.
  const below = reading
    .filter(({ capability }) => capability !== 'overlay')
    .flatMap(({ prefixes }) => prefixes.filter((prefix) => prefix !== ''))
  for (const handler of opened) routes.use(below, handler)
  if (refuse !== undefined)
    // Before the routes, as Express answers OPTIONS by itself.
    routes.use((request, response, next) => {
      if (ROUTED.has(request.method)) next()
      // The host sends CORS headers itself, perhaps after these routes.
      else if (cors === undefined && isPreflight(request)) next('router')
      else refuse(request, response, next)
    })
  mounted(groups, routes)
  if (refuse !== undefined) routes.use(refuse)
  app.use(routes.use(errors))
}

/** Refuses other methods, except on pages of the explorer and paths of the engine, for which the host may have some. */
function refusingMethods(groups: readonly RouteGroup[]): RequestHandler {
  const routes = mounted(
    groups.filter(({ operations, capability }) => operations.length > 0 && capability !== 'overlay'),
  )
  return refusingOthers(({ path }) =>
    CONTENT_PATH.test(path) ? READING : allowedMethods([routes as never], path),
  )
}

/** The paths of a group whose answers pages of other origins may read; at the root, only those without parameters. */
function pathsOf({ prefixes, operations }: RouteGroup): string[] {
  const atRoot = operations.flatMap((each) => Object.values(each.operations).map(({ route }) => route))
  return prefixes.flatMap((prefix) =>
    prefix === ''
      ? atRoot.map((route) => route.replace(/^\w+ /, '')).filter((path) => !path.includes('{'))
      : [prefix],
  )
}

/** Answers requests on hosts that show content, and passes on all others, which are the host's own. */
function siteHandler(
  { hosts, answer, errors }: NonNullable<Gateway['sites']>,
  before: RequestHandler[],
): RequestHandler {
  return (request, response, next) => {
    const shown = request.baseUrl === '' ? hosts.read(request) : undefined
    if (shown === undefined) {
      next()
      return
    }
    toOriginForm(request)
    const fail = (error: unknown): void => void errors(error, request, response, next)
    const proceed = (at: number): void => {
      const handler = before[at]
      if (handler === undefined) answer(shown, request, response, fail)
      else
        handler(request, response, (error?: unknown) => (error === undefined ? proceed(at + 1) : fail(error)))
    }
    proceed(0)
  }
}

/** The paths that wallets use below their prefixes, and that a host with an engine has at its root. */
const PATHS = new Set(['/submit', '/lookup'])

/**
 * Lets an engine's host answer requests that wallets send below the prefixes, with the topics converted to its form: wallets join
 * their names by commas. The request passes through the whole app again, as guards of the host's paths may come before the gateway.
 *
 * @param prefixes Such as `/1sat/overlay`, each with its replacement.
 */
export function overlayPaths(
  prefixes: readonly (readonly [from: string, to: string])[],
  app: RequestHandler,
): RequestHandler {
  return (request, response, next) => {
    const [from, to] = prefixes.find(([each]) => request.url.startsWith(`${each}/`)) ?? ['', '']
    const path = from === '' ? '' : request.path.slice(from.length)
    if (PATHS.has(path)) {
      request.url = to + path
      const topics = request.headers['x-topics']
      if (typeof topics === 'string' && !topics.trimStart().startsWith('['))
        request.headers['x-topics'] = JSON.stringify(topics.split(',').map((topic) => topic.trim()))
      app(request, response, next)
      return
    }
    next()
  }
}

function overlayPathGroup(
  prefixes: readonly string[],
  { lookups = true }: { lookups?: boolean },
): RouteGroup {
  const { submit, lookup } = OPERATIONS
  const operations: OperationGroup = { tag: 'overlay', operations: { submit, ...(lookups && { lookup }) } }
  return { needs: 'writer', prefixes, operations: [operations], capability: 'overlay' }
}

const OPERATIONS = {
  submit: {
    route: 'POST /submit',
    summary: 'Submits a transaction to topics',
    description: 'Same as `POST /submit` on this host.',
    headers: z.object({
      'X-Topics': z.string().describe('Topics, as a JSON array or a comma-separated list.'),
    }),
    body: {
      description: 'A BEEF whose last transaction is the submitted one.',
      types: ['application/octet-stream'],
    },
    answer: { description: 'The outputs that each topic admitted.', json: z.looseObject({}) },
  },
  lookup: {
    route: 'POST /lookup',
    summary: 'Queries a lookup service',
    description: 'Same as `POST /lookup` on this host.',
    body: { description: 'A lookup service and a query.', json: z.looseObject({}) },
    answer: { description: 'The matching outputs.', json: z.looseObject({}) },
  },
} satisfies OperationGroup['operations']
