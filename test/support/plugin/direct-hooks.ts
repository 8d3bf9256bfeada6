import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { recordBeef, recordEviction } from '../../../backend/src/host/record.js'
import type { Hosted } from '../../../backend/src/lookup-services/services.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'

/** Hooks that write at once, and throw what goes wrong. */
export function directHooks(store: FactStore, deployment?: Deployment): Omit<Hosted, 'store' | 'users'> {
  return {
    needsTransactions: true,
    async admitted(payload) {
      if (payload.mode === 'whole-tx') await recordBeef(store, readBeef(payload.atomicBEEF), deployment)
    },
    async spentBy() {},
    evicted: (outpoint) => recordEviction(store, outpoint),
    async close() {},
  }
}
