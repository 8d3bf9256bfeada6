import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import express from 'express'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../../../../backend/src/protocol/patch.js'
import { encodeDelta } from '../../../../backend/src/protocol/vcdiff.js'
import { wantedImage } from '../../../../src/gateway/images/images.js'
import { makeImage } from '../../../../src/server/images/make-image.js'
import { purge } from '../../../../src/server/store/facts/purge.js'
import { livesOn } from '../../../support/graph/lives.js'
import {
  animated,
  colourAt,
  encoded,
  imageProgram,
  picture,
  sharp,
} from '../../../support/images/pictures.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { withinAMinute } from '../../../support/server/openapi-requests.js'
import {
  type Answer,
  OPERATOR,
  type Question,
  type TestServer,
  useServers,
} from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const servers = useServers()
const chain = new FakeChain()
const program = await imageProgram()
const server = await servers.start(OPERATOR, { imageProgram: program })

async function submitted(transaction: FakeTransaction, to = server): Promise<string> {
  await to.take(beefOf(transaction), ['tm_ordinals'])
  return transaction.outpoint(0)
}

async function inscribed(contentType: string, body: Uint8Array, to = server): Promise<string> {
  return await submitted(chain.inscribe({ contentType, body }), to)
}

async function imageOf(
  outpoint: string,
  query = '',
  question: Question = {},
  of: TestServer = server,
): Promise<Answer> {
  return await of.ask(`/svc/gateway/image/${outpoint}${query}`, question)
}

const ACCEPTS_WEBP = 'image/avif,image/webp,image/apng,image/*,*/*;q=0.8'
const WEBP = { headers: { Accept: ACCEPTS_WEBP } }
const widePicture = await encoded(picture({ width: 600, height: 300 }), 'png')
const wide = await inscribed('image/png', widePicture)

/** What a request asks for. */
function wantedBy(query: string, accept = '*/*') {
  const asked: express.Request = Object.create(express.request, {
    query: { value: Object.fromEntries(new URLSearchParams(query)) },
    headers: { value: { accept } },
  })
  return wantedImage(asked)
}

/** The image that a request asks for, made in this process. */
async function madeOf(body: Uint8Array, query = '', accept?: string) {
  const { bytes, outcome } = await makeImage(sharp, body, wantedBy(query, accept).wanted)
  return { bytes, ...outcome }
}

test('an image is sent with the headers of content that stays', async () => {
  const { status, body, headers } = await imageOf(wide, '?w=128&h=48&fit=scale')
  expect(status).toBe(200)
  const read = await sharp(body).metadata()
  expect([read.width, read.height]).toEqual([128, 48])
  expect(headers).toMatchObject({
    'content-length': String(body.length),
    'content-type': 'image/jpeg',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-outpoint': wide,
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'cross-origin',
    vary: 'Accept',
  })
  expect(headers['x-image-frames']).toBeUndefined()
})

test.each([
  ['', [384, 192]],
  ['?w=100', [128, 64]],
  ['?w=1', [16, 8]],
  ['?w=384', [384, 192]],
  ['?w=385', [512, 256]],
  // Never enlarged.
  ['?w=1920', [600, 300]],
  ['?w=99999', [600, 300]],
  ['?h=96', [192, 96]],
  ['?w=192&h=48', [96, 48]],
  ['?w=1080&fit=fit', [1080, 540]],
  ['?w=640&h=640&fit=fit', [640, 320]],
  ['?w=128&h=128&fit=fill', [128, 128]],
  ['?w=828&h=828&fit=fill', [828, 828]],
  ['?w=128&h=128&fit=pad', [128, 128]],
  ['?w=128&h=48&fit=scale', [128, 48]],
  // Without both sides, as `limit`.
  ['?w=1200&fit=fill', [600, 300]],
  ['?h=48&fit=scale', [96, 48]],
])('%s is %j', async (query, [width, height]) => {
  const read = await sharp((await madeOf(widePicture, query)).bytes).metadata()
  expect([read.width, read.height]).toEqual([width, height])
})

