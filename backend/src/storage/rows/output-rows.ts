import type { OutputRecord } from '../../graph/records.js'
import { bytesOf, hexOf, type OutpointRow, outpointOf } from './columns.js'

/** An output as it stands in `graph_outputs`: columns of a table, or fields of a document. */
export interface OutputRow extends OutpointRow {
  satoshis: unknown
  content_sha256: unknown
  content_type: unknown
  content_length: unknown
  previous_txid: unknown
  previous_vout: unknown
  unsettled: unknown
  carrier: unknown
  owner: unknown
  parent_txid: unknown
  parent_vout: unknown
  map_length: unknown
}

/** The columns of an {@link OutputRow}. Named one by one: a driver takes longer over a column than over finding the row. */
export const OUTPUT = [
  'txid',
  'vout',
  'satoshis',
  'content_sha256',
  'content_type',
  'content_length',
  'previous_txid',
  'previous_vout',
  'unsettled',
  'carrier',
  'owner',
  'parent_txid',
  'parent_vout',
  'map_length',
]

export function outputOf(row: OutputRow): OutputRecord {
  const content = contentOf(row)
  return {
    outpoint: outpointOf(row),
    satoshis: Number(row.satoshis),
    ...(content && { content }),
    ...(row.owner !== null && { owner: hexOf(row.owner) }),
    ...(row.parent_txid !== null && {
      parent: outpointOf({ txid: row.parent_txid, vout: row.parent_vout }),
    }),
    ...(row.map_length !== null && { mapLength: Number(row.map_length) }),
    ...(row.previous_txid !== null && {
      previous: outpointOf({ txid: row.previous_txid, vout: row.previous_vout }),
    }),
    ...(Number(row.unsettled) === 1 && { unsettled: true }),
    ...(Number(row.carrier) === 1 && { carrier: true }),
  }
}

/** The content of an output; undefined where it has none. */
export function contentOf(
  row: Pick<OutputRow, 'content_sha256' | 'content_type' | 'content_length'>,
): OutputRecord['content'] {
  if (row.content_sha256 === null) return undefined
  return {
    sha256: hexOf(row.content_sha256),
    contentType: Buffer.from(bytesOf(row.content_type)).toString('utf8'),
    length: Number(row.content_length),
  }
}
