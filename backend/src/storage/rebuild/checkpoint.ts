import type { RebuildCheckpoint } from '../../graph/index-maintenance.js'
import { hashColumn, hexOf } from '../rows/columns.js'

/** How the mark of a rebuild stands among the settings of a store, and a place in the order of arrivals as text. */

/** The name of the setting that is there while the index is not whole. */
export const REBUILD_CHECKPOINT = 'reindex'
const NEEDED = 'needed'
const FROM = 'from '

export function markText(mark: RebuildCheckpoint): string {
  return mark.state === 'needed' ? NEEDED : FROM + mark.place
}

export function markOf(text: string): RebuildCheckpoint {
  return text.startsWith(FROM) ? { state: 'under way', place: text.slice(FROM.length) } : { state: 'needed' }
}

/** A place in the order of arrivals: the number of the write that brought a transaction, and its txid. */
export function placeText(row: { arrival: unknown; txid: unknown }): string {
  return `${Number(row.arrival)} ${hexOf(row.txid)}`
}

/** What such a text says; of an empty one, what is before all arrivals. */
export function placeOf(text: string): { arrival: number; txid: Buffer } {
  const [arrival = '', txid = ''] = text.split(' ')
  return { arrival: Number(arrival), txid: hashColumn(txid) }
}
