import { SourceAddressError } from './errors.js'

/** The kinds of services by which the chain can be followed. */
export const SOURCE_KINDS = ['junglebus', 'whatsonchain', 'overlay', 'arc'] as const
export type SourceKind = (typeof SOURCE_KINDS)[number]

/** The kinds of services that block headers can be fetched from. */
export const HEADER_SOURCE_KINDS = ['junglebus', 'whatsonchain', 'chaintracks', 'headersservice'] as const
export type HeaderSourceKind = (typeof HEADER_SOURCE_KINDS)[number]

export interface SourceAddress<Kind extends string = SourceKind> {
  kind: Kind
  /** Without a trailing slash. */
  url: string
}

/** Public services for the live chain. */
export const PUBLIC_SOURCES = {
  junglebus: 'https://junglebus.gorillapool.io',
  whatsonchain: 'https://api.whatsonchain.com',
} as const

/** The requests a second that WhatsOnChain allows without a key (https://docs.taal.com/core-products/whatsonchain). */
const WHATSONCHAIN_RATE = 3
/** The most sources in a list. */
const MAX_SOURCES = 10

/**
 * Parses a list of sources, in order of preference: names of public ones, `<kind>=<url>`, or a URL, which means a JungleBus.
 * `none` is the empty list.
 *
 * @throws SourceAddressError that quotes the invalid part.
 */
export function parseSources(list: string): SourceAddress[]
export function parseSources<Kind extends string>(list: string, kinds: readonly Kind[]): SourceAddress<Kind>[]
export function parseSources(list: string, kinds: readonly string[] = SOURCE_KINDS): SourceAddress<string>[] {
  const parts = list.split(',').map((part) => part.trim())
  if (parts.length === 1 && parts[0] === 'none') return []
  const sources = new Map<string, SourceAddress<string>>()
  for (const part of parts.filter((part) => part !== '')) {
    const source = parseSource(part, kinds)
    sources.set(sourceName(source) + source.url, source)
  }
  if (sources.size === 0 || sources.size > MAX_SOURCES)
    throw new SourceAddressError(`must name 1 to ${MAX_SOURCES} sources, or none`)
  return [...sources.values()]
}

function parseSource(part: string, kinds: readonly string[]): SourceAddress<string> {
  if (isPublic(part)) return { kind: part, url: PUBLIC_SOURCES[part] }
  const [, written = 'junglebus', address = ''] = /^(?:([a-z]+)=)?(.*)$/.exec(part) ?? []
  const kind = kinds.find((each) => each === written)
  if (kind === undefined || !isPlainUrl(address))
    throw new SourceAddressError(
      `must be junglebus, whatsonchain, <kind>=<url> with kind ${kinds.join(', ')}, or none; not ${shown(part)}`,
    )
  return { kind, url: address.replace(/\/+$/, '') }
}

/** The kind and the origin of a source, as its path may contain a key. */
export function sourceName({ kind, url }: SourceAddress<string>): string {
  return `${kind} ${new URL(url).origin}`
}

/** The URL below which a WhatsOnChain has its routes; it may already end with `/v1/bsv/<network>`. */
export function whatsOnChainUrl(url: string, network: 'main' | 'test'): string {
  return /\/v1\/bsv\/\w+$/.test(url) ? url : `${url}/v1/bsv/${network}`
}

/**
 * The most requests a second to a source.
 *
 * @param rate The rate in the settings.
 */
export function rateOf({ url }: SourceAddress<string>, rate: number): number {
  return url === PUBLIC_SOURCES.whatsonchain ? Math.min(rate, WHATSONCHAIN_RATE) : rate
}

function isPublic(name: string): name is keyof typeof PUBLIC_SOURCES {
  return Object.hasOwn(PUBLIC_SOURCES, name)
}

/** Whether paths can be appended to a URL. */
function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, search, hash, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && search + hash + username + password === ''
}

/** How much of an invalid part is quoted: a URL may contain a secret. */
const MAX_SHOWN = 24

function shown(part: string): string {
  const text = part.replace(/\/\/.*@/, '//[hidden]@')
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
