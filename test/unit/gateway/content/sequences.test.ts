import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { directory, text } from '../../../support/gateway/site.js'
import { livesOn } from '../../../support/graph/lives.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

const server = await useServers().start()
const chain = new FakeChain()
const IMMUTABLE = 'public, max-age=31536000, immutable'

const { submit, transferred, life } = livesOn(server, chain)

const mapped = (step: string): Uint8Array =>
  concatBytes(p2pkh(2), mapTail({ [`at ${step}`]: 'said', last: step }))
const at = (step: FakeTransaction | undefined): string => step?.outpoint(0) ?? ''
/** Asks for what is behind an output of a step. */
const asked = (step: FakeTransaction | undefined, rest: string, headers = {}) =>
  server.ask(`/content/${at(step)}${rest}`, { headers })

/** What the steps of a mapped life have said up to one of them. */
const said = (step: number): Record<string, string> => ({
  ...Object.fromEntries(Array.from({ length: step }, (_, before) => [`at ${before + 1}`, 'said'])),
  ...(step > 0 && { last: String(step) }),
})

describe('an ordinal with content at its origin, and MAP at three steps more', async () => {
  const steps = await life('at the origin', [mapped('1'), mapped('2'), mapped('3')])

  test.each([0, 1, 2, 3])('has its origin’s bytes at step %d, from wherever it is asked', async (step) => {
    for (const from of steps) {
      const { status, headers, body } = await asked(from, `:${step}`)
      expect([status, body.toString()]).toEqual([200, 'at the origin'])
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
    const { headers, body } = await asked(steps[1], ':-1')
    expect(body.toString()).toBe('at the origin')
    expect(headers).toMatchObject({
      'x-outpoint': at(steps[3]),
      'x-ord-seq': '3',
      'cache-control': 'no-cache',
    })
    expect((await asked(steps[1], ':-1', { 'If-None-Match': String(headers.etag) })).status).toBe(304)
  })
})

describe('an ordinal reinscribed in the middle', async () => {
  const again = inscriptionScript(text('<p>again</p>', 'text/html'))
  const steps = await life('first', [mapped('1'), again, p2pkh(4)])

  test.each([
    [0, 'first', 'text/plain'],
    [1, 'first', 'text/plain'],
    [2, '<p>again</p>', 'text/html'],
    [3, '<p>again</p>', 'text/html'],
    [-1, '<p>again</p>', 'text/html'],
    [-2, 'first', 'text/plain'],
  ])('has at %d the latest content until then', async (sequence, expected, type) => {
    const { headers, body } = await asked(steps[1], `:${sequence}`)
    expect([body.toString(), headers['content-type'], headers['x-origin']]).toEqual([
      expected,
      type,
      at(steps[0]),
    ])
  })
})

test('a step that is not mined is kept for a minute only', async () => {
  const [origin] = await life('soon', [])
  if (origin === undefined) throw new Error('there is an origin')
  // The engine’s interpreter lets the unproven spend of this lock through.
  const open = chain.move(origin, 0, OPEN_LOCK)
  await submit(open, { with: [origin] })
  const next = transferred(open, p2pkh(5))
  await submit(next, { proven: false, with: [open] })
  const { headers } = await asked(origin, ':2')
  expect(headers).toMatchObject({ 'x-outpoint': at(next), 'cache-control': 'public, max-age=60' })
  await submit(next)
  expect((await asked(origin, ':2')).headers['cache-control']).toBe(IMMUTABLE)
})

test('an output of another value than one satoshi is a chain of one', async () => {
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('alone'), satoshis: 7 })
  await submit(note)
  for (const sequence of [0, -1, -2]) {
    const { headers, body } = await asked(note, `:${sequence}`)
    expect(body.toString()).toBe('alone')
    expect(headers).toMatchObject({ 'x-outpoint': at(note), 'x-origin': at(note), 'x-ord-seq': '0' })
  }
  expect((await asked(note, ':1')).status).toBe(404)
})

test('while the coin that an ordinal received is not known, it has no sequences, but its content', async () => {
  const unknown = chain.inscribe(text('who knows'))
  await submit(unknown)
  for (const [sequence, status] of Object.entries({ '': 200, ':0': 404, ':-1': 404, ':-2': 404 }))
    expect([sequence, (await asked(unknown, sequence)).status]).toEqual([sequence, status])
})

test('what hangs below a directory follows the directory’s own rule', async () => {
  const file = chain.inscribe(text('a file'))
  await submit(file)
  const map = directory({ 'a.txt': at(file), 'index.html': at(file) }, 'ord-fs/json')
  const [origin] = await life('not a directory yet', [inscriptionScript(map)])
  const tip = await asked(origin, ':-1/a.txt')
  expect(tip.body.toString()).toBe('a file')
  const ofTip = {
    'cache-control': 'no-cache',
    'x-outpoint': at(file),
    'x-origin': at(origin),
    'x-ord-seq': '1',
  }
  expect(tip.headers).toMatchObject(ofTip)
  expect((await asked(origin, ':1/a.txt')).headers['cache-control']).toBe(IMMUTABLE)
  const { status, headers } = await asked(origin, ':-1/')
  const location = `/content/${at(origin)}:-1/index.html`
  expect([status, headers.location, headers['cache-control']]).toEqual([302, location, 'no-cache'])
})
