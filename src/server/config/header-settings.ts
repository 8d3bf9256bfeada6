import { z } from 'zod'
import { SourceAddressError } from '../../follow/errors.js'
import {
  HEADER_SOURCE_KINDS,
  type HeaderSourceKind,
  PUBLIC_SOURCES,
  parseSources,
  type SourceAddress,
} from '../../follow/source-address.js'

type HeaderSourceAddress = SourceAddress<HeaderSourceKind>

/** A block that the chain must have. */
export interface HeaderCheckpoint {
  height: number
  /** Hex in display order. */
  hash: string
  /** The work of the chain up to it, itself included. */
  work: bigint
  /** The least work of a chain that is believed above the checkpoint. */
  minimumWork: bigint
}

/**
 * The checkpoints of both networks. Source: the table of bulk header files that Chaintracks verifies downloads by
 * (bsv-blockchain/ts-stack at c3fe101c, `packages/wallet/wallet-toolbox/src/services/chaintracker/chaintracks/util/
 * validBulkHeaderFilesByFileHash.ts`): `lastHash` and `lastChainWork` of the last file of 100,000 headers, and as minimum
 * the `lastChainWork` of the file after it. The 16,818 mainnet headers from 900,000 on that bsv-blockchain/go-chaintracks
 * ships (`data/headers/mainNet_9.headers` at 5b22f7c) follow this hash, by all rules that are checked here.
 */
const CHECKPOINTS: Record<'main' | 'test', HeaderCheckpoint> = {
  main: {
    height: 899_999,
    hash: '00000000000000000e7dcc27c06ee353bd37260b2e7e664314c204f0324a5087',
    work: 0x1664db1f2d50327928007e0n,
    // The chain at 942,760.
    minimumWork: 0x16bf64e6fb83417f3b94c86n,
  },
  test: {
    height: 1_699_999,
    hash: '000000000001561e0532f48401f822f5c0d8797e364b1d612a317eca6983ca36',
    work: 0x15814b9c82dabd4ea74n,
    // The chain at 1,728,129.
    minimumWork: 0x1581bdf712d6fabd4dan,
  },
}

/** A list of sources of some kinds, such as `CHAIN_SOURCES`. */
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

/** `CHAIN_TRACKER`. */
export const chainTracker = z.string().refine((text) => {
  const [, url = text] = /^chaintracks=(.*)$/s.exec(text) ?? []
  if (['headers', 'scripts-only', 'whatsonchain'].includes(text)) return true
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}, 'must be headers, scripts-only, whatsonchain, the URL of a headers service, or chaintracks=<url>')

/**
 * Where headers are fetched from: what `HEADERS_SOURCES` names, else the services of `CHAIN_SOURCES` that have headers, else the
 * public ones. The public JungleBus has those of the main network alone.
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
  return settings.headersCheckpoint ?? CHECKPOINTS[settings.network]
}
