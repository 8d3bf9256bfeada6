import { pinnedGenesis, pinnedTree, pinTree, treeDifference } from '../../../backend/src/graph/pinned-tree.js'
import type { DeploymentTerms } from '../../../backend/src/protocol/mint.js'
import { type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { type Config, ConfigError } from '../config/config.js'
import { placeOf } from '../config/place.js'

export interface DeployedTree {
  genesis: Outpoint
  beef: Uint8Array
}

export type Deploy = (terms: DeploymentTerms) => DeployedTree | Promise<DeployedTree>

/**
 * Pins the tree of a store: the one in the settings, the one it was opened with before, or one deployed for it.
 *
 * @param options.deploy Deploys a tree for an empty store if the settings name none.
 * @returns The settings with the tree, and the tree itself if it has just been deployed.
 * @throws ConfigError if the store holds the tree of another genesis, with other rules, or with a covenant that is no longer
 * followed.
 */
export async function pinGenesis(options: {
  graph: FactStore
  config: Config
  deploy?: Deploy
}): Promise<{ config: Config; deployed?: DeployedTree }> {
  const { graph, deploy } = options
  const { settings } = graph
  const pinned = await pinnedGenesis(settings)
  const isOwn = await isDeployedHere(graph)
  // A host that checks proofs gets its blocks from elsewhere.
  const config = { ...options.config, minesBlocks: isOwn && options.config.chainTracker === 'scripts-only' }
  // If a start ended between pinning a deployed tree and storing it, that tree does not exist.
  const isFree = pinned === undefined || isOwn
  const deploys = config.deployment === undefined && isFree && (await graph.isEmpty())
  const deployed = deploys ? await deploy?.(config.terms) : undefined
  if (deployed !== undefined) await settings.set(DEPLOYED_HERE, 'true')
  const own = deployed?.genesis ?? config.deployment?.genesis
  const genesis = own ?? (pinned === undefined ? undefined : parseOutpoint(pinned))
  if (genesis === undefined) return { config }
  await pinTree(settings, { ...config.terms, genesis }, { again: deployed !== undefined })
  const followed = await withTree(settings, { ...config, deployment: { ...config.terms, genesis } })
  return deployed === undefined
    ? { config: followed }
    : { config: { ...followed, minesBlocks: true }, deployed }
}

/**
 * The settings with the tree of a log, by which its index is derived.
 *
 * @throws ConfigError if the log holds another tree than the settings name, or one with other rules.
 */
export async function withTree(
  settings: Pick<FactStore['settings'], 'get'>,
  config: Config,
): Promise<Config> {
  const own = { ...config.terms, genesis: config.deployment?.genesis }
  const difference = await treeDifference(settings, { ...own, place: `the store in ${placeOf(config)}` })
  if (difference !== undefined) throw new ConfigError(difference)
  return { ...config, deployment: await pinnedTree(settings) }
}

/** The setting of a log that says which chain tracker decides about its proofs. */
const TRACKER = 'tracker'

/** The name, in a log, of the chain tracker that decides which proofs count. */
export function trackerOf({
  chainTracker,
  givenTracker,
}: Pick<Config, 'chainTracker' | 'givenTracker'>): 'headers' | 'tracker' | 'scripts-only' {
  return givenTracker === undefined ? chainTracker : 'tracker'
}

/**
 * Stores in a log which chain tracker decides about its proofs, as its index depends on that.
 *
 * @throws ConfigError if the log names another one.
 */
export async function pinTracker(
  settings: FactStore['settings'],
  config: Pick<Config, 'chainTracker' | 'givenTracker' | 'dataDir' | 'knexUrl' | 'mongoUrl'>,
): Promise<void> {
  const tracker = trackerOf(config)
  await settings.set(TRACKER, tracker)
  await requireTracker(settings, { tracker, place: `the store in ${placeOf(config)}` })
}

/** @throws ConfigError if another chain tracker decides about the proofs of a log. */
export async function requireTracker(
  settings: Pick<FactStore['settings'], 'get'>,
  { tracker, place }: { tracker: string; place: string },
): Promise<void> {
  const pinned = await settings.get(TRACKER)
  if (pinned !== tracker)
    throw new ConfigError(
      `CHAIN_TRACKER: proofs of ${place} count by ${JSON.stringify(pinned)}, not ${JSON.stringify(tracker)}: minetree setting tracker ${tracker} replaces that`,
    )
}

const DEPLOYED_HERE = 'deployed-here'

export async function isDeployedHere(graph: Pick<FactStore, 'settings'>): Promise<boolean> {
  return (await graph.settings.get(DEPLOYED_HERE)) !== undefined
}
