import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import type { WantedImage } from '../../../../src/gateway/images/images.js'
import { Images } from '../../../../src/server/images/images.js'
import { imageProgram } from '../../../support/images/pictures.js'
import { SILENT } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const program = await imageProgram()
const folder = await mkdtemp(join(tmpdir(), 'minetree-making-'))
const opened: Images[] = []
afterAll(async () => {
  await Promise.all(opened.map((images) => images.close()))
  await rm(folder, { recursive: true, force: true })
})

const LOG = join(folder, 'started')
const GATE = join(folder, 'gate')
const SAID = `const fs = require('node:fs'), crypto = require('node:crypto')
const wanted = JSON.parse(process.argv[3])
fs.appendFileSync(${JSON.stringify(LOG)}, wanted.width + ' ' + Object.keys(process.env).filter((name) => name !== '__CF_USER_TEXT_ENCODING') + '\\n')
const say = (body) => {
  const sha256 = crypto.createHash('sha256').update(body).digest('hex')
  process.stdout.write(JSON.stringify({ type: 'image/png', sha256, milliseconds: 7 }) + '\\n')
  process.stdout.write(body)
}
const whenOpen = (then) => fs.existsSync(${JSON.stringify(GATE)}) ? then() : setTimeout(() => whenOpen(then), 5)
`

let programs = 0
type Options = Partial<ConstructorParameters<typeof Images>[1]>
function open(script: string, options: Options = {}, sharp = 'sharp'): Images {
  const file = join(folder, `program-${++programs}.cjs`)
  writeFileSync(file, SAID + script)
  const limits = { maxImageCacheBytes: 1024 * 1024 }
  const dataDir = join(folder, `data-${programs}`)
  const images = new Images(sharp, {
    dataDir,
    limits,
    logger: SILENT,
    clientOf: ({ ip }) => String(ip),
    program: pathToFileURL(file),
    ...options,
  })
  opened.push(images)
  return images
}

const ECHO =
  'const parts = []; process.stdin.on("data", (part) => parts.push(part)).on("end", () => say(Buffer.concat(parts)))'
const HANGING = 'process.stdin.resume(); setInterval(() => {}, 1000)'

interface Asked {
  width?: number
  body?: Buffer
  ip?: string
  signal?: AbortSignal
  charged?: number[]
}

function ask(
  images: Images,
  { width = 16, body = Buffer.from('bytes'), ip = '127.0.0.1', signal, charged = [] }: Asked = {},
) {
  const wanted: WantedImage = { width, fit: 'limit', gravity: 'center', format: 'png', quality: 100 }
  return images.image(
    { sha256: sha256(body).toString('hex'), chunks: () => [body.subarray(0, 2), body.subarray(2)] },
    {
      ...{ wanted, request: { ip }, signal: signal ?? new AbortController().signal },
      charge: (each) => charged.push(each),
    },
  )
}

const started = (): string[] => (existsSync(LOG) ? readFileSync(LOG, 'utf8').split('\n').slice(0, -1) : [])

beforeEach(() => {
  writeFileSync(LOG, '')
})

test('clients that want the same wait for one process, which has nothing of this host, and pay for it', async () => {
  const images = open(ECHO)
  const charged: number[] = []
  const body = Buffer.alloc(900_000, 'x')
  const all = await Promise.all([1, 2, 3].map(() => ask(images, { body, charged })))
  for (const { body: made } of all) expect(body.equals(made)).toBe(true)
  expect([started(), charged]).toEqual([['16 '], [7, 7, 7]])
  await until(() => images.waiting === 0)
  await ask(images, { body, charged })
  expect([charged, images.use]).toEqual([[7, 7, 7], { hits: 1, misses: 3 }])
})

test('one after another is made; those that nobody waits for any more are not', async () => {
  await rm(GATE, { force: true })
  const images = open(`process.stdin.resume(); whenOpen(() => say(Buffer.from(String(wanted.width))))`)
  const first = ask(images, { width: 1 })
  await until(() => started().length === 1)
  const leaving = new AbortController()
  const left = ask(images, { width: 2, signal: leaving.signal }).catch((error: unknown) => error)
  const both = [ask(images, { width: 3, signal: leaving.signal }), ask(images, { width: 3 })]
  const shared = both[0]?.catch((error: unknown) => error)
  // All of them wait once what is on disk was looked at.
  await until(() => images.waiting === 3)
  leaving.abort(new Error('left'))
  expect([await left, images.waiting]).toEqual([new Error('left'), 2])
  writeFileSync(GATE, '')
  expect([(await first).body.toString(), (await both[1])?.body.toString()]).toEqual(['1', '3'])
  await shared
  expect(started()).toEqual(['1 ', '3 '])
})

