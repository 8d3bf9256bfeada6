import type { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { MAX_OFFERED, type OfferedOutput } from './sync-messages.js'

/** How many outputs are checked against the blocklist at once. */
const CHUNK = 500

/** The output of a mint that is its name. */
const NAME_OUTPUT = 2

/**
 * The outputs of a topic that this host offers its peers: unspent, and not blocked; from a score on, by score. Names are offered
 * also after a transfer, which is nothing to `tm_names`: an engine's GASP serves only what is offered, so that its hosts would
 * not get a mint all of whose outputs are spent, nor the names below it.
 *
 * A full page may end within a score, and the peer continues with that score. So a page always has an output with a higher
 * score, however many have the first one: else the next page would be the same. A short page is the last one, so blocked
 * outputs must leave no page short.
 *
 * @param query.limit At most {@link MAX_OFFERED}, which is the default.
 */
export async function offeredOutputs(
  query: { topic: string; since: number; limit?: number | undefined },
  { graph, guard }: { graph: Pick<GraphStore, 'admissions'>; guard: Pick<BlocklistFilter, 'served'> },
): Promise<OfferedOutput[]> {
  const { topic, since } = query
  const always = topic === TOPICS.names ? { always: NAME_OUTPUT } : {}
  const limit = Math.min(query.limit ?? MAX_OFFERED, MAX_OFFERED)
  for (let requested = limit; ; requested *= 2) {
    const unspent = await graph.admissions.unspentOfTopic({ topic, since, limit: requested, ...always })
    const served: AdmissionRecord[] = []
    for (let at = 0; at < unspent.length; at += CHUNK) {
      served.push(...(await guard.served(unspent.slice(at, at + CHUNK))))
      await yieldToEventLoop()
    }
    const page = served.slice(0, Math.max(limit, pastFirstScore(served)))
    if (unspent.length < requested || (page.length >= limit && page.at(-1)?.score !== page[0]?.score))
      return page.map(({ outpoint, score }) => ({ txid: outpoint.txid, outputIndex: outpoint.vout, score }))
  }
}

/** How many have the score of the first, plus one if there are more. */
function pastFirstScore(served: AdmissionRecord[]): number {
  const other = served.findIndex(({ score }) => score !== served[0]?.score)
  return other === -1 ? served.length : other + 1
}
