import type { KernelName } from './nonce-kernel.js'
import type { SearchTask } from './nonce-scanner.js'

/** What a worker is told, once it has said that it is ready. */
export interface WorkerTask extends SearchTask {
  /** Unset: the fastest that can be had. */
  kernel?: KernelName
}

/** What a worker says. `hashes` are those since it last said so. */
export type WorkerMessage =
  | { kind: 'ready' }
  | { kind: 'tried'; hashes: number }
  | { kind: 'found'; hashes: number; nonce: Uint8Array }
  | { kind: 'failed'; message: string }
