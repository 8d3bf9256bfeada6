import { z } from 'zod'

/** The services that block headers are fetched from. */
const KINDS = ['junglebus', 'whatsonchain', 'chaintracks'] as const

export interface HeaderSourceAddress {
  kind: (typeof KINDS)[number]
  /** Without a slash at the end. */
  url: string
}

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

/** The services that anybody may ask for the live chain, in the order in which they are asked. */
const PUBLIC: HeaderSourceAddress[] = [
  { kind: 'junglebus', url: 'https://junglebus.gorillapool.io' },
  { kind: 'whatsonchain', url: 'https://api.whatsonchain.com' },
]

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

/** How many sources a list may have. */
const MAX_SOURCES = 10

/** `HEADERS_SOURCES`: `junglebus` and `whatsonchain`, the public ones, or `<kind>=<url>`, separated by commas. */
export const headersSources = z.string().transform((list, context): HeaderSourceAddress[] => {
  const sources = list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(sourceOf)
  if (sources.length > 0 && sources.length <= MAX_SOURCES && sources.every((source) => source !== undefined))
    return sources
  context.addIssue(
    `must be up to ${MAX_SOURCES} of junglebus, whatsonchain and <kind>=<url> with kind ${KINDS.join(', ')}, separated by commas`,
  )
  return z.NEVER
})

function sourceOf(part: string): HeaderSourceAddress | undefined {
  const known = PUBLIC.find(({ kind }) => kind === part)
  if (known !== undefined) return known
  const [, written, url = ''] = /^([a-z]+)=(.*)$/.exec(part) ?? []
  const kind = KINDS.find((each) => each === written)
  return kind === undefined || !isPlainUrl(url) ? undefined : { kind, url: url.replace(/\/+$/, '') }
}

/** Whether paths can be appended to a URL. */
function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, search, hash, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && search + hash + username + password === ''
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

/** Where headers are fetched from. The public services have the headers of the main network; WhatsOnChain has both. */
export function headerSourcesOf({ headersSources: set, network }: HeaderSettings): HeaderSourceAddress[] {
  return set ?? PUBLIC.filter(({ kind }) => network === 'main' || kind === 'whatsonchain')
}

export function checkpointOf({ headersCheckpoint: set, network }: HeaderSettings): HeaderCheckpoint {
  return set ?? CHECKPOINTS[network]
}

interface HeaderSettings {
  headersSources?: HeaderSourceAddress[] | undefined
  headersCheckpoint?: HeaderCheckpoint | undefined
  network: 'main' | 'test'
}
