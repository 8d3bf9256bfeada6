import type { Interactions } from '../../graph/graph-store.js'
import type { Settings } from '../../graph/host-store.js'
import type { RowDatabase } from '../rows/rows.js'

/** The settings of a store. */
export function settingsIn(database: RowDatabase): Settings {
  return {
    async get(name) {
      return (await database.first('graph_settings', { name }, { fields: ['value'] }))?.value
    },
    async set(name, value) {
      await database.write((rows) => rows.put('graph_settings', { name, value }))
    },
  }
}

/** How far the sync with peers has come. */
export function interactionsIn(database: RowDatabase): Interactions {
  return {
    async last(host, topic) {
      const row = await database.first('graph_interactions', { host, topic }, { fields: ['since'] })
      return Number(row?.since ?? 0)
    },
    async setLast(host, topic, since) {
      await database.write((rows) => rows.put('graph_interactions', { host, topic, since }))
    },
  }
}
