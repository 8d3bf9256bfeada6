import type { Logger } from 'pino'
import type { RunningServer } from '../../server/server.js'
import { isDeployedHere } from '../../server/store/pinned-genesis.js'
import { MiningProgress } from '../mining-progress.js'
import type { Stream } from '../output.js'
import { fill, filledWith } from './fill.js'
import { OwnIndex } from './own-index.js'
import { whatToOpen } from './what-to-open.js'

/**
 * Fills the network of a server whose tree was deployed for it, unless that is done, and says what to open there. What
 * stands against it is told and logged: the server goes on without.
 *
 * @param seeding.out Where a person looks on.
 * @param seeding.signal Stops it; the next start goes on from there.
 */
export async function seedLocalNetwork(seeding: {
  server: RunningServer
  logger: Logger
  out: Stream
  signal: AbortSignal
}): Promise<void> {
  const { server, logger, out, signal } = seeding
  const progress = new MiningProgress(out)
  try {
    const { graph, config, overlay } = server.node
    const { deployment } = config
    if (!config.seed || deployment === undefined || !(await isDeployedHere(graph))) return
    const url = ownUrl(server.url)
    const done = await filledWith({ graph })
    if (done !== undefined) {
      out.write(whatToOpen(url, done))
      return
    }
    progress.say('filling the local network: a melody, a few names that are mined, and a site')
    const filled = await fill({
      deployment,
      graph,
      index: new OwnIndex(server.node, deployment.genesis),
      submit: overlay.engine.submit,
      progress,
      signal,
    })
    out.write(whatToOpen(url, filled))
  } catch (error) {
    progress.end()
    if (error === signal.reason) return
    const reason = error instanceof Error ? error.message : String(error)
    logger.error({ err: error }, 'the local network is not filled')
    progress.say(`minetree: the local network is not filled: ${reason}; the next start tries again`)
  }
}

/** Where a browser on this machine reaches a server that listens on all of its addresses. */
function ownUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
