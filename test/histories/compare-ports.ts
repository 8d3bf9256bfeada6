import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { Model } from './model.js'

/**
 * Asks the ports of a store about every transaction and about what peers are offered.
 *
 * @param options.isUndecided Transactions of which nobody has decided yet whether they count.
 */
export async function comparePorts(
  { graph, model }: { graph: Pick<FactStore, 'transactions' | 'admissions'>; model: Model },
  { got, expected }: Record<'got' | 'expected', Record<string, unknown>>,
  { isUndecided = () => false }: { isUndecided?: (txid: string) => boolean } = {},
): Promise<void> {
  const { answers, history, proofs } = model
  const { counts } = answers.decision
  for (const { txid } of history.transactions) {
    const record = await graph.transactions.get(txid)
    const proof = proofs.get(txid)
    got[`transaction ${txid}`] = record && { height: record.proof?.height, root: record.proof?.root }
    expected[`transaction ${txid}`] = model.isKnown(txid)
      ? { height: proof?.height, root: proof?.root }
      : undefined
    if (isUndecided(txid)) continue
    got[`inactive ${txid}`] = (await graph.transactions.reasonAgainst(txid)) !== undefined
    expected[`inactive ${txid}`] = model.isKnown(txid) && !counts.has(txid)
  }
  for (const topic of [TOPICS.names, TOPICS.ordinals] as const) {
    const unspent = await graph.admissions.unspentOfTopic({ topic, since: 0 })
    got[`unspent of ${topic}`] = unspent.map(({ outpoint }) => formatOutpoint(outpoint)).sort()
    expected[`unspent of ${topic}`] = [...answers.admitted[topic]]
      .filter((each) => counts.has(each.slice(0, 64)) && !answers.isInput(each))
      .sort()
  }
}
