import { join } from 'node:path'
import { PrivateKey, ProtoWallet } from '@bsv/sdk'
import { z } from 'zod'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { concatBytes, readUtf8, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { encodeOutpoint, formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, TOPICS } from '../../../backend/src/protocol/profile.js'
import { bindingLock } from '../../identity/binding-lock.js'
import type { MineIndex } from '../../mining/mine-index.js'
import { mineName } from '../../mining/mine-name.js'
import { MiningError } from '../../mining/mining-error.js'
import { NOBODY, NOBODY_LOCK } from '../../payments/fake.js'
import { FAKE_MINT_PAYER } from '../../payments/mints.js'
import type { FolderEntry } from '../../publish/content-tree.js'
import { layOutStream } from '../../publish/file.js'
import { layOutFolder } from '../../publish/folder.js'
import { packageFolder } from '../../server/config/package-info.js'
import type { Node } from '../../server/node.js'
import type { Submit } from '../../server/writer/submission-queue.js'
import { CommandError } from '../command.js'
import { type FakeTransaction, fundedTransaction, spendingTransaction } from '../fake-transactions.js'
import type { MiningProgress } from '../mining-progress.js'
import { findAt, readEntries } from '../publish-files.js'
import { melody } from './melody.js'

/** A second name, with the same first character as the site's, so that the tree has a branch. */
const OTHER_NAME = 'hum'

const filled = z.object({
  /** The name whose ordinal is the site. */
  name: z.string(),
  /** The outpoint in which the name was mined. */
  origin: z.string(),
  /** The outpoint of the stream's first chunk. */
  stream: z.string(),
})

/** The contents of a filled local network. */
type Filled = z.infer<typeof filled>

const FILLED = 'filled'

/** The contents of a store that was filled completely; undefined otherwise. */
export async function filledWith({ graph }: Pick<LocalNetwork, 'graph'>): Promise<Filled | undefined> {
  const noted = await graph.settings.get(FILLED)
  return noted === undefined ? undefined : filled.parse(JSON.parse(noted))
}

/**
 * Fills a local network with a stream, names and a site. Each step adds only what is missing, so an interrupted run is continued
 * by running it again; at the end, the store records that it is complete.
 *
 * @throws CommandError; MiningError; the reason of the signal.
 */
export async function fill(network: LocalNetwork): Promise<Filled> {
  const stream = await publishMelody(network)
  await bindOtherName(network)
  const site = await publishSite(network, stream)
  const all = { ...site, stream }
  await network.graph.settings.set(FILLED, JSON.stringify(all))
  return all
}

/** Mines the second name and binds it to an identity, unless somebody has it. */
async function bindOtherName(network: LocalNetwork): Promise<void> {
  const { graph, progress } = network
  const outpoint = await ensureName(network, OTHER_NAME)
  // Derived from the genesis, so that each start makes the same transaction. Anyone who knows the genesis knows the key.
  const key = PrivateKey.fromHex(sourceFor(network, 'identity key'))
  const lock = await bindingLock({
    coin: { outpoint, lockingScript: NOBODY_LOCK, bindingInputs: [] },
    signer: new ProtoWallet(key),
    profile: { domain: 'localhost', name: 'Hum' },
  })
  const height = (await graph.transactions.heightOf(outpoint.txid)) ?? 0
  const source = sourceFor(network, 'identity')
  const transaction = fundedTransaction([{ satoshis: 1, lockingScript: lock }], source, {
    ...outpoint,
    height,
  })
  const isThere = await graph.admissions.isApplied(TOPICS.ordinals, transaction.txid)
  if (!isThere && !(await isNobodys(network, outpoint))) return
  await submitOnce(network, transaction, { outputs: 1, called: `the identity of ${OTHER_NAME}` })
  progress.say(`bound ${OTHER_NAME} to an identity`)
}

/** In bytes; small, so that a few seconds of sound make several chunks. */
const CHUNK = 64 * 1024

/**
 * Publishes the missing chunks of the melody as a stream.
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
        ? fundedTransaction([chunk], sourceFor(network, 'melody'))
        : spendingTransaction(before, chunk)
    await submitOnce(network, transaction, { outputs: 1, called: `chunk ${index} of the melody` })
    made.push(transaction)
  }
  network.progress.say(`published a melody in ${made.length} chunks`)
  return formatOutpoint({ txid: made[0]?.txid ?? '', vout: 0 })
}

/** The names for the site, in order of preference: each is used if somebody else has the earlier ones. */
const NAMES = ['home', 'home2', 'home3'] as const

export interface Site {
  name: string
  /** The outpoint in which the name was mined, as text. */
  origin: string
}

/**
 * Mines a name and inscribes the site on its ordinal: one transaction spends it, and has the site's directory in the output
 * that receives it, followed by the files. A name that somebody owns or has moved is not used.
 *
 * @param stream The outpoint of a stream that the site plays.
 * @throws CommandError if somebody else has all of the names, or the server does not accept the site; errors of mining.
 */
export async function publishSite(network: LocalNetwork, stream: string): Promise<Site> {
  for (const name of NAMES) {
    const origin = await ensureName(network, name)
    if (await inscribe(network, { name, origin, stream })) {
      network.progress.say(`published a site on ${name}`)
      return { name, origin: formatOutpoint(origin) }
    }
  }
  throw new CommandError(`no name is left for the site: somebody has each of ${NAMES.join(', ')}`)
}

/** Inscribes the site on a name, unless that is done; false if somebody else has the name. */
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
  const height = (await graph.transactions.heightOf(origin.txid)) ?? 0
  const transaction = fundedTransaction(outputs, sourceFor(network, 'site'), { ...origin, height })
  const isThere = await graph.admissions.isApplied(TOPICS.ordinals, transaction.txid)
  if (!isThere && !(await isNobodys(network, origin))) return false
  await submitOnce(network, transaction, { outputs: outputs.length, called: 'the site' })
  return true
}

