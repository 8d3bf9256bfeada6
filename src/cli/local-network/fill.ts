import { join } from 'node:path'
import { z } from 'zod'
import { readUtf8, utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, TOPICS } from '../../../backend/src/protocol/profile.js'
import { NOBODY, NOBODY_LOCK } from '../../mining/fake-funding.js'
import { layOutStream } from '../../publish/file.js'
import { type FolderEntry, layOutFolder } from '../../publish/folder.js'
import { packageFolder } from '../../server/config/package-folder.js'
import { CommandError } from '../command.js'
import {
  type FakeTransaction,
  fundedTransaction,
  reinscribingTransaction,
  spendingTransaction,
} from '../fake-transactions.js'
import { findAt, readEntries } from '../publish-files.js'
import { melody } from './melody.js'
import { ensureName, type LocalNetwork, nowhereFor, submitOnce } from './network.js'

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
export async function filledWith({ graph }: Pick<LocalNetwork, 'graph'>): Promise<Filled | undefined> {
  const noted = await graph.settings.get(FILLED)
  return noted === undefined ? undefined : filled.parse(JSON.parse(noted))
}

/**
 * Fills a local network: a stream, names, a site. Each step does only what is not there yet, so that a filling that was
 * broken off anywhere is gone on with by filling again; when all is there, the store says so for good.
 *
 * @throws CommandError, MiningError: what stands against it; the reason of the signal.
 */
export async function fill(network: LocalNetwork): Promise<Filled> {
  const stream = await publishMelody(network)
  await ensureName(network, OTHER_NAME)
  const site = await publishSite(network, stream)
  const all = { ...site, stream }
  await network.graph.settings.set(FILLED, JSON.stringify(all))
  return all
}

/** Bytes: small, so that a few seconds of sound make several chunks. */
const CHUNK = 64 * 1024

/**
 * Publishes the melody as a stream, chunk by chunk, as far as it is not there yet.
 *
 * @returns The outpoint of the first chunk, as text.
 * @throws CommandError
 */
export async function publishMelody(network: LocalNetwork): Promise<string> {
  const chunks = layOutStream({
    name: 'melody.wav',
    bytes: melody(),
    lock: NOBODY_LOCK,
    profile: PROFILES.local,
    streamChunkSize: CHUNK,
  })
  const made: FakeTransaction[] = []
  for (const [index, chunk] of chunks.entries()) {
    const before = made.at(-1)
    const transaction =
      before === undefined
        ? fundedTransaction([chunk], nowhereFor(network, 'melody'))
        : spendingTransaction(before, chunk)
    await submitOnce(network, transaction, { outputs: 1, called: `chunk ${index} of the melody` })
    made.push(transaction)
  }
  network.progress.say(`published a melody in ${made.length} chunks`)
  return formatOutpoint({ txid: made[0]?.txid ?? '', vout: 0 })
}

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
export async function publishSite(network: LocalNetwork, stream: string): Promise<Site> {
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
  network: LocalNetwork,
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
async function isNobodys({ graph }: LocalNetwork, origin: Outpoint): Promise<boolean> {
  const output = await graph.ordinals.output(origin)
  if (output === undefined)
    throw new CommandError('the server keeps no ordinals of names: its CONTENT_TYPES may leave them out')
  return output.owner === NOBODY && (await graph.transactions.spenderOf(origin)) === undefined
}

const FOLDER = 'assets/local-network'

/** What the pages of the site say in the places of `%NAME%` and so on. */
export interface SiteFacts {
  /** The name whose ordinal the site is. */
  NAME: string
  /** The outpoint in which that was mined. */
  ORIGIN: string
  /** The outpoint of a stream's first chunk. */
  STREAM: string
  /** Zero bits of a solution. */
  DIFFICULTY: string
}

/**
 * The files of the site, with the facts in its pages.
 *
 * @throws CommandError where the package has not got them.
 */
export async function readSite(facts: SiteFacts): Promise<readonly FolderEntry[]> {
  const { found } = await findAt(join(packageFolder(), FOLDER), 'site')
  const site = await readEntries(found)
  return 'entries' in site ? site.entries.map((entry) => withFacts(entry, facts)) : []
}

function withFacts(entry: FolderEntry, facts: SiteFacts): FolderEntry {
  if ('entries' in entry) return { ...entry, entries: entry.entries.map((each) => withFacts(each, facts)) }
  if (!entry.name.endsWith('.html')) return entry
  const page = readUtf8(entry.bytes).replace(/%([A-Z]+)%/g, (mark, key: string) =>
    key in facts ? facts[key as keyof SiteFacts] : mark,
  )
  return { ...entry, bytes: utf8(page) }
}
