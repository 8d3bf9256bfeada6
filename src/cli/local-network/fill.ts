import { z } from 'zod'
import { ensureName } from './names.js'
import type { Network } from './network.js'
import { publishSite } from './site.js'
import { publishMelody } from './stream.js'

/** Another name beside that of the site, which begins as that does: so the tree has a branch. */
const OTHER_NAME = 'hum'

const filled = z.object({
  /** The name whose ordinal the site is. */
  name: z.string(),
  /** The outpoint in which that was mined. */
  origin: z.string(),
  /** The outpoint of the stream's first chunk. */
  stream: z.string(),
})

/** What a local network was filled with. */
export type Filled = z.infer<typeof filled>

const FILLED = 'filled'

/** What a store was filled with; undefined where it is not, or not to the end. */
export async function filledWith({ graph }: Pick<Network, 'graph'>): Promise<Filled | undefined> {
  const noted = await graph.settings.get(FILLED)
  return noted === undefined ? undefined : filled.parse(JSON.parse(noted))
}

/**
 * Fills a local network: a stream, names, a site. Each step does only what is not there yet, so that a filling that was
 * broken off anywhere is gone on with by filling again; when all is there, the store says so for good.
 *
 * @throws CommandError, MiningError: what stands against it; the reason of the signal.
 */
export async function fill(network: Network): Promise<Filled> {
  const stream = await publishMelody(network)
  await ensureName(network, OTHER_NAME)
  const site = await publishSite(network, stream)
  const all = { ...site, stream }
  await network.graph.settings.set(FILLED, JSON.stringify(all))
  return all
}
