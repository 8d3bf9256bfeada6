import { essenceOf } from '../../backend/src/protocol/media-type.js'
import { PATCH_TYPE } from '../../backend/src/protocol/patch.js'

export const KIND_LABELS = {
  name: 'name',
  directory: 'site',
  image: 'image',
  audio: 'audio',
  video: 'video',
  json: 'JSON',
  text: 'text',
  page: 'page',
  pdf: 'PDF',
  stream: 'chunk',
  patch: 'patch',
  other: 'bytes',
}

export type ContentKind = keyof typeof KIND_LABELS

const DIRECTORIES = new Set(['gw-fs/json', 'ord-fs/json', 'ordfs/dir'])
const CHUNKS = new Set(['gw/stream', 'ordfs/stream'])
const NAMES = new Set(['application/name-claim', 'application/op-ns'])
const PAGES = new Set(['text/html', 'application/xhtml+xml'])
/** Types that `<img>` shows in every browser without running anything. */
const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml|bmp|x-icon|vnd\.microsoft\.icon)$/

/** Types that some hosts resize (`docs/spec/http.md`, Images). */
const RESIZED = /^image\/(?:png|jpeg|gif|webp)$/

export function isResized(contentType: string): boolean {
  return RESIZED.test(essenceOf(contentType))
}

/** The kind of content, by its inscribed type, which is a stranger's text. */
export function kindOf(contentType: string): ContentKind {
  // Compared exactly, as in the gateway.
  if (NAMES.has(contentType)) return 'name'
  if (DIRECTORIES.has(contentType)) return 'directory'
  if (CHUNKS.has(contentType)) return 'stream'
  if (contentType === PATCH_TYPE) return 'patch'
  const essence = essenceOf(contentType)
  if (IMAGES.test(essence)) return 'image'
  if (essence.startsWith('audio/')) return 'audio'
  if (essence.startsWith('video/')) return 'video'
  if (PAGES.has(essence)) return 'page'
  if (essence === 'application/pdf') return 'pdf'
  if (essence === 'application/json' || essence.endsWith('+json')) return 'json'
  return essence.startsWith('text/') ? 'text' : 'other'
}

/** The kind of what is shown. @param content.shows For a patch, the type of its result. */
export function kindShown(content: { contentType: string; shows?: string | undefined }): ContentKind {
  return kindOf(content.shows ?? content.contentType)
}

export function isQuotable(kind: ContentKind): boolean {
  return kind === 'text' || kind === 'json'
}
