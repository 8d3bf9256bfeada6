import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'
import type { default as Sharp, Sharp as SharpImage } from 'sharp'

// Not by `import`: the modules of each suite are its own, and libvips belongs to the process.
export const sharp = createRequire(import.meta.url)('sharp') as typeof Sharp

/** The program that makes images, of the sources as they are, for the tests of one file. */
export async function imageProgram(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-images-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  const outfile = join(folder, 'image-process.mjs')
  const entry = resolve(import.meta.dirname, '../../../src/server/images/image-process.ts')
  buildSync({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm' })
  return pathToFileURL(outfile)
}

type Format = 'jpeg' | 'png' | 'webp' | 'gif'

/** A picture whose left half is red, and whose right half is blue. */
export function picture({
  width,
  height,
  alpha = 1,
}: {
  width: number
  height: number
  alpha?: number
}): SharpImage {
  const half = { width: Math.ceil(width / 2), height, channels: 4 as const }
  const blue = { create: { ...half, background: { r: 0, g: 0, b: 255, alpha: 1 } } }
  const red = { r: 255, g: 0, b: 0, alpha }
  return sharp({ create: { ...half, width, background: red } }).composite([{ input: blue, gravity: 'east' }])
}

export async function encoded(image: SharpImage, format: Format): Promise<Buffer> {
  return await image.toFormat(format, format === 'webp' ? { lossless: true } : {}).toBuffer()
}

/** An animated picture: a white pixel that goes through the rows of a black square, one place a frame. */
export async function animated(format: 'gif' | 'webp', frames: number, side = 16): Promise<Buffer> {
  const raw = { width: side, height: side, channels: 1 as const }
  const inputs = Array.from({ length: frames }, (_, frame) => {
    const pixels = Buffer.alloc(side * side)
    pixels[frame] = 255
    return sharp(pixels, { raw }).png().toBuffer()
  })
  return await encoded(sharp(await Promise.all(inputs), { join: { animated: true } }), format)
}

/** The colour of a place in a picture: a share of its sides. */
export async function colourAt(image: Uint8Array, [x, y]: [x: number, y: number]): Promise<number[]> {
  const { data, info } = await sharp(image).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = Math.floor(y * info.height) * info.width + Math.floor(x * info.width)
  return [...data.subarray(at * 4, at * 4 + 4)]
}
