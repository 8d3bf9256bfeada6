import type { AdmissionOptions } from './admission-rules.js'
import type { GraphStore } from './graph-store.js'

/** A graph store with what a host asks of the one that it opens itself: no reader and no service needs more than the graph. */
export interface HostStore extends GraphStore {
  /** Brings the schema up to date, and reads what is blocked. */
  open(): Promise<void>
  /**
   * From now on, what is recorded is judged by these rules: the store derives the admissions of all that it knows. Without
   * them, as in a host whose engine judges, it holds those that it is told.
   */
  deriveBy(admission: AdmissionOptions): void
  /** Whether the database answers. @throws what the driver throws where it does not. */
  ping(): Promise<void>
  /** Whether it holds no transaction. */
  isEmpty(): Promise<boolean>
  /** A fact about the store itself, such as the tree it holds; undefined where it was never set. */
  setting(name: string): Promise<string | undefined>
  setSetting(name: string, value: string): Promise<void>
  /** How often a branch has turned: reads go together where none has turned between them. */
  reorgCount(): Promise<number>
  /** How often was written by whichever process, where several may have the database; what one process has need not count. */
  written(): Promise<number>
  /** Reads what is blocked anew: somebody else has written. */
  readBlocklist(): Promise<void>
}
