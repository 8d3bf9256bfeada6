import type { LookupService } from '@bsv/overlay'
import type { Knex } from 'knex'
import { LOOKUP_SERVICES } from '../protocol/profile.js'
import { type Migration, migrationsFor } from '../storage/sql/migrations.js'
import { SqlGraphStore } from '../storage/sql/sql-graph-store.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/**
 * `ls_ordinals` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * host runs the migrations.
 */
export default function createOrdinalsLookupService(knex: Knex): {
  service: LookupService
  migrations: Migration[]
} {
  const store = new SqlGraphStore({ writer: knex })
  return {
    service: new OrdinalsLookupService({ reader: store, writer: store }),
    migrations: migrationsFor(LOOKUP_SERVICES.ordinals),
  }
}
