import { unlessBlocked } from '../../backend/src/graph/blocklist.js'
import { type Dependency, dependency } from '../../backend/src/graph/dependencies.js'
import type { Attribute } from '../../backend/src/graph/listings.js'
import type { ContentSummary } from '../../backend/src/graph/records.js'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { isHostLabel, outpointLabel } from '../../backend/src/protocol/host-label.js'
import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { BASE_BYTES, baseOf, PATCH_TYPE, PatchError, patchChain } from '../../backend/src/protocol/patch.js'
import type { Steps } from '../../backend/src/protocol/steps.js'
import type { GraphReads } from '../../backend/src/read/fact-store.js'
import type { ListedOrdinal, ListPlace } from '../../backend/src/read/listings.js'
import type { TreeTerms } from '../../backend/src/read/name-offer.js'
import { isQuotable, isResized, kindShown } from './content-kinds.js'
import { directorySize, filesWithoutIndex } from './directory-files.js'
import type { Site } from './page.js'
import type { ContentView } from './parts.js'

export interface Explorer {
  store: GraphReads
  site: Site
  /** The address of a public key hash in hex. */
  addressOf: (owner: string) => string
  /** Undefined if the host follows no tree. */
  tree: TreeTerms | undefined
}

export interface MadePage {
  html: string
  dependsOn: readonly Dependency[]
}

/** The longest text that is quoted, in bytes: half of a longer one might read as another text. */
const QUOTED_BYTES = 64 * 1024
/** The longest and the shortest image that is resized, in bytes: resizing takes a process. */
const RESIZED_BYTES = 24 * 1024 * 1024
const SMALL_BYTES = 16 * 1024
/** How many bytes of a text a tile and a preview quote. */
export const TILE_QUOTE = 400
export const PREVIEW_QUOTE = 4000

/** Content for display, with the start of short text. */
export function contentView(
  { store, site }: Pick<Explorer, 'store' | 'site'>,
  { outpoint, content }: { outpoint: Outpoint; content: ContentSummary },
  { quoted }: { quoted: number },
): ContentView {
  const { contentType, length, sha256 } = content
  const isPatch = contentType === PATCH_TYPE
  const shows = isPatch ? typeMade({ store }, content) : undefined
  const kind = kindShown({ contentType, shows })
  const host = kind === 'directory' || kind === 'page' ? outpointHostUrl(site, outpoint) : undefined
  const view = { outpoint: formatOutpoint(outpoint), contentType, shows, length, host }
  const image = `${site.gatewayPrefix}/image/${view.outpoint}`
  // The result of a patch is only made when it is requested.
  if (isPatch) return site.hasImages && isResized(shows ?? '') ? { ...view, image } : view
  if (
    site.hasImages &&
    isResized(contentType) &&
    length > SMALL_BYTES &&
    length <= RESIZED_BYTES &&
    store.things.furtherChunks(outpoint) === undefined
  )
    return { ...view, image }
  if (kind === 'directory')
    return {
      ...view,
      files: filesWithoutIndex({ store }, content, { quoted }),
      leadsTo: directorySize({ store }, { outpoint, content }, { quoted }),
    }
  const further = store.things.furtherChunks(outpoint)
  if (further !== undefined) {
    const stream = { length: length + further.length, isMore: further.isMore, last: further.last }
    return { ...view, stream }
  }
  if (!isQuotable(kind) || length > QUOTED_BYTES || length === 0) return view
  const range = { from: 0, length: Math.min(length, quoted) }
  // The cut may be inside a character: the decoder leaves out incomplete ones.
  const text = new TextDecoder().decode(joinBytes([...store.content.chunks(sha256, range)]), {
    stream: length > quoted,
  })
  return { ...view, quote: length > quoted ? `${text}…` : text }
}

