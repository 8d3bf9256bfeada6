import { join } from 'node:path'
import { Journal, type Payment } from '../../../src/payments/journal.js'

/** The payments in the journal of a user whose data is in a folder (`XDG_DATA_HOME`). */
export function paymentsIn(folder: string): Payment[] {
  const journal = new Journal(join(folder, 'minetree/payments.db'), 'local')
  try {
    return journal.payments()
  } finally {
    journal.close()
  }
}

/** What became of each of them, in order; `admitted` if a server has it, and it is in no block. */
export const statesIn = (folder: string): string[] =>
  paymentsIn(folder).map(({ state, isAdmitted }) => (state === 'sent' && isAdmitted ? 'admitted' : state))
