import fc from 'fast-check'
import type { WantedImage } from '../../../../src/gateway/images/images.js'
import { makeImage, RefusedImageError, restrict } from '../../../../src/server/images/make-image.js'
import { animated, encoded, picture, sharp } from '../../../support/images/pictures.js'

const valid = [
  await picture({ width: 90, height: 60 }).flatten().jpeg({ progressive: true }).toBuffer(),
  await encoded(picture({ width: 40, height: 60, alpha: 0.5 }), 'png'),
  await encoded(picture({ width: 40, height: 60 }), 'webp'),
  await animated('gif', 6),
  await animated('webp', 6),
]
restrict(sharp)

const wanted = fc.record({
  width: fc.constantFrom(16, 48, 128),
  height: fc.constantFrom(16, 48, 128),
  fit: fc.constantFrom('limit', 'fit', 'fill', 'pad', 'scale'),
  gravity: fc.constantFrom('center', 'north', 'southwest'),
  format: fc.constantFrom('plain', 'jpeg', 'png', 'webp'),
  quality: fc.constantFrom(5, 75, 100),
}) as fc.Arbitrary<WantedImage>

/** An image that is cut off, has other bytes in places, or goes on. */
const hostile = fc
  .tuple(
    fc.constantFrom(...valid),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 12 }),
    fc.uint8Array({ maxLength: 20 }),
  )
  .map(([image, share, changes, rest]) => {
    const bytes = Buffer.concat([image.subarray(0, Math.ceil(image.length * share)), rest])
    for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value
    return bytes
  })

test('what is no image any more is refused, and nothing else happens', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, wanted, async (bytes, asked) => {
      try {
        const { bytes: made, outcome } = await makeImage(sharp, bytes, asked)
        const { width = 0, height = 0 } = await sharp(made).metadata()
        expect(Math.max(width, height)).toBeLessThanOrEqual(128)
        expect(outcome.type).toMatch(/^image\/(?:jpeg|png|webp)$/)
      } catch (error) {
        expect(error).toBeInstanceOf(RefusedImageError)
        expect((error as Error).message).toMatch(/^[ -~]+$/)
      }
    }),
    { numRuns: 300 },
  )
})

test.each(['tiff', 'avif'] as const)(
  'no other decoder runs, not even for %s with another beginning',
  async (format) => {
    const bytes = await picture({ width: 20, height: 20 }).toFormat(format).toBuffer()
    await expect(sharp(bytes).metadata()).rejects.toThrow('unsupported image format')
  },
)

test('sides that nobody asked for are bounded', async () => {
  const tall = await sharp({ create: { width: 4, height: 12_000, channels: 3, background: '#888' } })
    .png()
    .toBuffer()
  const asked = { fit: 'fit', gravity: 'center', format: 'png', quality: 100, width: 1920 } as const
  const { bytes } = await makeImage(sharp, tall, asked)
  expect((await sharp(bytes).metadata()).height).toBe(4096)
})