/** The type of a patch's result, which is that of the content at the root of its patches; undefined if the root is not here. */
function typeMade({ store }: Pick<Explorer, 'store'>, patch: ContentSummary): string | undefined {
  const base = ({ contentType, sha256, length }: ContentSummary): ContentSummary | undefined => {
    if (contentType !== PATCH_TYPE) return undefined
    const start = { from: 0, length: Math.min(BASE_BYTES, length) }
    return store.ordinals.output(baseOf(joinBytes([...store.content.chunks(sha256, start)])))?.content
  }
  try {
    const { contentType } = unlessBlocked(() => patchChain(patch, base))?.[0] ?? patch
    return contentType === PATCH_TYPE ? undefined : contentType
  } catch (error) {
    if (!(error instanceof PatchError)) throw error
    return undefined
  }
}

/** The content of those ordinals that have some. */
export function contentsOf(
  ordinals: readonly ListedOrdinal[],
): { outpoint: Outpoint; content: ContentSummary }[] {
  return ordinals.flatMap(({ contentOutpoint: outpoint, content }) =>
    outpoint && content ? [{ outpoint, content }] : [],
  )
}

/** Views of several outputs. Other requests run in between, as each directory takes a millisecond or two. */
export function contentViews(
  explorer: Pick<Explorer, 'store' | 'site'>,
  outputs: readonly { outpoint: Outpoint; content: ContentSummary }[],
  { quoted }: { quoted: number },
): ContentView[] {
  const key = `views ${quoted} ${outputs.map(({ outpoint }) => formatOutpoint(outpoint))}`
  function* views(): Steps<ContentView[]> {
    const found: ContentView[] = []
    for (const output of outputs) {
      const view = contentView(explorer, output, { quoted })
      found.push(view)
      if (view.leadsTo !== undefined || view.shows !== undefined) yield
    }
    return found
  }
  return explorer.store.things.list(key, views())
}

/**
 * What views depend on besides their content: the next chunk of a stream spends the last one, and the targets of a directory or
 * the base of a patch may arrive later.
 */
export function dependenciesOfViews(views: readonly ContentView[]): Dependency[] {
  return views.flatMap(({ outpoint, contentType, leadsTo, stream }) => {
    if (leadsTo !== undefined || contentType === PATCH_TYPE) return [dependency.inscriptions]
    const last = stream?.last ?? readOutpoint(outpoint)
    return last === undefined ? [] : [dependency.spend(last)]
  })
}

export function dependenciesOfChildren(parent: Attribute, found: readonly ListedOrdinal[]): Dependency[] {
  const tips = found.map(({ outpoint }) => dependency.spend(outpoint))
  return [dependency.children(parent), dependency.lineages, ...tips]
}

export function addressOf(
  explorer: Pick<Explorer, 'addressOf'>,
  owner: string | undefined,
): string | undefined {
  return owner === undefined ? undefined : explorer.addressOf(owner)
}

/** When the blocks at these heights were mined, in milliseconds since 1970, as far as this host knows. */
export function blockTimes(
  { store }: Pick<Explorer, 'store'>,
  rows: readonly { height?: number | undefined }[],
): (height: number | undefined) => number | undefined {
  const times = store.listings.blockTimes(rows.flatMap(({ height }) => height ?? []))
  return (height) => {
    const seconds = height === undefined ? undefined : times.get(height)
    return seconds === undefined ? undefined : seconds * 1000
  }
}

export function writePlace({ recency, outpoint }: ListPlace): string {
  return `${recency}.${formatOutpoint(outpoint)}`
}

/** Reads the place in a link; undefined if there is none. */
export function readPlace(text: string): ListPlace | undefined {
  const [, recency, written = ''] = /^(\d{1,16})\.(.+)$/.exec(text) ?? []
  const outpoint = readOutpoint(written)
  return recency === undefined || outpoint === undefined ? undefined : { recency: Number(recency), outpoint }
}

/** The URL of a name as a host, in the scheme of the page; undefined if it has none here. */
export function nameHostUrl({ gatewayHost }: Site, name: string): string | undefined {
  return gatewayHost === undefined || !isHostLabel(name) ? undefined : `//${name}.${gatewayHost}/`
}

/** The same for an outpoint. On its own host, a site's absolute paths work, which they cannot below `/content/`. */
function outpointHostUrl({ gatewayHost }: Site, outpoint: Outpoint): string | undefined {
  return gatewayHost && `//${outpointLabel(outpoint)}.c.${gatewayHost}/`
}
