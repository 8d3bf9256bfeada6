import type { Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import type { Awaitable } from '../../../backend/src/graph/yield-to-event-loop.js'
import { essenceOf } from '../../../backend/src/protocol/media-type.js'
import { formatOutpoint, parseContentReference } from '../../../backend/src/protocol/outpoint.js'
import { bodyOf, type ContentParts } from '../content/content.js'
import { type ContentRoot, contentRoot, type ShownContent } from '../content/content-root.js'
import { type Ahead, afterLong, shownBy } from '../content/directory.js'
import { digestField, entityTag } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import { countMilliseconds, leavingOf } from '../http/long-read.js'
import {
  CONTENT_HEADERS,
  DAMAGED,
  described,
  ORIGIN_PENDING,
  type Routes,
  SERVICE_WORKER,
  STORE_ERRORS,
} from '../http/operation.js'
import { askedReference, number, pointerIn, validate, wholeNumber } from '../http/schemas.js'
import { refuseServiceWorkers, securityHeaders } from '../http/security-headers.js'
import { StoredResponse, sendStored } from '../http/stored-response.js'

/** The sizes of images in pixels: those in use elsewhere (1sat-stack, `/ordfs/image`), up to the largest here. */
export const SIZES = [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 828, 1080, 1200, 1920]
const LARGEST = 1920
const DEFAULT_WIDTH = 384
/** The types of source images: many inscriptions have `image/jpg`, which is not registered. */
export const READ_TYPES: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/jpg',
  'image/png',
  'image/gif',
  'image/webp',
])
const SVG = 'image/svg+xml'
export const MAX_IMAGE_BYTES = 24 * 1024 * 1024
const FITS = ['limit', 'fit', 'fill', 'pad', 'scale'] as const
const GRAVITIES = [
  'center',
  'north',
  'northeast',
  'east',
  'southeast',
  'south',
  'southwest',
  'west',
  'northwest',
] as const
const FORMATS = ['auto', 'jpeg', 'png', 'webp', 'avif'] as const

/** The wanted image, without options that make no difference. */
export interface WantedImage {
  /** In pixels. At least one side is given; both for `fill`, `pad` and `scale`. */
  width?: number | undefined
  height?: number | undefined
  fit: (typeof FITS)[number]
  gravity: (typeof GRAVITIES)[number]
  /** `plain` is PNG if something is transparent, else JPEG. */
  format: 'plain' | 'jpeg' | 'png' | 'webp' | 'avif'
  quality: number
}

export interface MadeImage {
  type: string
  body: Uint8Array
  /** The hash of the body, in hex. */
  sha256: string
  /** For an animated image: how many of its frames are shown. */
  frames?: readonly [shown: number, all: number] | undefined
}

