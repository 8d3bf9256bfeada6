import { fetchBounded, readJson } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import type { Config } from '../server/config/config.js'
import { StartError } from '../server/config/errors.js'
import type { HealthReport } from '../server/routes/health-routes.js'
import { logPlaceIn, shownPlace } from '../server/store/facts/log-place.js'
import { type StoreStatus, storeStatus } from '../server/store/store-status.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'
import { CommandError, usageError } from './command.js'
import { bytesText, type CommandOutput, grouped } from './output.js'
import { OverlayServer } from './overlay-server.js'

/** How long a node may take to answer, in milliseconds, and how many bytes it may answer. */
const TIMEOUT = 10_000
const MAX_ANSWER_BYTES = 1024 * 1024

/**
 * Prints the state of a node: what it says of itself if it runs, and what its folder holds.
 *
 * @throws CommandError (`unavailable`) if it does not run or is not ready, once all that is known is printed; GeneralError if the
 * log is damaged.
 */
export async function runStatus(options: {
  config: Config
  url: string
  signal: AbortSignal
  output: CommandOutput
}): Promise<void> {
  const { config, url, signal, output } = options
  const health = await healthAt(url, signal)
  const store = await storeStatus(config).catch((error: unknown) => {
    if (error instanceof StartError) return error
    throw error
  })
  const reasons = Object.values(health?.reasons ?? {})
  const state = health === undefined ? 'stopped' : reasons.length === 0 ? 'ready' : 'not ready'
  const lines = [
    health === undefined ? `${url}: no answer` : `${url}: ${state}, minetree ${health.version}`,
    ...reasons.map((reason) => `  ${reason}`),
    ...(health ? linesOf(health) : []),
    ...storeLines(store, shownPlace(logPlaceIn(config))),
  ]
  // It may quote a server, or another program at that address.
  output.result(
    { url, state, ...(health && { health }), ...(store && !(store instanceof StartError) && { store }) },
    ...lines.map(escapeControlChars),
  )
  if (state !== 'ready') throw new CommandError(`the node is ${state}`, { exit: 'unavailable' })
}

/** The health report of a node; undefined if nothing answers. */
async function healthAt(url: string, signal: AbortSignal): Promise<HealthReport | undefined> {
  const server = new OverlayServer(url)
  try {
    const bounds = { timeout: TIMEOUT, maxBytes: MAX_ANSWER_BYTES, signal }
    const { body } = await fetchBounded(`${server.url}/health`, {}, bounds)
    const report = readJson(body) as Partial<HealthReport> | undefined
    if (report?.service?.name === 'minetree') return report as HealthReport
  } catch (error) {
    if (error instanceof SourceError && error.code === 'UNREACHABLE') return undefined
    if (!(error instanceof SourceError)) throw error
    throw new CommandError(error.message, { cause: error, exit: 'unavailable' })
  }
  throw usageError(`${url} is no minetree node: set --url or PORT`)
}

function linesOf(options: HealthReport): string[] {
  const { height, lag, follow, index, service, sources = [], damaged = [] } = options
  const minutes = Math.floor(service.uptimeMs / 60_000)
  const behind = lag === undefined ? '' : lag === 0 ? ', up to date' : `, ${grouped(lag)} blocks behind`
  return [
    `up: ${Math.floor(minutes / 60)} h ${minutes % 60} min`,
    ...(height === undefined
      ? []
      : [`chain: block ${grouped(height)}${behind}${follow ? `, ${follow.state}` : ''}`]),
    ...(index.state === 'equal' ? [] : [`index: ${index.state}, ${Math.floor(index.done * 100)} %`]),
    ...sources.map(
      ({ name, state, lastError }) => `source: ${name}, ${state}${lastError ? `: ${lastError.message}` : ''}`,
    ),
    ...(damaged.length === 0
      ? []
      : [`damaged: ${grouped(damaged.length)} stored bodies: run minetree check`]),
  ]
}

function storeLines(store: StoreStatus | StartError | undefined, place: string): string[] {
  if (store === undefined) return [`store: none in ${place}`]
  if (store instanceof StartError) return [`store: ${store.message}`]
  const { folder, logBytes, indexBytes, freeBytes, settings } = store
  const index = indexBytes === undefined ? 'no index yet' : `index ${bytesText(indexBytes)}`
  return [
    `store: ${folder}, log ${bytesText(logBytes)}, ${index}, ${bytesText(freeBytes)} free`,
    ...(settings.genesis === undefined ? [] : [`tree: ${settings.genesis}`]),
  ]
}
