import { escapeInvisible } from '../../../backend/src/protocol/invisible.js'
import { kindOf } from '../../../src/explorer/content-kinds.js'
import { nameHostUrl, readPlace, writePlace } from '../../../src/explorer/reads.js'
import { byteSize, moment, shortened, shortOutpoint, shown } from '../../../src/explorer/text.js'

test.each([
  ['plain', 'plain'],
  ['line\nand\ttab', 'line\nand\ttab'],
  ['\u202egnirts', '\\u{202e}gnirts'],
  ['a\u0000b', 'a\\u{0}b'],
  ['half \ud800 of a pair', 'half \\u{d800} of a pair'],
  ['a whole one \u{1f600}', 'a whole one \u{1f600}'],
  ['\u2066isolate\u2069', '\\u{2066}isolate\\u{2069}'],
])('what nobody sees in %j is written out', (text, escaped) => {
  expect(escapeInvisible(text)).toBe(escaped)
})

test('a long text is cut before anything else is done with it', () => {
  const text = shown('x'.repeat(10_000_000))
  expect(text).toHaveLength(81)
  expect(text.endsWith('…')).toBe(true)
})

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 KB'],
  [48_210, '48 KB'],
  [24_000_000, '24 MB'],
  [1e15, '1000 TB'],
])('%i bytes are %s', (bytes, text) => {
  expect(byteSize(bytes)).toBe(text)
})

test('hex is shortened, and short words are not', () => {
  expect(shortened('a'.repeat(64))).toBe('aaaaaaaa…aaaaaa')
  expect(shortened('abc')).toBe('abc')
  expect(shortOutpoint(`${'a'.repeat(64)}_12`)).toBe('aaaaaaaa…aaaa_12')
})

test('a moment is written to the minute, in UTC', () => {
  expect(moment(Date.UTC(2026, 0, 2, 3, 4, 5))).toBe('2026-01-02 03:04')
})

test.each([
  ['image/PNG', 'image'],
  ['image/svg+xml;charset=utf-8', 'image'],
  ['text/html', 'page'],
  ['text/plain', 'text'],
  ['gw-fs/json', 'directory'],
  ['application/op-ns', 'name'],
  ['video/mp4; stream=gw', 'video'],
  ['', 'other'],
  ['text/html, image/png', 'other'],
  ['video/webm;codecs=vp8,opus', 'video'],
  ['GW-FS/JSON', 'other'],
  ['gw/stream;x', 'other'],
])('%j is shown as %s', (type, kind) => {
  expect(kindOf(type)).toBe(kind)
})

test('a place in a list survives a link', () => {
  const place = { recency: 4294967301, outpoint: { txid: 'ab'.repeat(32), vout: 3 } }
  expect(readPlace(writePlace(place))).toEqual(place)
  for (const wrong of ['', '1', '1.x', `x.${'ab'.repeat(32)}_0`, `-1.${'ab'.repeat(32)}_0`])
    expect(readPlace(wrong)).toBeUndefined()
})

test.each([
  ['alice', '//alice.localhost:8080/'],
  ['a'.repeat(63), `//${'a'.repeat(63)}.localhost:8080/`],
  ['a'.repeat(64), undefined],
  ['a-', undefined],
  ['xn--a', undefined],
])('the host of %s is %s', (name, url) => {
  const site = {
    ...{ network: 'local', genesis: undefined, namesPrefix: '', gatewayPrefix: '', version: '1' },
    ...{ gatewayHost: 'localhost:8080', path: '', hasStatus: true, hasImages: false },
  }
  expect(nameHostUrl(site, name)).toBe(url)
  expect(nameHostUrl({ ...site, gatewayHost: undefined }, name)).toBeUndefined()
})