/** Whether a name is still in the output in which it was mined, without an owner. */
async function isNobodys({ graph }: LocalNetwork, origin: Outpoint): Promise<boolean> {
  const output = await graph.ordinals.output(origin)
  if (output === undefined)
    throw new CommandError('the server does not index the ordinals of names: check its CONTENT_TYPES')
  return output.owner === NOBODY && (await graph.transactions.spenderOf(origin)) === undefined
}

const FOLDER = 'assets/local-network'

/** The values for `%NAME%` and other placeholders in the pages of the site. */
export interface SiteFacts {
  /** The name whose ordinal is the site. */
  NAME: string
  /** The outpoint in which the name was mined. */
  ORIGIN: string
  /** The outpoint of a stream's first chunk. */
  STREAM: string
  DIFFICULTY: string
}

/**
 * The files of the site, with the facts filled in.
 *
 * @throws CommandError if the package does not contain them.
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

export interface LocalNetwork {
  deployment: Deployment
  graph: Node['graph']
  /** Accepts mints. */
  index: MineIndex
  /** Accepts everything else, for `tm_ordinals`. */
  submit: Submit
  progress: MiningProgress
  /** Stops the filling between two submissions, or during a search. */
  signal: AbortSignal
  /** Threads that search; by default, one per core. */
  workers?: number
}

/**
 * The fixed source of a fake coin, derived from its purpose and the network's genesis. So each start makes the same transaction,
 * which is only submitted once.
 */
function sourceFor({ deployment }: LocalNetwork, what: string): string {
  return toHex(nativeHash256(concatBytes(encodeOutpoint(deployment.genesis), utf8(what))))
}

/**
 * Submits a transaction, unless all of its outputs are admitted already.
 *
 * @param about.outputs The number of its outputs.
 * @param about.called Its name in error messages.
 * @throws CommandError if not all of its outputs are admitted; SubmissionError if it is rejected.
 */
async function submitOnce(
  { graph, submit, signal }: LocalNetwork,
  { txid, beef }: FakeTransaction,
  { outputs, called }: { outputs: number; called: string },
): Promise<void> {
  const missing = async (): Promise<number> => {
    const admissions = await graph.admissions.ofTransaction(txid)
    return outputs - admissions.filter(({ topic }) => topic === TOPICS.ordinals).length
  }
  signal.throwIfAborted()
  if ((await missing()) === 0) return
  await submit({ beef, topics: [TOPICS.ordinals] })
  const left = await missing()
  if (left > 0)
    throw new CommandError(
      `the server does not take ${left} of ${outputs} outputs of ${called}: its log says why`,
    )
}

/**
 * Mines the missing characters of a name, without an owner. A taken name is left as it is: an earlier start may have mined it.
 *
 * @returns The origin of the name.
 * @throws what {@link mineName} throws, except `TAKEN`.
 */
async function ensureName(network: LocalNetwork, name: string): Promise<Outpoint> {
  const { deployment, graph, index, progress, signal, workers } = network
  try {
    await mineName({
      name,
      deployment,
      index,
      ...FAKE_MINT_PAYER,
      // A local network has no block headers.
      chainTracker: 'scripts only',
      signal,
      onEvent: (event) => progress.update(event),
      workers,
    })
  } catch (error) {
    if (!(error instanceof MiningError && error.code === 'TAKEN')) throw error
  }
  const origin = await graph.names.originOf(name)
  if (origin === undefined)
    throw new MiningError('BAD_INDEX', `${name} is taken, but the store has no origin for it`)
  return origin
}