test.each([
  ['?w=64&h=64&fit=fill&g=west', [255, 0, 0, 255]],
  ['?w=64&h=64&fit=fill&g=northeast', [0, 0, 255, 255]],
  // What `pad` fills up is at the other side.
  ['?w=64&h=64&fit=pad&g=south&f=png', [0, 0, 0, 0]],
  ['?w=64&h=64&fit=pad&g=north&f=jpeg', [255, 0, 0, 255]],
  ['?w=64&h=64&fit=pad&g=south&f=jpeg', [255, 255, 255, 255]],
])('%s begins with %j', async (query, colour) => {
  const [x, y] = [0.2, 0.05]
  const found = await colourAt((await madeOf(widePicture, query)).bytes, [x, y])
  const isClear = colour[3] === 0
  for (const [index, value] of found.entries())
    if (!isClear || index === 3) expect(Math.abs(value - (colour[index] ?? 0))).toBeLessThan(12)
})

test.each([
  ['', ACCEPTS_WEBP, 'image/webp'],
  ['', '*/*', 'image/jpeg'],
  ['', 'image/webp;q=0.1, image/png', 'image/webp'],
  ['', 'image/webp;q=0, image/png', 'image/jpeg'],
  ['?w=16&h=16&fit=pad', '*/*', 'image/png'],
  ['?f=auto', ACCEPTS_WEBP, 'image/webp'],
  ['?f=jpeg', ACCEPTS_WEBP, 'image/jpeg'],
  ['?f=png', ACCEPTS_WEBP, 'image/png'],
  ['?f=webp', '*/*', 'image/webp'],
  ['?f=avif', '*/*', 'image/avif'],
])('%s for %j is %s', async (query, accept, expected) => {
  const { bytes, type } = await madeOf(widePicture, query, accept)
  expect(type).toBe(expected)
  expect(`image/${(await sharp(bytes).metadata()).format}`.replace('heif', 'avif')).toBe(expected)
  expect(wantedBy(query, accept).varies).toBe(!/f=(?!auto)/.test(query))
})

test('what is transparent stays so where the format can, and is white otherwise', async () => {
  const clear = await encoded(picture({ width: 40, height: 20, alpha: 0 }), 'png')
  const plain = await madeOf(clear)
  expect([plain.type, (await colourAt(plain.bytes, [0.1, 0.5]))[3]]).toEqual(['image/png', 0])
  const [red = 0, green = 0] = await colourAt((await madeOf(clear, '?f=jpeg')).bytes, [0.1, 0.5])
  expect(Math.min(red, green)).toBeGreaterThan(245)
})

test('a lower quality is shorter, and qualities are those of steps', async () => {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 60 }
  const noisy = sharp({ create: { width: 200, height: 200, channels: 3, background: '#000', noise } })
  const body = await encoded(noisy, 'png')
  const made = await Promise.all(['5', '75', '80'].map((q) => madeOf(body, `?f=jpeg&q=${q}`)))
  const lengths = made.map(({ bytes }) => bytes.length)
  expect(lengths).toEqual([...new Set(lengths)].sort((one, other) => one - other))
  const qualities = ['1', '5', '73', '75', '77', '78', '80'].map((q) => wantedBy(`?q=${q}`).wanted.quality)
  expect([qualities, wantedBy('').wanted.quality]).toEqual([[5, 5, 75, 75, 75, 80, 80], 75])
})

test.each([
  ['?w=99999', { width: 1920, height: undefined }],
  ['?h=20', { width: undefined, height: 32 }],
  ['?w=64&fit=fill&g=west', { fit: 'limit', gravity: 'center' }],
  ['?w=64&h=64&fit=scale&g=west', { fit: 'scale', gravity: 'center' }],
])('%s asks for %j', (query, wanted) => {
  expect(wantedBy(query).wanted).toMatchObject(wanted)
})

test.each(['?', '?x=1', '?g=south', '?w=384&fit=limit&q=75&f=auto&g=center'])(
  '%s changes nothing',
  (query) => {
    expect(wantedBy(query)).toEqual(wantedBy(''))
  },
)

