import type { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { MAX_OFFERED, type OfferedOutput } from './sync-messages.js'

/** How many outputs the store is asked about at once, where some may be blocked. */
const CHUNK = 500

/**
 * The outputs of a topic that this host offers its peers: unspent, and not blocked; from a score on, by score.
 *
 * A page that is as long as it was asked to be may end within a score, and whoever asks goes on with that score. So there
 * is always one of a higher score on it, however many outputs have the first one: else the next page would be the same.
 * A page that is short is the last one, so that what is blocked leaves no page short.
 *
 * @param query.limit {@link MAX_OFFERED} at the most, and where it is not given.
 */
export async function offeredOutputs(
  query: { topic: string; since: number; limit?: number | undefined },
  { graph, guard }: { graph: Pick<GraphStore, 'admissions'>; guard: Pick<BlocklistFilter, 'served'> },
): Promise<OfferedOutput[]> {
  const { topic, since } = query
  const limit = Math.min(query.limit ?? MAX_OFFERED, MAX_OFFERED)
  for (let asked = limit; ; asked *= 2) {
    const unspent = await graph.admissions.unspentOfTopic({ topic, since, limit: asked })
    const served: AdmissionRecord[] = []
    for (let at = 0; at < unspent.length; at += CHUNK) {
      served.push(...(await guard.served(unspent.slice(at, at + CHUNK))))
      await yieldToEventLoop()
    }
    const page = served.slice(0, Math.max(limit, pastFirstScore(served)))
    if (unspent.length < asked || (page.length >= limit && page.at(-1)?.score !== page[0]?.score))
      return page.map(({ outpoint, score }) => ({ txid: outpoint.txid, outputIndex: outpoint.vout, score }))
  }
}

/** How many have the score of the first, and one more where there is one. */
function pastFirstScore(served: AdmissionRecord[]): number {
  const other = served.findIndex(({ score }) => score !== served[0]?.score)
  return other === -1 ? served.length : other + 1
}
