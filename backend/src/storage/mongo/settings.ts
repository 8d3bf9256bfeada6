import type { Interactions } from '../../graph/graph-store.js'
import type { Settings } from '../../graph/host-store.js'
import { COLLECTIONS } from './collections.js'
import type { Documents } from './documents.js'
import type { MongoWriter } from './writer.js'

interface MongoAccess {
  documents: Documents
  writer: MongoWriter
}

/** The settings of a store. */
export function settingsIn({ documents, writer }: MongoAccess): Settings {
  return {
    async get(name) {
      return (await documents.first('graph_settings', { _id: name }, { fields: ['value'] }))?.value
    },
    async set(name, value) {
      await writer.write((pending) => pending.put('graph_settings', { name, value }))
    },
  }
}

/** How far the sync with peers has come. */
export function interactionsIn({ documents, writer }: MongoAccess): Interactions {
  return {
    async last(host, topic) {
      const _id = COLLECTIONS.graph_interactions.idOf({ host, topic })
      const doc = await documents.first('graph_interactions', { _id }, { fields: ['since'] })
      return doc?.since ?? 0
    },
    async setLast(host, topic, since) {
      await writer.write((pending) => pending.put('graph_interactions', { host, topic, since }))
    },
  }
}
