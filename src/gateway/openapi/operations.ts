import { CONTENT_OPERATIONS } from './content.js'
import { METADATA_OPERATIONS } from './metadata.js'
import { NAMES_OPERATIONS } from './names.js'
import { PREVIEW_OPERATIONS } from './preview.js'
import { PROVENANCE_OPERATIONS } from './provenance.js'
import { STREAM_OPERATIONS } from './streams.js'

/** What the gateway serves: content at the root, names below theirs prefixes, the others below its own. */
export const GATEWAY_OPERATIONS = {
  content: CONTENT_OPERATIONS,
  names: NAMES_OPERATIONS,
  others: [...STREAM_OPERATIONS, ...METADATA_OPERATIONS, ...PROVENANCE_OPERATIONS, ...PREVIEW_OPERATIONS],
}
