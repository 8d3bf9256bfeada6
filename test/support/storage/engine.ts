import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'

/** An open store that derives admissions, and what tests do behind its back. */
export interface DerivingStore {
  store: FactStore & {
    /** From now on its index is derived by these rules. */
    deriveBy(admission: AdmissionOptions): void
  }
  /** Another store over the same data, that was not opened. */
  another(): DerivingStore['store']
  /**
   * Every row of every table: by table, as text, in an order of its own. When things came is left out, and how often was written.
   */
  rows(): Promise<Record<string, string[]>>
  /** What is in use of the log and of the index. */
  bytes(): number
  /** Makes the log refuse every new fact until what it gives is called. */
  breakInserts(): Promise<() => Promise<void>>
  /** Derives everything again, and expects the same. */
  rebuild(): Promise<void>
  close(): Promise<void>
}
