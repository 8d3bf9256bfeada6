import { readUtf8 } from '../protocol/bytes.js'
import { type CovenantVersion, mineNodeIn, versionOfCode } from '../protocol/mine-node.js'
import type { Deployment, DeploymentTerms } from '../protocol/mint.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../protocol/profile.js'
import { outputOf } from '../protocol/transaction.js'
import { storedTransaction, type TransactionSource } from './stored-transaction.js'

/** Settings of the store itself, such as the tree that it holds. */
export interface Settings {
  /** Undefined if it was never set. */
  get(name: string): Promise<string | undefined>
  /**
   * Sets a value. Settings that derivation depends on are pinned: of several who set one at once, over one log, the first counts.
   *
   * @param from The value that a pinned setting must have to be replaced; by default, it must not be set yet.
   */
  set(name: string, value: string, from?: string): Promise<void>
}

/**
 * The tree of a store, in its settings: the genesis and the rules. A store holds one tree with one set of rules, since the nodes
 * of two would be mixed up.
 */

const GENESIS = 'genesis'
/** Adopted, not compared: it only matters to a covenant whose code does not show its version. */
const VERSION = 'COVENANT_VERSION'

/** The rules of a tree, whatever its genesis. */
type TreeRules = Pick<DeploymentTerms, 'difficulty' | 'nameContentType' | 'marker' | 'tld'>

/** The genesis of a store's tree, as `<txid>_<vout>`; undefined if none is pinned yet. */
export async function pinnedGenesis(settings: Pick<Settings, 'get'>): Promise<string | undefined> {
  return await settings.get(GENESIS)
}

/** The tree by which the index of a store is derived; undefined if none is pinned yet. */
export async function pinnedTree(settings: Pick<Settings, 'get'>): Promise<Deployment | undefined> {
  const genesis = await pinnedGenesis(settings)
  if (genesis === undefined) return undefined
  const nameContentType = String(await settings.get('PROFILE'))
  const known = Object.values(PROFILES).find((profile) => profile.nameContentType === nameContentType)
  // The limits of a covenant of another profile are not known.
  const { covenantLimits: _, ...local } = PROFILES.local
  const nameMarker = await settings.get('NAME_MARKER')
  const nameTld = await settings.get('NAME_TLD')
  return deploymentOf(known ?? { ...local, nameContentType }, {
    ...{ genesis: parseOutpoint(genesis), difficulty: Number(await settings.get('DIFFICULTY')) },
    ...{ ...(nameMarker && { nameMarker }), ...(nameTld && { nameTld }) },
    covenantVersion: (await settings.get(VERSION)) === '2' ? 2 : 1,
  })
}

/**
 * Pins a tree, unless the store has one. Another process may have pinned another one meanwhile, which `treeDifference` shows: of
 * two, the first to pin the setting that differs goes on.
 *
 * @param options.again Replaces a tree that was never stored.
 */
export async function pinTree(
  settings: Settings,
  { genesis, covenantVersion, ...rules }: Omit<Deployment, 'limits'>,
  { again = false } = {},
): Promise<void> {
  const tree = [
    ...rulesOf(rules),
    [VERSION, String(covenantVersion)],
    [GENESIS, formatOutpoint(genesis)],
  ] as const
  // The genesis comes last, as it shows that the rules are there.
  for (const [name, value] of tree) {
    const held = await settings.get(name)
    if (held === undefined || again) await settings.set(name, value, held)
    if (name !== VERSION && (await settings.get(name)) !== value) return
  }
}

/**
 * How the tree of a store differs from another one, as a message that starts with the setting; undefined if it does not.
 *
 * @param tree.genesis Not compared if undefined.
 * @param tree.place What holds the tree, for the message: `this database`.
 */
export async function treeDifference(
  settings: Pick<Settings, 'get'>,
  { genesis, place, ...rules }: TreeRules & { genesis?: Outpoint | undefined; place: string },
): Promise<string | undefined> {
  const pinned = await pinnedGenesis(settings)
  const followed = genesis && formatOutpoint(genesis)
  if (followed !== undefined && pinned !== undefined && followed !== pinned)
    return `GENESIS: ${place} holds the tree of ${pinned}, not of ${followed}`
  for (const [name, value] of rulesOf(rules)) {
    const held = await settings.get(name)
    if (held !== value)
      return `${name}: ${place} holds a tree with ${JSON.stringify(held ?? 'none')}, not ${JSON.stringify(value)}`
  }
  return undefined
}

/** The rules of a tree, each by the setting that changes it. */
function rulesOf({
  difficulty,
  nameContentType,
  marker,
  tld = '',
}: TreeRules): [setting: string, value: string][] {
  return [
    ['DIFFICULTY', String(difficulty)],
    ['NAME_MARKER', readUtf8(marker)],
    ['NAME_TLD', tld],
    // Only the profile determines this one.
    ['PROFILE', nameContentType],
  ]
}

/**
 * The version of a tree's covenant, from the code of its root; undefined if the store does not have the root, or minetree has
 * not deployed such a covenant.
 */
export async function versionOfTree(
  graph: { readonly transactions: TransactionSource },
  genesis: Outpoint,
): Promise<CovenantVersion | undefined> {
  const transaction = await storedTransaction(genesis.txid, graph.transactions)
  const root = transaction && outputOf(transaction, genesis.vout)
  const node = root && mineNodeIn(root.lockingScript)
  return node && versionOfCode(node.code)
}
