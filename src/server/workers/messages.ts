import type { AddressInfo } from 'node:net'
import type { Config } from '../config/config.js'
import type { StoreChange } from '../store/caching-store.js'
import type { IndexStatus } from '../store/index-maintenance.js'
import type { LogRecord } from '../submission/submission-worker.js'
import type { ProcessMetrics } from '../telemetry/metrics.js'
import type { WriterAddress } from './passed-on.js'

/** What a reader needs to know to open the store and to answer. */
export interface ReaderSetup {
  /** The settings, with the tree of the store and this reader's share of the limits. */
  config: Config
  index: IndexStatus
  writer: WriterAddress
  /** How many readers there are. */
  readers: number
}

/** So many further requests that a client may send to one reader. */
export interface Grant {
  /** The number of the last of them in this window. */
  upTo: number
  count: number
  /** When the window ends, in milliseconds since 1970. */
  resetTime: number
}

/**
 * What the writer sends to a reader, which handles it in this order: one that is to `listen` has handled every change before,
 * and none reaches it later than its next answer.
 */
export type ToReader =
  | { kind: 'open'; setup: ReaderSetup }
  | { kind: 'listen' }
  | ({ id: number } & Notice)
  | { kind: 'granted'; id: number; grant: Grant }
  | { kind: 'measure'; id: number }
  | { kind: 'finish' }

/** What a reader acknowledges. */
export type Notice =
  | { kind: 'changed'; change: StoreChange }
  | { kind: 'index'; index: IndexStatus }
  | { kind: 'ping' }

export type FromReader =
  /** It has loaded its modules; what is sent earlier may be lost. */
  | { kind: 'loaded' }
  | { kind: 'opened' }
  | { kind: 'listening'; address: AddressInfo }
  /** It cannot open the store, or cannot listen. */
  | { kind: 'failed'; reason: string }
  /** @property answered How many requests it has answered itself. */
  | { kind: 'acknowledged'; id: number; answered: number }
  | { kind: 'measured'; id: number; metrics: ProcessMetrics }
  | { kind: 'reads wanted'; id: number; client: string }
  | { kind: 'reads returned'; client: string; count: number; resetTime: number }
  | { kind: 'logged'; record: LogRecord }
