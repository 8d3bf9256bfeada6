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

/** Longer text is not quoted, in bytes: half of it might be read as another. */
const QUOTED_BYTES = 64 * 1024
/** Longer images are not made smaller, in bytes, nor are shorter ones: that takes a process. */
const RESIZED_BYTES = 24 * 1024 * 1024
const SMALL_BYTES = 16 * 1024
/** Up to how many bytes of it are read for a tile, and for a preview. */
export const TILE_QUOTE = 400
export const PREVIEW_QUOTE = 4000

/** Content for display, with the start of it if it is short text. */
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
  // What it makes is read by nobody before it is asked for.
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
  // Cut within a character, if need be: the decoder leaves out what is incomplete.
  const text = new TextDecoder().decode(joinBytes([...store.content.chunks(sha256, range)]), {
    stream: length > quoted,
  })
  return { ...view, quote: length > quoted ? `${text}…` : text }
}

/** The type of what a patch makes: that of the content at the root of those that it is built on; undefined if that is not here. */
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

/** The outputs that ordinals show, of those that show any. */
export function contentsOf(
  ordinals: readonly ListedOrdinal[],
): { outpoint: Outpoint; content: ContentSummary }[] {
  return ordinals.flatMap(({ contentOutpoint: outpoint, content }) =>
    outpoint && content ? [{ outpoint, content }] : [],
  )
}

/** Views of several outputs: what directories lead to takes a millisecond or two each, so that other requests run in between. */
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
 * What views of content follow from beside the content: the next chunk of a stream spends the last one, and what a directory leads to
 * or a patch is built on may come later.
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

/** A place in a list, as a link holds it. */
export function writePlace({ recency, outpoint }: ListPlace): string {
  return `${recency}.${formatOutpoint(outpoint)}`
}

/** The place that a link holds; undefined if it holds none. */
export function readPlace(text: string): ListPlace | undefined {
  const [, recency, written = ''] = /^(\d{1,16})\.(.+)$/.exec(text) ?? []
  const outpoint = readOutpoint(written)
  return recency === undefined || outpoint === undefined ? undefined : { recency: Number(recency), outpoint }
}

/** The URL of a name as a host, in the scheme of the page; undefined if it has none here. */
export function nameHostUrl({ gatewayHost }: Site, name: string): string | undefined {
  return gatewayHost === undefined || !isHostLabel(name) ? undefined : `//${name}.${gatewayHost}/`
}

/** The same of an outpoint. Paths of a site lead from its root there, as below `/content/` they cannot. */
function outpointHostUrl({ gatewayHost }: Site, outpoint: Outpoint): string | undefined {
  return gatewayHost && `//${outpointLabel(outpoint)}.c.${gatewayHost}/`
}
