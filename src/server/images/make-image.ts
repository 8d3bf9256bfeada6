import { createHash } from 'node:crypto'
import type { ResizeOptions, default as Sharp, Sharp as SharpImage } from 'sharp'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import type { WantedImage } from '../../gateway/images/images.js'
import type { Outcome } from './images.js'

/** The most pixels of an image, all frames together: those of a large photograph. */
const MAX_PIXELS = 50_000_000
/** The most frames of an animated result, and all their pixels. */
const MAX_FRAMES = 200
const MAX_ANIMATED_PIXELS = 8_000_000
/** The limit for the side of an image that was not asked for. */
const MAX_SIDE = 4096

type Made = Omit<Extract<Outcome, { type: string }>, 'milliseconds'>

export class RefusedImageError extends Error {
  override readonly name = 'RefusedImageError'

  constructor(
    readonly code: 'UNSUPPORTED_IMAGE' | 'BAD_IMAGE',
    message: string,
  ) {
    super(message)
  }
}

/** Limits libvips to one thread and these decoders. */
export function restrict(sharp: typeof Sharp): void {
  sharp.concurrency(1)
  sharp.cache(false)
  sharp.block({ operation: ['VipsForeignLoad'] })
  const decoders = ['Jpeg', 'Png', 'Webp', 'Nsgif'].map((format) => `VipsForeignLoad${format}Buffer`)
  sharp.unblock({ operation: decoders })
}

/** How JPEG, PNG and GIF files begin, and WebP. */
const SIGNATURES = ['ffd8ff', '89504e470d0a1a0a', '474946383761', '474946383961']
const WEBP = /^52494646.{8}57454250/

/** @throws RefusedImageError */
export async function makeImage(
  sharp: typeof Sharp,
  body: Uint8Array,
  wanted: WantedImage,
): Promise<{ bytes: Uint8Array; outcome: Made }> {
  const start = toHex(body.subarray(0, 12))
  if (!WEBP.test(start) && !SIGNATURES.some((signature) => start.startsWith(signature)))
    throw new RefusedImageError('UNSUPPORTED_IMAGE', 'the bytes are not a JPEG, PNG, GIF or WebP image')
  try {
    const {
      width,
      height,
      pages = 1,
      orientation = 1,
    } = await sharp(body, {
      limitInputPixels: false,
    }).metadata()
    if (width * height > MAX_PIXELS)
      throw new RefusedImageError('BAD_IMAGE', `an image of more than ${MAX_PIXELS} pixels is not read here`)
    const animated = wanted.format === 'webp' && pages > 1 && keepsFrames({ width, height, pages }, wanted)
    const read = sharp(body, { animated, failOn: 'error', limitInputPixels: MAX_PIXELS })
    // Without an angle, this follows the metadata; older versions of sharp have no other name for that.
    const upright = orientation > 1 && !animated ? read.rotate() : read
    const { image: resized, format } = await inFormat(sharp, upright.resize(boxOf(wanted)), wanted)
    const { quality } = wanted
    const encoded = {
      jpeg: () => resized.flatten({ background: '#fff' }).jpeg({ quality }),
      png: () => resized.png(),
      webp: () => resized.webp({ quality, effort: 2 }),
      // More effort takes ten times as long, and saves a tenth of the bytes.
      avif: () => resized.avif({ quality, effort: 1 }),
    }[format]()
    const bytes = await encoded.toBuffer()
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const frames = pages > 1 ? ([animated ? pages : 1, pages] satisfies [number, number]) : undefined
    return { bytes, outcome: { type: `image/${format}`, sha256, ...(frames && { frames }) } }
  } catch (error) {
    if (error instanceof RefusedImageError) throw error
    const reason = String((error as Error).message)
      .replace(/[^\x20-\x7e]+/g, ' ')
      .slice(0, 200)
    throw new RefusedImageError('BAD_IMAGE', `the image is damaged, or cannot be read: ${reason.trim()}`)
  }
}

/** Converts to the wanted format. Many images have an alpha channel in which nothing is transparent. */
async function inFormat(
  sharp: typeof Sharp,
  image: SharpImage,
  { format }: WantedImage,
): Promise<{ image: SharpImage; format: Exclude<WantedImage['format'], 'plain'> }> {
  if (format !== 'plain') return { image, format }
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true })
  const { channels } = info
  let isOpaque = true
  if (channels % 2 === 0)
    for (let at = channels - 1; at < data.length && isOpaque; at += channels) isOpaque = data[at] === 255
  return { image: sharp(data, { raw: info }), format: isOpaque ? 'jpeg' : 'png' }
}

function keepsFrames(
  { width, height, pages }: { width: number; height: number; pages: number },
  { width: w = MAX_SIDE, height: h = MAX_SIDE, fit }: WantedImage,
): boolean {
  const scale = Math.min(w / width, h / height, fit === 'limit' ? 1 : Number.POSITIVE_INFINITY)
  const pixels = fit === 'limit' || fit === 'fit' ? width * height * scale ** 2 : w * h
  return pages <= MAX_FRAMES && width * height * pages <= MAX_PIXELS && pixels * pages <= MAX_ANIMATED_PIXELS
}

function boxOf({ width = MAX_SIDE, height = MAX_SIDE, fit, gravity, format }: WantedImage): ResizeOptions {
  const box = { width, height, position: gravity === 'center' ? 'centre' : gravity }
  switch (fit) {
    case 'limit':
      return { ...box, fit: 'inside', withoutEnlargement: true }
    case 'fit':
      return { ...box, fit: 'inside' }
    case 'fill':
      return { ...box, fit: 'cover' }
    case 'pad':
      // Transparent pixels are black in JPEG, and sharp flattens only those of the original.
      return {
        ...box,
        fit: 'contain',
        background: { r: 255, g: 255, b: 255, alpha: format === 'jpeg' ? 1 : 0 },
      }
    case 'scale':
      return { ...box, fit: 'fill' }
  }
}