test('HEAD, If-None-Match and If-Match are those of the image', async () => {
  const whole = await imageOf(wide, '?w=64')
  const head = await imageOf(wide, '?w=64', { method: 'HEAD' })
  expect([head.status, head.body.length, head.headers['content-length']]).toEqual([
    200,
    0,
    String(whole.body.length),
  ])
  const { etag = '' } = whole.headers
  expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
  const same = await imageOf(wide, '?w=64', { headers: { 'If-None-Match': etag } })
  expect([same.status, same.headers.etag, same.headers.vary]).toEqual([304, etag, 'Accept'])
  expect((await imageOf(wide, '?w=96', { headers: { 'If-None-Match': etag } })).status).toBe(200)
  expect((await imageOf(wide, '?w=96', { headers: { 'If-Match': etag } })).status).toBe(412)
})

test('SVG is sent as inscribed, in its sandbox, whatever is asked for', async () => {
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')
  const outpoint = await inscribed('image/svg+xml', svg)
  const { status, headers, body } = await imageOf(outpoint, '?w=64&f=png')
  expect([status, headers['content-type']]).toEqual([200, 'image/svg+xml'])
  expect(headers['content-security-policy']).toMatch(/^sandbox /)
  expect(body).toEqual(svg)
  expect((await imageOf(outpoint, '', { headers: { 'If-None-Match': headers.etag ?? '' } })).status).toBe(304)
})

describe('metadata of a photograph', () => {
  test('is applied where it says how it is turned, and sent to nobody', async () => {
    const exif = { IFD0: { Copyright: 'a secret place' }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } }
    const turned = await picture({ width: 60, height: 30 })
      .withMetadata({ orientation: 6 })
      .withExif(exif)
      .jpeg()
      .toBuffer()
    const oriented = await sharp(turned).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    const body = Buffer.from((await madeOf(oriented, '?f=jpeg')).bytes)
    const read = await sharp(body).metadata()
    expect([read.width, read.height]).toEqual([30, 60])
    expect([read.orientation, read.exif, read.xmp, read.icc]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(body.includes('secret')).toBe(false)
    const [red = 0] = await colourAt(body, [0.5, 0.1])
    expect(red).toBeGreaterThan(200)
  })
})

describe('animated images', () => {
  test.each(['gif', 'webp'] as const)('of %s keep their frames in WebP', async (format) => {
    const { bytes, frames } = await madeOf(await animated(format, 5), '?w=32&fit=fit', ACCEPTS_WEBP)
    expect(frames).toEqual([5, 5])
    expect(await sharp(bytes, { animated: true }).metadata()).toMatchObject({
      pages: 5,
      width: 32,
      pageHeight: 32,
    })
  })

  test.each([
    ['in another format', '?f=png', 5],
    ['if they are too many', '', 201],
    ['if all of them have too many pixels', '?w=1920&fit=fit', 5],
  ])('show the first frame %s, and say so', async (_, query, count) => {
    const { bytes, frames } = await madeOf(await animated('gif', count), query, ACCEPTS_WEBP)
    expect([frames, (await sharp(bytes).metadata()).pages ?? 1]).toEqual([[1, count], 1])
  })

  test('say so in a header', async () => {
    const { headers } = await imageOf(await inscribed('image/gif', await animated('gif', 2)))
    expect(headers['x-image-frames']).toBe('1/2')
  })
})

