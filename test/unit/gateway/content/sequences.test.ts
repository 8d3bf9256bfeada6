import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { livesOn } from '../../../support/graph/lives.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const server = await start()
const chain = new FakeChain()
const IMMUTABLE = 'public, max-age=31536000, immutable'

const { submit, transferred, life } = livesOn(server, chain)

const mapped = (step: string): Uint8Array =>
  concatBytes(p2pkh(2), mapTail({ [`at ${step}`]: 'said', last: step }))

const at = (step: FakeTransaction | undefined): string => step?.outpoint(0) ?? ''

/** What the steps of a mapped life have said up to one of them. */
const said = (step: number): Record<string, string> => ({
  ...Object.fromEntries(Array.from({ length: step }, (_, before) => [`at ${before + 1}`, 'said'])),
  ...(step > 0 && { last: String(step) }),
})

const mappedLife = await life('at the origin', [mapped('1'), mapped('2'), mapped('3')])
const again = inscriptionScript({ contentType: 'text/html', body: utf8('<p>again</p>') })
const reinscribedLife = await life('first', [mapped('1'), again, p2pkh(4)])

describe('an ordinal with content at its origin, and MAP at three steps more', () => {
  const steps = mappedLife

  test.each([0, 1, 2, 3])('has its origin’s bytes at step %d, from wherever it is asked', async (step) => {
    for (const from of steps) {
      const { status, headers, body } = await server.ask(`/content/${at(from)}:${step}`)
      expect({ status, body: body.toString('utf8') }).toEqual({ status: 200, body: 'at the origin' })
      expect(headers).toMatchObject({
        'content-type': 'text/plain',
        'x-outpoint': at(steps[step]),
        'x-origin': at(steps[0]),
        'x-ord-seq': String(step),
        'cache-control': IMMUTABLE,
      })
      expect(JSON.parse(String(headers['x-map'] ?? '{}'))).toEqual(said(step))
    }
  })

  test('has them at its tip, which is revalidated each time', async () => {
    const { headers, body } = await server.ask(`/content/${at(steps[1])}:-1`)
    expect(body.toString('utf8')).toBe('at the origin')
    expect(headers).toMatchObject({
      'x-outpoint': at(steps[3]),
      'x-ord-seq': '3',
      'cache-control': 'no-cache',
      etag: expect.stringMatching(/^"[0-9a-f]{64}"$/),
    })
    const again = await server.ask(`/content/${at(steps[1])}:-1`, {
      headers: { 'If-None-Match': String(headers.etag) },
    })
    expect(again.status).toBe(304)
  })
})

describe('an ordinal reinscribed in the middle', () => {
  const steps = reinscribedLife

  test.each([
    [0, 'first', 'text/plain'],
    [1, 'first', 'text/plain'],
    [2, '<p>again</p>', 'text/html'],
    [3, '<p>again</p>', 'text/html'],
    [-1, '<p>again</p>', 'text/html'],
    [-2, 'first', 'text/plain'],
  ])('has at %d the latest content until then', async (sequence, expected, type) => {
    const { headers, body } = await server.ask(`/content/${at(steps[1])}:${sequence}`)
    expect(body.toString('utf8')).toBe(expected)
    expect(headers['content-type']).toBe(type)
    expect(headers['x-origin']).toBe(at(steps[0]))
  })
})

test('a step that is not mined is kept for a minute only', async () => {
  const [origin] = await life('soon', [])
  if (origin === undefined) throw new Error('there is an origin')
  // The coin’s own lock takes any one push, so that the engine’s interpreter lets the unproven spend through.
  const open = chain.spend({
    inputs: [{ transaction: origin, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: Uint8Array.of(0x75, 0x51) }],
  })
  await submit(open, { with: [origin] })
  const next = transferred(open, p2pkh(5))
  await submit(next, { proven: false, with: [open] })
  const { headers } = await server.ask(`/content/${at(origin)}:2`)
  expect(headers).toMatchObject({ 'x-outpoint': at(next), 'cache-control': 'public, max-age=60' })
  await submit(next)
  expect((await server.ask(`/content/${at(origin)}:2`)).headers['cache-control']).toBe(IMMUTABLE)
})

test('an output of another value than one satoshi is a chain of one', async () => {
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('alone'), satoshis: 7 })
  await submit(note)
  for (const sequence of [0, -1, -2]) {
    const { headers, body } = await server.ask(`/content/${at(note)}:${sequence}`)
    expect(body.toString('utf8')).toBe('alone')
    expect(headers).toMatchObject({ 'x-outpoint': at(note), 'x-origin': at(note), 'x-ord-seq': '0' })
  }
  expect(await server.ask(`/content/${at(note)}:1`)).toMatchObject({ status: 404 })
})

test('while the coin that an ordinal received is not known, it has no sequences, but its content', async () => {
  const unknown = chain.inscribe({ contentType: 'text/plain', body: utf8('who knows') })
  await submit(unknown)
  expect(await server.ask(`/content/${at(unknown)}`)).toMatchObject({ status: 200 })
  for (const sequence of [0, -1, -2]) {
    expect(await server.ask(`/content/${at(unknown)}:${sequence}`)).toMatchObject({ status: 404 })
  }
})

test('what hangs below a directory follows the directory’s own rule', async () => {
  const file = chain.inscribe({ contentType: 'text/plain', body: utf8('a file') })
  await submit(file)
  const map = utf8(JSON.stringify({ 'a.txt': at(file), 'index.html': at(file) }))
  const directory = inscriptionScript({ contentType: 'ord-fs/json', body: map })
  const steps = await life('not a directory yet', [directory])
  const tip = await server.ask(`/content/${at(steps[0])}:-1/a.txt`)
  expect(tip.body.toString('utf8')).toBe('a file')
  expect(tip.headers).toMatchObject({
    'cache-control': 'no-cache',
    'x-outpoint': at(file),
    'x-origin': at(steps[0]),
    'x-ord-seq': '1',
  })
  expect((await server.ask(`/content/${at(steps[0])}:1/a.txt`)).headers['cache-control']).toBe(IMMUTABLE)
  const redirect = await server.ask(`/content/${at(steps[0])}:-1/`)
  expect(redirect).toMatchObject({ status: 302 })
  expect(redirect.headers).toMatchObject({
    location: `/content/${at(steps[0])}:-1/index.html`,
    'cache-control': 'no-cache',
  })
})
