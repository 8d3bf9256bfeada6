import type { Interactions } from '../../graph/graph-store.js'
import type { Settings } from '../../graph/host-store.js'
import type { RowDatabase, RowReader } from '../rows/rows.js'

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

/** The name of the setting that holds the checkpoint while the index is incomplete. */
export const REBUILD_CHECKPOINT = 'reindex'
/** What its value starts with once the index is empty and transactions are recorded again. */
export const REBUILT_FROM = 'from '

/** Whether transactions are recorded again, so that conflicts are resolved as they were before. */
export async function isRebuilding(rows: RowReader): Promise<boolean> {
  const setting = await rows.first('graph_settings', { name: REBUILD_CHECKPOINT }, { fields: ['value'] })
  return String(setting?.value).startsWith(REBUILT_FROM)
}