describe('what is no image', () => {
  const png = encoded(picture({ width: 64, height: 64 }), 'png')
  const jpeg = picture({ width: 300, height: 300 }).flatten().jpeg().toBuffer()

  test.each([
    ['text', 'text/plain', async () => Buffer.from('hello'), 415, 'UNSUPPORTED_IMAGE'],
    ['an image with another type', 'application/octet-stream', () => png, 415, 'UNSUPPORTED_IMAGE'],
    ['nothing', 'image/png', async () => Buffer.alloc(0), 415, 'UNSUPPORTED_IMAGE'],
    ['a signature alone', 'image/png', async () => (await png).subarray(0, 8), 422, 'BAD_IMAGE'],
  ])('%s', async (_, type, body, status, code) => {
    const outpoint = await inscribed(type, await body())
    for (const method of ['GET', 'GET']) {
      const answer = await imageOf(outpoint, '', { method })
      expect([answer.status, answer.headers['cache-control']]).toEqual([status, 'no-store'])
      expect(answer.json).toEqual({ code, error: expect.stringMatching(/^[ -~]{20,300}$/) })
    }
  })

  test.each<[string, () => Promise<Buffer>, string]>([
    [
      'AVIF',
      async () =>
        await sharp(await png)
          .avif()
          .toBuffer(),
      'UNSUPPORTED_IMAGE',
    ],
    [
      'TIFF',
      async () =>
        await sharp(await png)
          .tiff()
          .toBuffer(),
      'UNSUPPORTED_IMAGE',
    ],
    ['SVG', async () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'UNSUPPORTED_IMAGE'],
    ['half a PNG', async () => (await png).subarray(0, (await png).length / 2), 'BAD_IMAGE'],
    ['half a JPEG', async () => (await jpeg).subarray(0, (await jpeg).length / 2), 'BAD_IMAGE'],
  ])('%s that says it is PNG', async (_, body, code) => {
    await expect(madeOf(await body())).rejects.toMatchObject({ code })
  })

  test('of a bomb, no pixel is read', async () => {
    const bomb = Buffer.from(await png)
    // The sides in its first chunk, whose checksum comes behind.
    bomb.writeUInt32BE(30_000, 16)
    bomb.writeUInt32BE(30_000, 20)
    bomb.writeUInt32BE(crc32(bomb.subarray(12, 29)), 29)
    const message = expect.stringContaining('50000000 pixels')
    await expect(madeOf(bomb)).rejects.toMatchObject({ code: 'BAD_IMAGE', message })
  })

  test.each([
    ['of another type by its bytes', 'image/png'],
    ['with the type that many give a JPEG', 'image/jpg'],
  ])('%s, an image is read as what it is', async (_, type) => {
    const outpoint = await inscribed(type, await jpeg)
    expect((await imageOf(outpoint)).status).toBe(200)
  })
})

/** As PNG has it (ISO 3309). */
function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}

test('at steps of an ordinal, the image is that of the step, with its headers', async () => {
  const contents = await Promise.all([20, 40].map((width) => encoded(picture({ width, height: 20 }), 'png')))
  const [first, second] = contents.map((body) => inscriptionScript({ contentType: 'image/png', body }))
  const { life } = livesOn(server, chain)
  const steps = await life(first ?? '', [p2pkh(1), second ?? new Uint8Array()])
  const at = (step: number): string => steps[step]?.outpoint(0) ?? ''
  for (const [asked, step, width, cache] of [
    [`${at(0)}:-1`, 2, 32, 'no-cache'],
    [`${at(2)}:0`, 0, 16, 'public, max-age=31536000, immutable'],
    [`${at(0)}:1`, 1, 16, 'public, max-age=31536000, immutable'],
  ] as const) {
    const { status, headers, body } = await imageOf(asked, '?w=32&h=16')
    expect(status).toBe(200)
    expect((await sharp(body).metadata()).width).toBe(width)
    expect(headers).toMatchObject({
      ...{ 'cache-control': cache, 'x-outpoint': at(step) },
      ...{ 'x-origin': at(0), 'x-ord-seq': String(step) },
    })
  }
  expect([(await imageOf(`${at(0)}:3`)).status, (await imageOf(at(1))).status]).toEqual([404, 404])
})

test('an image that a patch makes is one of its own', async () => {
  const small = await encoded(picture({ width: 20, height: 10 }), 'png')
  const base = await inscribed('image/png', small)
  const next = await encoded(picture({ width: 60, height: 10 }), 'png')
  const body = encodePatch({ base: parseOutpoint(base), delta: encodeDelta(small, next) })
  const { status, headers, body: made } = await imageOf(await inscribed(PATCH_TYPE, body), '?f=png')
  expect([status, headers['content-type']]).toEqual([200, 'image/png'])
  expect((await sharp(made).metadata()).width).toBe(60)
  const broken = await inscribed(PATCH_TYPE, body.subarray(0, -3))
  expect((await imageOf(broken)).status).toBe(400)
})

