import type { GraphTables } from '../write/graph-tables.js'
import { memoizedTables } from '../write/memoized-tables.js'
import { lineagesIn } from './lineages.js'
import { mapsIn } from './maps.js'
import { outputTablesIn } from './output-tables.js'
import type { PendingDocuments } from './pending-documents.js'
import { transactionTablesIn } from './transaction-tables.js'

/** What one write asks of MongoDB, with what it is about to write laid over it. */
export function tablesIn(pending: PendingDocuments, derives = false): GraphTables {
  return {
    transactions: memoizedTables(transactionTablesIn(pending, derives)),
    outputs: outputTablesIn(pending),
    rows: { ...lineagesIn(pending), ...mapsIn(pending) },
  }
}