export interface ImageSource {
  /** In hex. The same bytes always give the same images. */
  sha256: string
  chunks: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

export interface AskedImage {
  wanted: WantedImage
  request: Pick<Request, 'ip'>
  signal: AbortSignal
  charge: (milliseconds: number) => void
}

export interface ImageMaker {
  /**
   * @param asked.request Identifies the client: clients take turns.
   * @param asked.signal Aborted when nobody waits for the image any more.
   * @param asked.charge Called with the CPU milliseconds it took, unless it was cached; perhaps later.
   * @throws AnswerError if the image cannot be made; the reason of the signal.
   */
  image(source: ImageSource, asked: AskedImage): Promise<MadeImage>
  forget(sha256: string): Promise<void>
}

const side = number({ least: 1, most: 100_000 }).optional()

const imageQuery = z.object({
  w: side.describe(
    `The width in pixels, rounded up to one of ${SIZES.join(', ')}, and at most the last. 384 if \`h\` is not set either.`,
  ),
  h: side.describe('The height in pixels, rounded in the same way.'),
  fit: z
    .enum(FITS)
    .default('limit')
    .describe(
      '`limit`: within the box, never enlarged. `fit`: within the box, enlarged if needed. `fill`: covers the box, cropped. `pad`: within the box, padded with transparency, or with white in JPEG. `scale`: stretched. The last three need both sides and fall back to `limit`.',
    ),
  g: z
    .enum(GRAVITIES)
    .default('center')
    .describe('The part of the image that `fill` keeps, or its position for `pad`.'),
  f: z
    .enum(FORMATS)
    .default('auto')
    .describe(
      '`auto`: WebP if `Accept` names it, otherwise PNG for images with transparency, otherwise JPEG.',
    ),
  q: wholeNumber({ most: 100, usual: 75 }).describe('The quality from 1 to 100, rounded to the nearest 5.'),
})

/**
 * The image that a request wants, and whether that depends on `Accept`.
 *
 * @throws AnswerError `BAD_BODY`
 */
export function wantedImage(request: Pick<Request, 'query' | 'accepts'>): {
  wanted: WantedImage
  varies: boolean
} {
  const { w, h, fit, g, f, q } = validate(imageQuery, request.query, ([issue]) => {
    const rule = RULES[String(issue?.path[0])]
    return new AnswerError('BAD_BODY', `${String(issue?.path[0])} must be ${rule}, once`)
  })
  const isBox = w !== undefined && h !== undefined
  const placed = isBox && (fit === 'fill' || fit === 'pad')
  const format =
    f === 'auto' ? (request.accepts(['image/jpeg', 'image/webp']) === 'image/webp' ? 'webp' : 'plain') : f
  return {
    wanted: {
      width: roundedUp(w ?? (h === undefined ? DEFAULT_WIDTH : undefined)),
      height: roundedUp(h),
      fit: isBox || fit === 'fit' ? fit : 'limit',
      gravity: placed ? g : 'center',
      format,
      quality: format === 'png' ? 100 : Math.max(5, Math.round(q / 5) * 5),
    },
    varies: f === 'auto',
  }
}

function roundedUp(pixels: number | undefined): number | undefined {
  return pixels && (SIZES.find((size) => size >= pixels) ?? LARGEST)
}

const RULES: Record<string, string> = {
  w: 'a whole number from 1 to 100000',
  h: 'a whole number from 1 to 100000',
  fit: `one of ${FITS.join(', ')}`,
  g: `one of ${GRAVITIES.join(', ')}`,
  f: `one of ${FORMATS.join(', ')}`,
  q: 'a whole number from 1 to 100',
}

export function imageRoutes(images: ImageMaker, parts: ContentParts): Routes {
  return routes({ image: [refuseServiceWorkers, serveImage(images, parts)] })
}

function serveImage(images: ImageMaker, { store, answers, policy }: ContentParts): RequestHandler {
  return async (request, response) => {
    const reference = parseContentReference(pointerIn(request))
    const { wanted, varies } = wantedImage(request)
    const resolved = <Found>(
      find: (root: ContentRoot, content: ShownContent, ahead: Ahead | undefined) => Found,
    ) =>
      afterLong(response, (ahead) =>
        store.consistent(() => {
          const root = contentRoot(store, reference)
          return find(root, shownBy(answers.patches, root.output, ahead).content, ahead)
        }),
      )
    const { sha256, length, type, svg } = await resolved((root, content, read) => {
      const type = essenceOf(content.contentType)
      const asked = { segments: [], raw: false, isMapAsked: false, policy, read }
      return { ...content, type, svg: type === SVG ? answers.answer(bare(root), asked) : undefined }
    })
    if (svg instanceof StoredResponse) return await sendStored({ request, response, stored: inFull(svg) })
    if (!READ_TYPES.has(type))
      throw new AnswerError(
        'UNSUPPORTED_IMAGE',
        `only JPEG, PNG, GIF and WebP images are resized, not ${type}`,
      )
    if (length > MAX_IMAGE_BYTES)
      throw new AnswerError('BAD_IMAGE', `images of more than ${MAX_IMAGE_BYTES} bytes are not resized here`)
    const made = await images.image(
      {
        sha256,
        chunks: () => chunksOf(() => resolved((_, content) => bodyOf(store, content)), { length, response }),
      },
      {
        ...{ wanted, request, signal: leavingOf(response) },
        charge: (milliseconds) => countMilliseconds(response, milliseconds),
      },
    )
    // The content may have been blocked and purged meanwhile.
    const { cache, headers, outpoint } = await Promise.resolve()
      .then(() => resolved((root) => root))
      .catch(async (error: unknown) => {
        await images.forget(sha256)
        throw error
      })
    const tag = entityTag(made.sha256, made.type)
    const representation = {
      headers: [
        ['Cache-Control', cache],
        ...Object.entries(headers),
        ['X-Outpoint', formatOutpoint(outpoint)],
        ...securityHeaders({ active: false }),
        ...(varies ? [['Vary', 'Accept'] as const] : []),
        ...(made.frames ? [['X-Image-Frames', made.frames.join('/')] as const] : []),
        ['ETag', tag],
      ] as const,
      contentType: made.type,
      length: made.body.length,
      digest: digestField(made.sha256),
      tag,
    }
    await sendStored({ request, response, stored: new StoredResponse(representation, made.body, []) })
  }
}

/** Images have no metadata headers. */
function bare(root: ContentRoot): ContentRoot {
  return { ...root, metadataHeaders: () => ({}) }
}

/** Images are sent without ranges. */
function inFull({ representation, body, dependsOn }: StoredResponse): StoredResponse {
  const headers = representation.headers.filter(([name]) => name !== 'Accept-Ranges')
  return new StoredResponse({ ...representation, headers, hasRanges: false }, body, dependsOn)
}

async function* chunksOf(
  body: () => Awaitable<StoredResponse['body']>,
  { length, response }: { length: number; response: Response },
): AsyncGenerator<Uint8Array> {
  const found = await body()
  const bytes = typeof found === 'function' ? found({ from: 0, length }, response) : found
  if ('next' in bytes) yield* bytes
  else yield bytes
}

const routes = described({
  tag: 'content',
  errors: {
    BAD_OUTPOINT: 'The pointer is not an outpoint.',
    BAD_SEQUENCE: 'The sequence is not a number.',
    BAD_PATCH: 'A patch cannot be applied, or a chain of patches is longer than 16.',
    BAD_BODY: 'A parameter is invalid, or a service worker is being installed.',
    ORIGIN_PENDING,
    NOT_FOUND: 'The output, step or base of a patch is not in this store.',
    UNSUPPORTED_IMAGE: 'The content is not a JPEG, PNG, GIF, WebP or SVG image, by its type or by its bytes.',
    BAD_IMAGE: 'The image is damaged or too large to decode.',
    BLOCKED: 'The operator has blocked the output, its content, or the name whose origin it is.',
    NOT_READY:
      'Too many images are being resized, or this one took too long. `Retry-After` says when to ask again.',
    DAMAGED,
    ...STORE_ERRORS,
  },
  operations: {
    image: {
      route: 'GET /image/{reference}',
      pattern: /^\/image\//,
      summary: 'A resized image',
      description:
        'Resizes the image inscribed in an output, or shown by an ordinal at a step. Metadata is removed after its orientation is applied. SVG is returned as inscribed. Animated images keep their frames in WebP, within limits; other formats show the first frame.',
      params: z.object({ reference: askedReference }),
      query: imageQuery,
      headers: SERVICE_WORKER,
      answer: {
        description: 'The image.',
        headers: [
          ...CONTENT_HEADERS,
          'ETag',
          'Repr-Digest',
          'Content-Digest',
          'X-Outpoint',
          'X-Origin',
          'X-Ord-Seq',
          'X-Image-Frames',
        ],
        types: ['image/jpeg', 'image/png', 'image/webp', 'image/avif', 'image/svg+xml'],
      },
    },
  },
})