test('the queue is bounded, and what leaves it makes room', async () => {
  const images = open(HANGING)
  const leaving = new AbortController()
  const waiting = Array.from({ length: 32 }, (_, index) =>
    ask(images, { width: index + 1, signal: leaving.signal }).catch((error: unknown) => error),
  )
  await until(() => images.waiting === 32)
  await expect(ask(images, { width: 100 })).rejects.toMatchObject({
    code: 'NOT_READY',
    headers: { 'Retry-After': '5' },
  })
  leaving.abort(new Error('left'))
  const last = ask(images, { width: 100 }).catch((error: unknown) => error)
  await until(() => images.waiting === 2)
  await images.close()
  expect(await last).toMatchObject({ code: 'NOT_READY' })
  expect(await Promise.all(waiting)).toEqual([
    expect.objectContaining({ code: 'NOT_READY' }),
    ...Array.from({ length: 31 }, () => new Error('left')),
  ])
})

test('clients take turns, also for the last place: those that fill the queue keep nobody out', async () => {
  await rm(GATE, { force: true })
  const images = open(`process.stdin.resume(); whenOpen(() => say(Buffer.from(String(wanted.width))))`)
  const widths = Array.from({ length: 32 }, (_, index) => index + 1)
  const ofFour = widths.map((width) =>
    ask(images, { width, ip: `203.0.113.${Math.ceil(width / 8)}` }).then(
      () => undefined,
      (error: unknown) => error,
    ),
  )
  await until(() => started().length === 1 && images.waiting === 32)
  const leaving = new AbortController()
  void ask(images, { width: 31, ip: '198.51.100.2', signal: leaving.signal })
  const others = [
    ask(images, { width: 100, ip: '198.51.100.1' }),
    // Somebody else waits for this one, as the last of a client.
    ask(images, { width: 16, ip: '198.51.100.1' }),
  ]
  expect(await Promise.race([ofFour.at(-1), ...others])).toMatchObject({
    code: 'NOT_READY',
    headers: { 'Retry-After': '5' },
  })
  leaving.abort()
  writeFileSync(GATE, '')
  await Promise.all(others)
  expect((await Promise.all(ofFour)).filter((error) => error !== undefined).length).toBe(1)
  const made = started().map((line) => Number.parseInt(line, 10))
  expect(made.slice(0, 10)).toEqual([1, 9, 17, 25, 100, 2, 10, 16, 18, 26])
  // Who has left waits for nothing any more.
  expect(made.slice(-3)).toEqual([31, 8, 24])
})

test.each([
  ['hangs', HANGING, 'NOT_READY', 300],
  ['crashes', 'process.kill(process.pid, "SIGSEGV")', 'BAD_IMAGE', undefined],
  ['fails', 'process.exit(3)', undefined, undefined],
  ['says nothing', '', undefined, undefined],
  ['says something else', 'process.stdout.write("<html>")', undefined, undefined],
  [
    'says another type',
    'process.stdout.write(JSON.stringify({ type: "text/html", sha256: "0".repeat(64), milliseconds: 1 }) + "\\n")',
    undefined,
    undefined,
  ],
  [
    'says another hash',
    'process.stdout.write(JSON.stringify({ type: "image/png", sha256: "0".repeat(64), milliseconds: 1 }) + "\\nx")',
    undefined,
    undefined,
  ],
  [
    'says too much',
    'process.stdin.resume(); const more = () => process.stdout.write(Buffer.alloc(1 << 20), more); more()',
    'BAD_IMAGE',
    undefined,
  ],
])('of a process that %s, nothing is left', async (_, script, code, patience) => {
  const images = open(script, patience === undefined ? {} : { patience })
  const charged: number[] = []
  const error = await ask(images, { charged }).catch((thrown: unknown) => thrown)
  // Errors of Node itself are of another realm.
  expect(error).toMatchObject(code === undefined ? { name: 'Error' } : { code })
  expect(charged.length).toBe(1)
  await until(() => images.waiting === 0)
})

test('a refusal is kept, and so costs once', async () => {
  const images = open(
    'process.stdout.write(JSON.stringify({ refused: "BAD_IMAGE", message: "it is damaged", milliseconds: 9 }) + "\\n")',
  )
  const charged: number[] = []
  for (let times = 0; times < 3; times++)
    await expect(ask(images, { charged })).rejects.toMatchObject({
      code: 'BAD_IMAGE',
      message: 'it is damaged',
    })
  expect([started().length, charged]).toEqual([1, [9]])
})

