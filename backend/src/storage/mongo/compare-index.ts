import type { ComparedPart } from '../../graph/index-maintenance.js'
import { COMPARED_PART, COMPARED_SIDES, type ComparedSide } from '../rebuild/derived-tables.js'
import { hashColumn, hexOf, outpointOf } from '../rows/columns.js'
import { heldChunks } from './blob-chunks.js'
import type { Doc, Documents } from './documents.js'

/**
 * Whether topics and index agree, a part of the txids at a time: what a topic holds is found among what the index has of
 * these transactions, and that has no more of them.
 */

/** The txids of a part. */
interface Part {
  $gt: Buffer
  $lte?: Buffer
}

const OUTPOINT = { fields: ['txid', 'vout'] }

/**
 * Compares the part that comes after a txid; the first, where none is given.
 *
 * @param documents Those of one moment, with nobody who writes meanwhile.
 */
export async function comparePart(documents: Documents, after: string | undefined): Promise<ComparedPart> {
  const from = hashColumn(after ?? '')
  const counted = await documents.all(
    'graph_admissions',
    { txid: { $gt: from } },
    { sort: { txid: 1, vout: 1, topic: 1 }, limit: COMPARED_PART + 1, fields: ['txid'] },
  )
  const last: Buffer | undefined = counted[COMPARED_PART]?.txid
  const part: Part = { $gt: from, ...(last && { $lte: last }) }
  const upTo = last && hexOf(last)
  const found: ComparedPart = { upTo, missing: [], extra: 0, lost: await lostIn(documents, part) }
  const admitted = await documents.all(
    'graph_admissions',
    { txid: { ...part } },
    { fields: ['txid', 'vout', 'topic'] },
  )
  for (const side of COMPARED_SIDES) {
    const shown = await shownIn(documents, side, part)
    const known = new Set(shown.map(keyOf))
    const held = admitted.filter(({ topic }) => topic === side.topic)
    const missing = held.filter((doc) => !known.has(keyOf(doc)))
    found.missing.push(...missing.map((doc) => ({ topic: side.topic, outpoint: outpointOf(doc) })))
    found.extra += shown.length - (held.length - missing.length)
  }
  return found
}

/** The outputs of a topic that the index has, and those of which something is said silently. */
async function shownIn(documents: Documents, { tables, kinds }: ComparedSide, part: Part): Promise<Doc[]> {
  const silent = { txid: { ...part }, kind: { $in: kinds } }
  const shown = await documents.all('graph_silent_facts', silent, OUTPOINT)
  for (const table of tables) {
    const admitted = table === 'graph_outputs' ? { carrier: { $ne: true } } : {}
    shown.push(...(await documents.all(table, { txid: { ...part }, ...admitted }, OUTPOINT)))
  }
  return shown
}

function keyOf({ txid, vout }: Doc): string {
  return `${hexOf(txid)}_${vout}`
}

/** The transactions that are done for a topic, without their bytes. */
async function lostIn(documents: Documents, part: Part): Promise<string[]> {
  const applied = await documents.all('graph_applied', { txid: { ...part } }, { fields: ['txid'] })
  const txids = [...new Set(applied.map(({ txid }) => hexOf(txid)))]
  const held = await heldChunks(documents, txids)
  return txids.filter((txid) => !held.has(txid))
}
