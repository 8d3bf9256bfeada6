import { LOOKUP_SERVICES } from '../protocol/profile.js'
import type { GraphReads } from '../read/fact-store.js'
import { NamesLookupService, type NamesLookupServiceOptions } from './NamesLookupService.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/** What the answers about names depend on, beside the index. */
export type NamesOptions = Pick<NamesLookupServiceOptions, 'deployment' | 'asksNetwork'>

/** `ls_names` and `ls_ordinals` over an index, by their names. */
export function answeringServices(
  reader: GraphReads,
  options: NamesOptions,
): { [LOOKUP_SERVICES.names]: NamesLookupService; [LOOKUP_SERVICES.ordinals]: OrdinalsLookupService } {
  return {
    [LOOKUP_SERVICES.names]: new NamesLookupService({ reader, ...options }),
    [LOOKUP_SERVICES.ordinals]: new OrdinalsLookupService({ reader }),
  }
}
