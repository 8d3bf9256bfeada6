import type { Knex } from 'knex'
import type { Interactions } from '../../graph/graph-store.js'
import type { Settings } from '../../graph/host-store.js'
import type { SqlReader } from './database.js'

interface SqlAccess {
  knex: Knex
  reader: SqlReader
}

/** The settings of a store. */
export function settingsIn({ knex, reader }: SqlAccess): Settings {
  return {
    async get(name) {
      const row = await reader.first('select value from graph_settings where name = ?', [name])
      return row?.value
    },
    async set(name, value) {
      await knex('graph_settings').insert({ name, value }).onConflict(['name']).merge(['value'])
    },
  }
}

/** The progress of the sync with peers. */
export function interactionsIn({ knex, reader }: SqlAccess): Interactions {
  return {
    async last(host, topic) {
      const row = await reader.first('select since from graph_interactions where host = ? and topic = ?', [
        host,
        topic,
      ])
      return Number(row?.since ?? 0)
    },
    async setLast(host, topic, since) {
      await knex('graph_interactions')
        .insert({ host, topic, since })
        .onConflict(['host', 'topic'])
        .merge(['since'])
    },
  }
}

/** The setting that counts reorganisations: reads belong to one state if there was none between them. */
const REORG_COUNT = 'turns'

export async function reorgCountOf(reader: SqlReader): Promise<number> {
  const row = await reader.first('select value from graph_settings where name = ?', [REORG_COUNT])
  return Number(row?.value ?? 0)
}

export async function countReorg(trx: Knex.Transaction): Promise<void> {
  const row = await trx('graph_settings').where({ name: REORG_COUNT }).first('value')
  const value = String(Number(row?.value ?? 0) + 1)
  await trx('graph_settings').insert({ name: REORG_COUNT, value }).onConflict(['name']).merge(['value'])
}