test('what is made once is read from disk, also by the next process', async () => {
  const first = await servers.start({}, { imageProgram: program })
  const outpoint = await inscribed(
    'image/png',
    await encoded(picture({ width: 50, height: 20 }), 'png'),
    first,
  )
  const made = await imageOf(outpoint, '?w=48', WEBP, first)
  expect(made.status).toBe(200)
  await first.stop()
  const [file, ...others] = readdirSync(join(first.dataDir, 'images'))
  expect(file).toMatch(/^[0-9a-f]{64}-48x-limit-center-75\.webp$/)
  expect(others).toEqual([])
  // Only what is on disk is here.
  const second = await servers.start(
    { DATA_DIR: first.dataDir },
    { imageProgram: new URL('missing.js', program) },
  )
  const again = await imageOf(outpoint, '?w=48', WEBP, second)
  expect([again.status, again.headers.etag, again.body]).toEqual([200, made.headers.etag, made.body])
  expect((await imageOf(outpoint, '?w=64', WEBP, second)).status).toBe(500)
  const { body } = await second.ask('/metrics')
  expect(body.toString()).toContain('minetree_cache_lookups_total{cache="images",result="hit"} 1')
})

test('what is blocked is not shown, also if it was made before', async () => {
  const outpoint = await inscribed('image/png', await encoded(picture({ width: 70, height: 20 }), 'png'))
  expect((await imageOf(outpoint)).status).toBe(200)
  await server.block({ outpoint })
  for (const query of ['', '?w=16']) expect((await imageOf(outpoint, query)).status).toBe(451)
})

test('what was made of content goes with it when it is purged', async () => {
  const purged = await servers.start({}, { imageProgram: program })
  const body = await encoded(picture({ width: 60, height: 20 }), 'png')
  const outpoint = await inscribed('image/png', body, purged)
  expect((await imageOf(outpoint, '', {}, purged)).status).toBe(200)
  await purged.stop()
  await purge({ folder: purged.dataDir }, [parseOutpoint(outpoint)], 'for a test')
  expect(existsSync(join(purged.dataDir, 'images'))).toBe(false)
  const again = await servers.start({ DATA_DIR: purged.dataDir }, { imageProgram: program })
  expect((await imageOf(outpoint, '', {}, again)).status).toBe(451)
})

test('an image that is made costs a client more than one read, and one that was made does not', async () => {
  const limited = await servers.start({ TRUST_PROXY: '1' }, { imageProgram: program })
  const body = await encoded(picture({ width: 80, height: 20 }), 'png')
  const outpoint = await inscribed('image/png', body, limited)
  const client = { headers: { 'X-Forwarded-For': '192.0.2.1' } }
  const left = async (): Promise<number> => {
    const { status, headers } = await imageOf(outpoint, '', client, limited)
    expect(status).toBe(200)
    return Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1])
  }
  await withinAMinute(async () => {
    const first = await left()
    const folder = join(limited.dataDir, 'images')
    await until(() => existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('plain')))
    const second = await left()
    expect(first - second).toBeGreaterThan(5)
    expect(second - (await left())).toBe(1)
  })
})

test('lists of the explorer show smaller ones of what is not small', async () => {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 60 }
  const noisy = sharp({ create: { width: 200, height: 200, channels: 3, background: '#000', noise } })
  const [large, small] = [
    await inscribed('image/png', await encoded(noisy, 'png')),
    await inscribed('image/png', await encoded(picture({ width: 30, height: 20 }), 'png')),
  ]
  const page = (await server.ask('/inscriptions', { headers: { Accept: 'text/html' } })).body.toString()
  const [src = ''] = new RegExp(`/svc/gateway/image/${large}[^"]*`).exec(page) ?? []
  expect((await server.ask(src.replaceAll('&amp;', '&'))).status).toBe(200)
  expect(page).toContain(`src="/content/${small}"`)
})

describe('without sharp, or room', () => {
  test.each([
    ['program', {}, {}],
    ['room', { MAX_IMAGE_CACHE_BYTES: '0' }, { imageProgram: program }],
  ])('without %s there is no route and no capability', async (_, settings, options) => {
    const bare = await servers.start(settings, options)
    expect((await imageOf(wide, '', {}, bare)).status).toBe(404)
    expect((await bare.ask('/capabilities')).json).not.toContain('image')
    expect(existsSync(join(bare.dataDir, 'images'))).toBe(false)
  })
})
