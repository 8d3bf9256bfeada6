import type { Logger } from 'pino'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { HttpMineIndex } from '../../mining/mine-index.js'
import type { RunningServer } from '../../server/server.js'
import { isDeployedHere } from '../../server/store/pinned-genesis.js'
import { MiningProgress } from '../mining-progress.js'
import type { Stream } from '../output.js'
import { fill, filledWith } from './fill.js'

export interface Seeding {
  server: RunningServer
  logger: Logger
  /** The stream for progress and the URL. */
  out: Stream
  /** Stops it; the next start continues. */
  signal: AbortSignal
}

/**
 * Fills the network of a server whose tree was deployed for it, unless that is done, and prints the URL to open. A failure
 * is printed and logged, and the server keeps running.
 */
export async function seedLocalNetwork(seeding: Seeding): Promise<void> {
  const { server, logger, out, signal } = seeding
  const progress = new MiningProgress(out)
  try {
    const { graph, config, overlay } = server.node
    const { deployment } = config
    if (deployment === undefined || !(await isDeployedHere(graph))) return
    const url = ownUrl(server.url)
    if ((await filledWith({ graph })) !== undefined) {
      out.write(invitation(url))
      return
    }
    progress.say('filling the local network: a melody, a few mined names, and a site')
    await fill({
      deployment,
      graph,
      index: new HttpMineIndex({ url, signal }),
      submit: overlay.engine.submit,
      progress,
      signal,
    })
    out.write(invitation(url))
  } catch (error) {
    progress.end()
    if (error === signal.reason) return
    const reason = messageOf(error)
    logger.error({ err: error }, 'the local network is not filled')
    progress.say(`minetree: the local network is not filled: ${reason}; the next start tries again`)
  }
}

/** The URL by which a browser on this machine reaches a server that listens on all addresses. */
function ownUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** Where to look at a local network, as text. */
function invitation(url: string): string {
  return `
A local network, with names, a site and a stream. Open

  ${url}/

or mine a name here:  npx minetree mine hey --url ${url}

`
}
