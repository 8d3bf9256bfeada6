import { z } from 'zod'
import {
  HEADER_CHECKPOINTS,
  type HeaderCheckpoint,
} from '../../../backend/src/protocol/header-checkpoints.js'
import { SourceAddressError } from '../../chain/sources/errors.js'
import {
  HEADER_SOURCE_KINDS,
  type HeaderSourceKind,
  PUBLIC_SOURCES,
  parseSources,
  type SourceAddress,
} from '../../chain/sources/source-address.js'

type HeaderSourceAddress = SourceAddress<HeaderSourceKind>

export function sourceList<Kind extends string>(kinds: readonly Kind[]) {
  return z.string().transform((list, context): SourceAddress<Kind>[] => {
    try {
      return parseSources(list, kinds)
    } catch (error) {
      if (!(error instanceof SourceAddressError)) throw error
      context.addIssue(error.message)
      return z.NEVER
    }
  })
}

/** `HEADERS_CHECKPOINT`: `<height>:<hash>:<work>`, with the work in hex; without it, only work above the block counts. */
export const headersCheckpoint = z
  .string()
  .regex(
    /^\d{1,9}:[0-9a-f]{64}(:[0-9a-f]{1,64})?$/i,
    'must look like <height>:<block hash>:<total work in hex>',
  )
  .transform((text): HeaderCheckpoint => {
    const [height, hash = '', hex = '0'] = text.toLowerCase().split(':')
    const work = BigInt(`0x${hex}`)
    return { height: Number(height), hash, work, minimumWork: work }
  })

export const chainTracker = z.enum(
  ['headers', 'scripts-only'],
  'must be headers or scripts-only; services of block headers are for HEADERS_SOURCES',
)

/**
 * The sources of headers: those in `HEADERS_SOURCES`, else the services in `CHAIN_SOURCES` that have headers, else the public
 * ones. The public JungleBus has headers of the main network only.
 */
export function headersSourcesOf(set: {
  headersSources?: HeaderSourceAddress[] | undefined
  chainSources?: SourceAddress[] | undefined
  network: 'main' | 'test'
}): HeaderSourceAddress[] {
  const { headersSources = [], chainSources = [], network } = set
  if (headersSources.length > 0) return headersSources
  const serves = (source: SourceAddress): source is SourceAddress & HeaderSourceAddress =>
    isHeaderKind(source.kind) && (network === 'main' || source.url !== PUBLIC_SOURCES.junglebus)
  const followed = chainSources.filter(serves)
  return followed.length > 0 ? followed : parseSources('junglebus,whatsonchain').filter(serves)
}

function isHeaderKind(kind: string): kind is HeaderSourceKind {
  return HEADER_SOURCE_KINDS.some((each) => each === kind)
}

export function checkpointOf(settings: {
  headersCheckpoint?: HeaderCheckpoint | undefined
  network: 'main' | 'test'
}): HeaderCheckpoint {
  return settings.headersCheckpoint ?? HEADER_CHECKPOINTS[settings.network]
}
