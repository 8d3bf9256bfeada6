import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { concatBytes, joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { readInscription } from '../../../backend/src/protocol/inscription.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import {
  contentTypeOf,
  layOut,
  layOutFile,
  layOutStream,
  layOutStreamChunk,
  PublishError,
  type PublishOutput,
  streamChunkCount,
} from '../../../src/publish/index.js'
import { bytes } from '../../support/protocol/arbitraries.js'
import { inscriptionScript, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'

const { local, mainnet } = PROFILES
const lock = p2pkh(7)
const OWNER = `${'00'.repeat(16)}00000007`
const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
const content = (script: Uint8Array) => readInscription(script).content
const refusal = (code: string) => expect.objectContaining({ name: 'PublishError', code })
/** A file of so many bytes, no two neighbours alike. */
const fileOf = (length: number): Uint8Array => new Uint8Array(length).map((_, i) => i % 251)

const BYTES = 'application/octet-stream'

describe('a file as one inscription', () => {
  test('reads back to its bytes, type and owner, whatever the bytes are', () => {
    fc.assert(
      fc.property(bytes(2000), (body) => {
        const { satoshis, lockingScript, tags } = layOutFile({ name: 'a.png', bytes: body, lock })
        expect({ satoshis, tags }).toEqual({ satoshis: 1, tags: [`sha256:${sha256(body)}`] })
        expect(lockingScript.subarray(0, lock.length)).toEqual(lock)
        expect(readInscription(lockingScript)).toEqual({
          content: { contentType: 'image/png', body, source: 'envelope' },
          ...{ parent: undefined, map: [], owner: OWNER },
        })
      }),
    )
  })

  test.each([
    ['index.html', 'text/html; charset=utf-8'],
    ['STYLE.CSS', 'text/css; charset=utf-8'],
    ['app.js', 'text/javascript; charset=utf-8'],
    ['notes.txt', 'text/plain; charset=utf-8'],
    ['data.json', 'application/json'],
    ['picture.svg', 'image/svg+xml'],
    ['archive.tar.gz', 'application/gzip'],
    ['film.mp4', 'video/mp4'],
    ['画像.png', 'image/png'],
    ...['html', '.html', 'a.unheard-of', 'a.', 'a.constructor', ''].map((name) => [name, BYTES]),
  ])('%j is %s', (name, contentType) => {
    expect(contentTypeOf(name)).toBe(contentType)
    expect(content(layOutFile({ name, bytes: fileOf(3), lock }).lockingScript)?.contentType).toBe(contentType)
  })

  test('an empty file is content of no bytes', () => {
    const { lockingScript } = layOutFile({ name: 'a.txt', bytes: new Uint8Array(), lock })
    expect(content(lockingScript)?.body).toEqual(new Uint8Array())
  })

  test('a content type given counts instead of that of the name', () => {
    const { lockingScript } = layOutFile({ name: 'a.txt', bytes: utf8('x'), lock, contentType: 'a/b; c=d' })
    expect(content(lockingScript)?.contentType).toBe('a/b; c=d')
  })

  test('a content type that is none is refused', () => {
    const file = { name: 'a', bytes: fileOf(1), lock }
    for (const contentType of ['', 'text', 'text/plain, text/html', 'text/plain\r\n', `a/${'b'.repeat(254)}`])
      expect(() => layOutFile({ ...file, contentType })).toThrow(refusal('BAD_CONTENT_TYPE'))
  })

  test.each([
    ['that breaks off in a push', Uint8Array.of(0x05, 0x01)],
    ['that breaks off in a length', Uint8Array.of(0x4d)],
    ['with an inscription of its own', inscriptionScript({ contentType: 'text/plain', body: utf8('decoy') })],
    ['with an OP_RETURN', concatBytes(p2pkh(1), mapTail({ app: 'a' }))],
  ])('a lock %s is refused', (_, bad) => {
    expect(() => layOutFile({ name: 'a', bytes: fileOf(1), lock: bad })).toThrow(refusal('BAD_LOCK'))
  })

  test('no lock at all, and one of any whole opcodes, will do', () => {
    for (const any of [new Uint8Array(), Uint8Array.of(0x51), Uint8Array.of(0x75, 0x51)]) {
      const { lockingScript } = layOutFile({ name: 'a', bytes: fileOf(9), lock: any })
      expect(content(lockingScript)?.body).toEqual(fileOf(9))
    }
  })
})

describe('a file as a stream', () => {
  test('its chunks join to its bytes, each with its index and the hash of the whole', () => {
    fc.assert(
      fc.property(bytes(300), fc.integer({ min: 1, max: 400 }), (whole, streamChunkSize) => {
        const steps = layOutStream({ name: 'a.mp4', bytes: whole, lock, profile: local, streamChunkSize })
        const read = steps.map(({ lockingScript }) => content(lockingScript))
        expect(joinBytes(read.map((each) => each?.body ?? new Uint8Array()))).toEqual(whole)
        expect(read.every((each) => (each?.body.length ?? 0) <= streamChunkSize)).toBe(true)
        const types = read.map((_, at) => (at === 0 ? 'video/mp4;stream=gw' : 'gw/stream'))
        expect(read.map((each) => each?.contentType)).toEqual(types)
        const tags = steps.map((_, i) => [`sha256:${sha256(whole)}`, `stream-i:${i}`])
        expect(steps.map((each) => each.tags)).toEqual(tags)
        expect(steps).toHaveLength(streamChunkCount(whole.length, streamChunkSize))
      }),
    )
  })

  test.each([
    ['an empty file, chunks of 1', 0, 1, [0]],
    ['one byte, chunks of 1', 1, 1, [1]],
    ['three bytes, chunks of 1', 3, 1, [1, 1, 1]],
    ['an exact multiple', 12, 4, [4, 4, 4]],
    ['one more than a multiple', 13, 4, [4, 4, 4, 1]],
    ['chunks of the whole file', 12, 12, [12]],
    ['chunks larger than the file', 12, 100, [12]],
  ])('%s', (_, length, streamChunkSize, lengths) => {
    const steps = layOutStream({ name: 'a', bytes: fileOf(length), lock, profile: local, streamChunkSize })
    expect(steps.map(({ lockingScript }) => content(lockingScript)?.body.length)).toEqual(lengths)
  })

  test('without a size, chunks have 1 MiB', () => {
    const whole = fileOf(2 * 1024 * 1024 + 1)
    const steps = layOutStream({ name: 'a.bin', bytes: whole, lock, profile: local })
    const lengths = steps.map(({ lockingScript }) => content(lockingScript)?.body.length)
    expect(lengths).toEqual([1024 * 1024, 1024 * 1024, 1])
    const short = layOutStream({ name: 'a.txt', bytes: fileOf(5), lock, profile: local })
    expect(short.map(({ lockingScript }) => content(lockingScript)?.contentType)).toEqual([
      'text/plain; charset=utf-8;stream=gw',
    ])
  })

  test('on mainnet it is written with the words of mainnet', () => {
    const file = { name: 'a.mp4', bytes: fileOf(2), lock, profile: mainnet, streamChunkSize: 1 }
    const types = layOutStream(file).map(({ lockingScript }) => content(lockingScript)?.contentType)
    expect(types).toEqual(['video/mp4;stream=ordfs', 'ordfs/stream'])
  })

  test('one chunk at a time, it is the same', () => {
    const whole = fileOf(10)
    const given = { name: 'a.ogg', lock, profile: local }
    const hash = createHash('sha256').update(whole).digest()
    const chunks = [whole.subarray(0, 4), whole.subarray(4, 8), whole.subarray(8)]
    expect(chunks.map((chunk, index) => layOutStreamChunk({ ...given, chunk, index, sha256: hash }))).toEqual(
      layOutStream({ ...given, bytes: whole, streamChunkSize: 4 }),
    )
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('chunks of %d bytes are refused', (size) => {
    const file = { name: 'a', bytes: fileOf(1), lock, profile: local, streamChunkSize: size }
    expect(() => layOutStream(file)).toThrow(refusal('BAD_CHUNK_SIZE'))
  })

  test('a content type that the marker makes too long is refused', () => {
    const file = { name: 'a', bytes: fileOf(1), lock, profile: local }
    const contentType = `a/${'b'.repeat(250)}`
    expect(() => layOutFile({ ...file, contentType })).not.toThrow()
    expect(() => layOutStream({ ...file, contentType })).toThrow(PublishError)
  })
})

describe('the options of the reference minting tool', () => {
  const file = { name: 'a.mp4', bytes: fileOf(3 * 1024 * 1024), lock, profile: local }
  /** Scripts of this length take seconds to compare byte by byte. */
  const brief = ({ lockingScript, ...rest }: PublishOutput) => ({ ...rest, script: sha256(lockingScript) })
  const large = { streamChunkSize: 2 ** 20 + 1 }

  test.each([
    ['none', {}, [layOutFile(file)]],
    ['stream: false', { stream: false }, [layOutFile(file)]],
    ['stream: true', { stream: true }, layOutStream(file)],
    ['streamChunkSize', { streamChunkSize: 2 ** 21 }, layOutStream({ ...file, streamChunkSize: 2 ** 21 })],
    ['both', { stream: true, ...large }, layOutStream({ ...file, ...large })],
  ])('%s', (_, options, outputs) => {
    expect(layOut({ ...file, ...options }).map(brief)).toEqual(outputs.map(brief))
  })
})
