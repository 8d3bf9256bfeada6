import type { HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { IndexComparison, IndexRebuild } from '../../../backend/src/graph/index-maintenance.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'

/** A database that a graph may be stored in, and how tests come by stores on it. */
export interface Engine {
  name: string
  /** The programmes that this machine lacks for it: tests on it are skipped where there is one. */
  missing: string[]
  /** What part of its cases a property is tried with: where a server is asked, each takes longer. */
  share: number
  /** Once before the stores of a test file. */
  start(): Promise<void>
  /** Opens a fresh store, its schema up to date. */
  open(): Promise<OpenedStore>
  /** Once after them. */
  stop(): Promise<void>
}

/** An engine whose stores derive admissions, whatever else they can. */
export interface DerivingEngine extends Omit<Engine, 'open'> {
  open(): Promise<DerivingStore>
}

/** An open store that derives admissions. */
export interface DerivingStore {
  store: HostStore
  /** Another store over the same data, that was not opened, and reads as a plugin's does. */
  another(): HostStore
  /**
   * Every row of every table of the admitted graph: by table, as text, in an order of its own. When things came is left
   * out, and how often was written.
   */
  rows(): Promise<Record<string, string[]>>
  /** Makes the database refuse what is new in a table, or every new fact, until what it gives is called. */
  breakInserts(table: string): Promise<() => Promise<void>>
  /** Derives everything again. */
  rebuild(): Promise<void>
  close(): Promise<void>
}

/** An open store, and what tests do behind its back. */
export interface OpenedStore extends DerivingStore {
  notes: HookOutbox
  maintenance: IndexComparison & IndexRebuild
  /** How often the database was asked for the sake of `store` by now. */
  reads(): number
  removeOutput(outpoint: Outpoint): Promise<void>
  /** Removes the bytes of a transaction. */
  removeBytes(txid: string): Promise<void>
}
