import type { GraphTables } from '../graph-tables.js'
import { rememberingReads } from '../remembered-reads.js'
import { lineagesIn } from './lineage-reads.js'
import { mapsIn } from './map-reads.js'
import { outputTablesIn } from './output-tables.js'
import type { PendingDocuments } from './pending-documents.js'
import { transactionTablesIn } from './transaction-tables.js'

/** What one write asks of MongoDB, with what it is about to write laid over it. */
export function tablesIn(pending: PendingDocuments, derives = false): GraphTables {
  return {
    transactions: rememberingReads(transactionTablesIn(pending, derives)),
    outputs: outputTablesIn(pending),
    rows: { ...lineagesIn(pending), ...mapsIn(pending) },
  }
}
