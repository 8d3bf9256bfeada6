import type { Knex } from 'knex'
import { checksumOf } from '../../read/read-blobs.js'
import { bytesOf } from '../../rows/columns.js'

const TABLE = 'graph_pieces'

/** Checksums of the chunks that no hash identifies, by which damaged ones are found. */
export const checksums = {
  name: '014-checksums',

  async up(knex: Knex): Promise<void> {
    if (await knex.schema.hasColumn(TABLE, 'checksum')) return
    await knex.schema.alterTable(TABLE, (table) => {
      table.binary('checksum', 32)
    })
    for (let last: { owner: Buffer; position: number } | undefined; ; ) {
      const next: { owner: unknown; position: unknown; bytes: unknown } | undefined = await after(knex, last)
      if (next === undefined) return
      const chunk = bytesOf(next.bytes)
      last = { owner: Buffer.from(bytesOf(next.owner)), position: Number(next.position) }
      const hasMore =
        last.position > 0 || (await knex(TABLE).where({ owner: last.owner, position: 1 }).first('position'))
      const length = hasMore ? Number.POSITIVE_INFINITY : chunk.length
      const checksum = checksumOf(chunk, { owner: last.owner, length })
      if (checksum !== null) await knex(TABLE).where(last).update({ checksum })
    }
  },

  async down(knex: Knex): Promise<void> {
    // The other lookup service of a host may have been first.
    if (!(await knex.schema.hasTable(TABLE)) || !(await knex.schema.hasColumn(TABLE, 'checksum'))) return
    await knex.schema.alterTable(TABLE, (table) => {
      table.dropColumn('checksum')
    })
  },
}

async function after(knex: Knex, last: { owner: Buffer; position: number } | undefined) {
  const chunks = knex(TABLE).orderBy(['owner', 'position']).limit(1)
  const [sameOwner] =
    last === undefined
      ? []
      : await chunks.clone().where({ owner: last.owner }).where('position', '>', last.position).select('*')
  if (sameOwner !== undefined) return sameOwner
  const [next] = await (last === undefined ? chunks : chunks.where('owner', '>', last.owner)).select('*')
  return next
}
