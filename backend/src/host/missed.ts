import { formatOutpoint } from '../protocol/outpoint.js'
import { topicNames } from '../protocol/profile.js'
import type { FactStore } from '../read/fact-store.js'
import type { EngineOutput, EngineTables } from './engine-tables.js'

/** How many outputs are compared with the index at once. */
const PAGE = 250
/**
 * How many ids before the last known one are read again. An engine on several connections, or in several processes, may have
 * stored an output with a higher id before one with a lower id was visible.
 */
const OVERLAP = 1000

interface Missing {
  engine: EngineTables
  /** Aliases are included. */
  topic: string
  index: Pick<FactStore, 'admissions' | 'settings'>
}

/**
 * The BEEFs of what an engine has admitted to a topic and the index has not got, a transaction at a time, oldest first.
 *
 * The index also lacks what an engine keeps in case it is an ordinal, and forged mints. These would be read again at each start;
 * so the place up to which everything was passed on is stored, and the next pass starts shortly before it.
 */
export async function* missed({ engine, topic, index }: Missing): AsyncGenerator<Uint8Array> {
  const topics = topicNames(topic)
  const setting = `engine outputs of ${topic}`
  const known = await index.settings.get(setting)
  let after = await startAfter(engine, { topics, known })
  for (;;) {
    const page = await engine.page({ topics, after, limit: PAGE })
    for (const txid of await notAdmitted(page, { topic, index })) {
      const beef = await engine.beefOf(txid)
      if (beef !== undefined) yield beef
    }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.id
    // By now, the caller has recorded all of the page.
    if (placeOf(last) !== known) await index.settings.set(setting, placeOf(last))
    if (page.length < PAGE) return
  }
}

/** The id to continue after: shortly before the known place, if the engine still has the same output there. */
async function startAfter(
  engine: EngineTables,
  { topics, known = '' }: { topics: readonly string[]; known: string | undefined },
): Promise<number> {
  const id = Number.parseInt(known, 10)
  if (Number.isNaN(id)) return 0
  // Another one, if the database was emptied or replaced.
  const [output] = await engine.page({ topics, after: id - 1, limit: 1 })
  return output !== undefined && placeOf(output) === known ? Math.max(id - OVERLAP, 0) : 0
}

function placeOf({ id, outpoint }: EngineOutput): string {
  return `${id} ${formatOutpoint(outpoint)}`
}

/** The transactions of a page with an output that the index does not hold. */
async function notAdmitted(
  page: EngineOutput[],
  { topic, index }: Pick<Missing, 'topic' | 'index'>,
): Promise<Set<string>> {
  const held = new Set<string>()
  for (const each of await index.admissions.among(page.map(({ outpoint }) => outpoint)))
    if (each.topic === topic) held.add(formatOutpoint(each.outpoint))
  return new Set(page.flatMap(({ outpoint }) => (held.has(formatOutpoint(outpoint)) ? [] : [outpoint.txid])))
}
