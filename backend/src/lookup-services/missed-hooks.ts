import type { EngineOutput, EngineOutputs, OpenEngineOutputs } from '../graph/engine-outputs.js'
import type { FailedHook } from '../graph/hook-outbox.js'
import type { HostStore } from '../graph/host-store.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { topicNames } from '../protocol/profile.js'

/** How many outputs are compared with the index at once. */
const PAGE = 1000
/**
 * How many ids before the last known one are read again. An engine on several connections, or in several processes, may have
 * stored an output with a higher id before one with a lower id was visible.
 */
const OVERLAP = 1000

export interface MissedHooksOptions {
  service: string
  /** The topic of the service; its aliases are included. */
  topic: string
  openEngine: OpenEngineOutputs
  index: Pick<HostStore, 'admissions' | 'settings'>
}

/**
 * The admissions that an engine stored and the index has not got: it was killed before it called the hooks. One for each
 * transaction, oldest first, with the BEEF in which it was submitted.
 *
 * The index also lacks what an engine keeps in case it is an ordinal, and forged mints. These would be read again at each start;
 * so the place up to which everything was passed on is stored, and the next pass starts shortly before it.
 */
export async function* missedHooks(options: MissedHooksOptions): AsyncGenerator<FailedHook> {
  const engine = await options.openEngine()
  if (engine === undefined) return
  try {
    yield* missedIn(engine, options)
  } finally {
    await engine.close()
  }
}

async function* missedIn(
  engine: EngineOutputs,
  { service, topic, index }: MissedHooksOptions,
): AsyncGenerator<FailedHook> {
  const topics = topicNames(topic)
  const setting = `engine outputs of ${service}`
  const known = await index.settings.get(setting)
  let after = await startAfter(engine, { topics, known })
  for (;;) {
    const page = await engine.page({ topics, after, limit: PAGE })
    for (const { outpoint } of await notAdmitted(page, { topic, index })) {
      const beef = await engine.beefOf(outpoint.txid)
      if (beef !== undefined) yield { service, hook: 'admitted', topic, outpoint, beef }
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
  engine: EngineOutputs,
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

/** The first output of each transaction that has one which the index does not hold. */
async function notAdmitted(
  page: EngineOutput[],
  { topic, index }: Pick<MissedHooksOptions, 'topic' | 'index'>,
): Promise<EngineOutput[]> {
  const held = new Set<string>()
  for (const each of await index.admissions.among(page.map(({ outpoint }) => outpoint)))
    if (each.topic === topic) held.add(formatOutpoint(each.outpoint))
  const missed = new Map<string, EngineOutput>()
  for (const each of page) {
    const { txid } = each.outpoint
    if (!held.has(formatOutpoint(each.outpoint)) && !missed.has(txid)) missed.set(txid, each)
  }
  return [...missed.values()]
}
