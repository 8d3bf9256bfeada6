import { PINNED_GENESIS, treeRules } from '../../../backend/src/graph/host-index.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import { storedTransaction } from '../../../backend/src/graph/stored-transaction.js'
import { type CovenantVersion, versionOfCode } from '../../../backend/src/protocol/covenant-version.js'
import { decodeMineNode, MineNodeError } from '../../../backend/src/protocol/mine-node.js'
import type { DeploymentTerms } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { outputOf } from '../../../backend/src/protocol/transaction.js'
import { type Config, ConfigError } from '../config/config.js'
import { RESTORE_MARK } from './backup/backup-tables.js'
import { placeOf } from './open-database.js'

/** A tree that was deployed for a local network. */
export interface DeployedTree {
  genesis: Outpoint
  /** The transaction that holds the root as deployed. */
  beef: Uint8Array
}

export type Deploy = (terms: DeploymentTerms) => DeployedTree

/**
 * Pins the tree that a store holds: that of the settings, the one it was opened with before, or one deployed for it. A store
 * holds one tree with one set of rules: the nodes of two would be mixed up.
 *
 * @param options.deploy Deploys a tree for an empty store if the settings name none.
 * @returns The settings with the tree, and the tree itself if it has just been deployed.
 * @throws ConfigError if the store holds the tree of another genesis or with other rules.
 */
export async function pinGenesis({
  graph,
  config,
  deploy,
}: {
  graph: HostStore
  config: Config
  deploy?: Deploy
}): Promise<{ config: Config; deployed?: DeployedTree }> {
  if ((await graph.settings.get(RESTORE_MARK)) !== undefined)
    throw new ConfigError(
      `the store in ${placeOf(config)} holds part of a backup whose restore was interrupted: empty it and restore again`,
    )
  const pinned = await graph.settings.get(PINNED_GENESIS)
  // If a start ended between pinning a deployed tree and storing it, that tree does not exist.
  const isFree = pinned === undefined || (await isDeployedHere(graph))
  if (config.deployment === undefined && deploy !== undefined && isFree && (await graph.isEmpty())) {
    const deployed = deploy(config.terms)
    await graph.settings.set(DEPLOYED_HERE, 'true')
    await pinTerms(graph, config.terms)
    await graph.settings.set(PINNED_GENESIS, formatOutpoint(deployed.genesis))
    return { config: withGenesis(config, deployed.genesis), deployed }
  }
  const genesis = config.deployment && formatOutpoint(config.deployment.genesis)
  if (pinned === undefined) {
    if (genesis === undefined) return { config }
    await pinTerms(graph, config.terms)
    await graph.settings.set(PINNED_GENESIS, genesis)
    return { config }
  }
  if (genesis !== undefined && genesis !== pinned)
    throw new ConfigError(
      `GENESIS: the store in ${placeOf(config)} holds the tree of ${pinned}, not of ${genesis}`,
    )
  await assertTerms(graph, config)
  const root = parseOutpoint(pinned)
  const covenantVersion = await versionOfTree(graph, root)
  if (covenantVersion === undefined) return { config: withGenesis(config, root) }
  const { covenantVersion: set = covenantVersion } = config.setTerms
  if (set !== covenantVersion)
    throw new ConfigError(
      `COVENANT_VERSION: the tree in ${placeOf(config)} has ${covenantVersion}, not ${set}`,
    )
  return { config: withGenesis({ ...config, terms: { ...config.terms, covenantVersion } }, root) }
}

/**
 * The version of a tree's covenant, from the code of its root; undefined if the store does not have the root, or minetree has
 * not deployed such a covenant.
 */
export async function versionOfTree(
  graph: Pick<HostStore, 'transactions'>,
  genesis: Outpoint,
): Promise<CovenantVersion | undefined> {
  const transaction = await storedTransaction(genesis.txid, graph.transactions)
  const root = transaction && outputOf(transaction, genesis.vout)
  try {
    return root && versionOfCode(decodeMineNode(root.lockingScript).code)
  } catch (error) {
    if (error instanceof MineNodeError) return undefined
    throw error
  }
}

const DEPLOYED_HERE = 'deployed-here'

/** Whether the tree of a store was deployed for it. */
export async function isDeployedHere(graph: Pick<HostStore, 'settings'>): Promise<boolean> {
  return (await graph.settings.get(DEPLOYED_HERE)) !== undefined
}

function withGenesis(config: Config, genesis: Outpoint): Config {
  return { ...config, deployment: { ...config.terms, genesis } }
}

async function pinTerms(graph: HostStore, terms: DeploymentTerms): Promise<void> {
  for (const [name, value] of Object.entries(treeRules(terms))) await graph.settings.set(name, value)
}

async function assertTerms(graph: HostStore, config: Config): Promise<void> {
  for (const [name, value] of Object.entries(treeRules(config.terms))) {
    const pinned = await graph.settings.get(name)
    if (pinned === value) continue
    throw new ConfigError(
      `${name}: the tree in ${placeOf(config)} has ${JSON.stringify(pinned ?? 'none')}, not ${JSON.stringify(value)}`,
    )
  }
}
