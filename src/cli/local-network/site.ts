import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, TOPICS } from '../../../backend/src/protocol/profile.js'
import { NOBODY, NOBODY_LOCK } from '../../mining/made-up-mint.js'
import { layOutFolder } from '../../publish/folder.js'
import { CommandError } from '../command-error.js'
import { reinscribingTransaction } from '../made-up-money.js'
import { ensureName } from './names.js'
import { type Network, nowhereFor, submitOnce } from './network.js'
import { readSite } from './site-files.js'

/** The name that the site goes to; each next one where somebody has those before it. */
const NAMES = ['home', 'home2', 'home3'] as const

export interface Site {
  name: string
  /** The outpoint in which the name was mined, as text. */
  origin: string
}

/**
 * Mines a name and re-inscribes its ordinal with the site: one transaction spends it, and has the site's directory in the
 * output that receives it, its files behind that. A name that somebody owns, or has moved, is left to him.
 *
 * @param stream The outpoint of a stream that the site plays.
 * @throws CommandError where all of the names are somebody's, or the server does not take the site; what mining throws.
 */
export async function publishSite(network: Network, stream: string): Promise<Site> {
  for (const name of NAMES) {
    const origin = await ensureName(network, name)
    if (await inscribe(network, { name, origin, stream })) {
      network.progress.say(`published a site on ${name}`)
      return { name, origin: formatOutpoint(origin) }
    }
  }
  throw new CommandError(`there is no name for the site: somebody has each of ${NAMES.join(', ')}`)
}

/** Inscribes the site on a name, unless it is there already; false where the name is somebody's. */
async function inscribe(
  network: Network,
  { name, origin, stream }: { name: string; origin: Outpoint; stream: string },
): Promise<boolean> {
  const { graph, deployment } = network
  const facts = {
    NAME: name,
    ORIGIN: formatOutpoint(origin),
    STREAM: stream,
    DIFFICULTY: String(deployment.difficulty),
  }
  const entries = await readSite(facts)
  const { outputs } = layOutFolder({ entries, lock: NOBODY_LOCK, profile: PROFILES.local })
  const height = await graph.transactions.heightOf(origin.txid)
  const transaction = reinscribingTransaction({
    ordinal: origin,
    height: height ?? 0,
    outputs,
    nowhere: nowhereFor(network, 'site'),
  })
  const isThere = await graph.admissions.isApplied(TOPICS.ordinals, transaction.txid)
  if (!isThere && !(await isNobodys(network, origin))) return false
  await submitOnce(network, transaction, { outputs: outputs.length, called: 'the site' })
  return true
}

/** Whether a name stands where it was mined, with no owner. */
async function isNobodys({ graph }: Network, origin: Outpoint): Promise<boolean> {
  const output = await graph.ordinals.output(origin)
  if (output === undefined)
    throw new CommandError('the server keeps no ordinals of names: its CONTENT_TYPES may leave them out')
  return output.owner === NOBODY && (await graph.transactions.spenderOf(origin)) === undefined
}
