import type { Profile } from '../../../backend/src/protocol/profile.js'
import { CONTENT_PATHS } from './content-paths.js'
import { METADATA_PATHS } from './metadata-paths.js'
import { NAMES_PATHS } from './names-paths.js'
import { mounted, type Paths } from './operation.js'
import { PREVIEW_PATHS } from './preview-paths.js'
import { PROVENANCE_PATHS } from './provenance-paths.js'
import { STREAM_PATHS } from './stream-paths.js'

/** What the gateway serves, below the prefixes of a profile. */
export function gatewayPaths({ gatewayPrefixes, namesPrefixes }: Profile): Paths {
  return {
    ...CONTENT_PATHS,
    ...mounted(NAMES_PATHS, namesPrefixes),
    ...mounted(
      { ...STREAM_PATHS, ...METADATA_PATHS, ...PROVENANCE_PATHS, ...PREVIEW_PATHS },
      gatewayPrefixes,
    ),
  }
}
