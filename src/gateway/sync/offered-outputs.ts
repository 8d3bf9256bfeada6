import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { MAX_OFFERED, NAME_OUTPUT, type OfferedOutput } from './sync-messages.js'

/** How many outputs are checked against the blocklist at once. */
const CHUNK = 500

/**
 * The outputs of a topic that this host offers its peers: unspent, and not blocked; from a score on, by score, each score once.
 * Names are offered also after a transfer, which is nothing to `tm_names`: an engine's GASP serves only what is offered, so that
 * its hosts would not get a mint all of whose outputs are spent, nor the names below it. A short page is the last one, so blocked
 * outputs must leave no page short.
 *
 * @param query.limit At most {@link MAX_OFFERED}, which is the default.
 */
export async function offeredOutputs(
  query: { topic: string; since: number; limit?: number | undefined },
  graph: Pick<FactStore, 'admissions' | 'served'>,
): Promise<OfferedOutput[]> {
  const { topic } = query
  const always = topic === TOPICS.names ? { always: NAME_OUTPUT } : {}
  const limit = Math.min(query.limit ?? MAX_OFFERED, MAX_OFFERED)
  const page: AdmissionRecord[] = []
  for (let { since } = query; page.length < limit; ) {
    const unspent = graph.admissions.unspentOfTopic({ topic, since, limit, ...always })
    for (let at = 0; at < unspent.length; at += CHUNK) {
      page.push(...graph.served.guard.served(unspent.slice(at, at + CHUNK)))
      await yieldToEventLoop()
    }
    const last = unspent.at(-1)
    if (last === undefined || unspent.length < limit) break
    since = last.score + 1
  }
  return page
    .slice(0, limit)
    .map(({ outpoint, score }) => ({ txid: outpoint.txid, outputIndex: outpoint.vout, score }))
}
