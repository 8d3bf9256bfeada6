import type { HostHooks } from '../../../backend/src/graph/host-index.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { recordBeef, recordEviction } from '../../../backend/src/host/record.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'

/** Hooks that write at once, and throw what goes wrong. */
export function directHooks(store: HostStore, deployment?: Deployment): HostHooks {
  return {
    async opened() {},
    needsTransactions: true,
    async admitted(payload) {
      if (payload.mode === 'whole-tx') await recordBeef(store, readBeef(payload.atomicBEEF), deployment)
    },
    async spentBy() {},
    evicted: (outpoint) => recordEviction(store, outpoint),
    async close() {},
  }
}