test('an image that takes too long is refused while a thread still makes it, and so costs once', async () => {
  const sharp = join(folder, 'endless.cjs')
  writeFileSync(
    sharp,
    `const { pbkdf2 } = require('node:crypto')
    const metadata = () => new Promise(() => pbkdf2('', '', 2 ** 31 - 1, 64, 'sha512', () => {}))
    const nothing = () => {}
    module.exports = Object.assign(() => ({ metadata }), { concurrency: nothing, cache: nothing, block: nothing, unblock: nothing })`,
  )
  const images = open('', { program, maxMilliseconds: 500 }, sharp)
  const charged: number[] = []
  for (let times = 0; times < 2; times++)
    await expect(ask(images, { body: Buffer.from('GIF89a'), charged })).rejects.toMatchObject({
      code: 'BAD_IMAGE',
      message: 'this image takes more than 0.5 seconds to resize',
    })
  expect([charged, images.use]).toEqual([[expect.any(Number)], { hits: 1, misses: 1 }])
})

test('bytes that the store cannot read are no image that is damaged', async () => {
  const images = open(ECHO)
  const source = {
    sha256: '0'.repeat(64),
    *chunks() {
      yield Buffer.from('half')
      throw new RangeError('the rest is missing')
    },
  }
  const wanted: WantedImage = { width: 16, fit: 'limit', gravity: 'center', format: 'png', quality: 100 }
  const asked = { wanted, request: { ip: undefined }, signal: new AbortController().signal, charge() {} }
  for (let times = 0; times < 2; times++)
    await expect(images.image(source, asked)).rejects.toThrow(RangeError)
  expect(images.use).toEqual({ hits: 0, misses: 2 })
})

describe('on disk', () => {
  test('files stay within the budget, and what was used last stays', async () => {
    const images = open(ECHO, { dataDir: join(folder, 'budget'), limits: { maxImageCacheBytes: 8192 } })
    for (const width of [1, 2, 1, 3]) {
      await ask(images, { width })
      await until(() => images.waiting === 0)
    }
    await until(() => readdirSync(join(folder, 'budget/images')).length === 2)
    expect(readdirSync(join(folder, 'budget/images')).map((name) => name.split('-')[1])).toEqual(['1x', '3x'])
    await ask(images, { width: 4, body: Buffer.alloc(9000) })
    await until(() => images.waiting === 0)
    expect(readdirSync(join(folder, 'budget/images')).length).toBe(2)
    const less = open(ECHO, { dataDir: join(folder, 'budget'), limits: { maxImageCacheBytes: 4096 } })
    await ask(less, { width: 3 })
    await until(() => readdirSync(join(folder, 'budget/images')).length === 1)
  })

  test('files that are torn, half written or gone are made again', async () => {
    const dataDir = join(folder, 'torn')
    const body = Buffer.alloc(10_000, 'y')
    const images = open(ECHO, { dataDir })
    await ask(images, { body })
    await images.close()
    const [name = ''] = readdirSync(join(dataDir, 'images'))
    const file = join(dataDir, 'images', name)
    writeFileSync(`${file}.part`, 'half')
    const damages = [
      () => truncateSync(file, 5000),
      () => truncateSync(file, 0),
      () => appendFileSync(file, 'x'),
      () => rm(file),
    ]
    for (const damage of damages) {
      await damage()
      const again = open(ECHO, { dataDir })
      expect(body.equals((await ask(again, { body })).body)).toBe(true)
      await again.close()
      expect(readdirSync(join(dataDir, 'images'))).toEqual([name])
    }
    expect(started().length).toBe(1 + damages.length)
  })

  test('what is forgotten as soon as it was made is gone', async () => {
    const images = open(ECHO)
    const body = Buffer.from('purged meanwhile')
    await ask(images, { body })
    await images.forget(sha256(body).toString('hex'))
    await until(() => images.waiting === 0)
    expect(readdirSync(join(folder, `data-${programs}/images`))).toEqual([])
  })

  test('what cannot be kept is sent, and leaves nothing', async () => {
    const dataDir = join(folder, 'odd')
    const body = Buffer.from('kept nowhere')
    const name = `${sha256(body).toString('hex')}-16x-limit-center-100.png`
    mkdirSync(join(dataDir, 'images', name, 'below'), { recursive: true })
    symlinkSync('nothing', join(dataDir, 'images', 'link'))
    const images = open(ECHO, { dataDir })
    expect(body.equals((await ask(images, { body })).body)).toBe(true)
    await until(() => images.waiting === 0)
    expect(readdirSync(join(dataDir, 'images')).sort()).toEqual([name, 'link'])
  })

  test('what is forgotten is gone, and nothing else', async () => {
    const images = open(ECHO)
    const [one, other] = [Buffer.from('one'), Buffer.from('other')]
    for (const body of [one, other]) for (const width of [1, 2]) await ask(images, { body, width })
    await until(() => images.waiting === 0)
    await images.forget(sha256(one).toString('hex'))
    const left = readdirSync(join(folder, `data-${programs}/images`))
    expect(left.map((name) => name.slice(0, 64))).toEqual(
      [other, other].map((body) => sha256(body).toString('hex')),
    )
  })
})
