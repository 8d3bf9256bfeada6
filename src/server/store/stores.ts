import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import type { AncestorQueue } from '../../../backend/src/graph/ancestor-queue.js'
import type { HeldSubmissions, HostStore } from '../../../backend/src/graph/host-store.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import type { Config } from '../config/config.js'
import type { NodeIndex } from './index-status.js'

/** What gateways that share a log do for all of them: one at a time follows the chain, and one syncs with peers. */
export type Job = 'follow' | 'sync'

/** Who of several gateways does a job. */
export interface Jobs {
  /** Has this gateway do jobs when no other one does. */
  seek(jobs: readonly Job[]): void
  isMine(job: Job): boolean
  /** See `ArcIngestOptions`. */
  passOn(txid: string, proof: Proof): Promise<void>
}

/** A store as the main thread of a node has it. */
export interface NodeStore {
  /** With answers and bodies in memory. */
  graph: HostStore
  /** How that memory was used. */
  caches: Readonly<Record<'answers' | 'bodies', Readonly<{ hits: number; misses: number }>>>
  index: NodeIndex
}

/** The store of a host. */
export interface Stores {
  graph: HostStore
  held: HeldSubmissions
  ancestors: AncestorQueue
  /** Whether other processes may write to it, too. */
  isShared: boolean
  /** Resolves when the store can be read: a log that several gateways share is copied first. */
  logRead?: Promise<void>
  /** Of a log that several gateways share. */
  jobs?: Jobs | undefined
  /** How far the index has come in a log that several gateways share. */
  position?: (() => number) | undefined
  /** Opens it for the main thread of a node, which keeps answers in memory and makes the index complete. */
  forNode(options: { maxBytes: number; logger: Logger }): Promise<NodeStore>
  /**
   * From now on admissions are derived by these rules.
   *
   * @param config What they follow from.
   * @throws ConfigError if what is stored was derived by others.
   */
  deriveBy(admission: AdmissionOptions, config: Config): Promise<void>
  /** A port by which another thread of this process writes; undefined if the writer is in this thread. */
  shareWriter(): MessagePort | undefined
  close(): Promise<void>
}
