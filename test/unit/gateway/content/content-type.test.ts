import { servedType } from '../../../../src/gateway/http/security-headers.js'

const UNTYPED = { value: 'application/octet-stream', active: false }

test.each([
  'image/png',
  'text/plain',
  'text/plain; charset=utf-8',
  'application/json',
  'application/octet-stream',
  'video/mp4; codecs="avc1.42E01E"',
  'gw/stream',
  // Legal (RFC 9110 5.6.4), and what MediaRecorder writes.
  'video/mp4; codecs="avc1.42E01E, mp4a.40.2"',
  'video/webm;codecs="vp8,opus"',
  'image/png,image/png',
  'image/png,*/*',
  'nothing, image/png',
  'image/png;x="\\",text/plain"',
  'image/png;x="a,b',
])('%s is served as inscribed, and does not run', (inscribed) => {
  expect(servedType(inscribed)).toMatchObject({ value: inscribed, active: false })
})

test.each([
  'text/html',
  'Text/Html; charset=utf-8',
  'text/html;',
  ' text/html',
  'application/xhtml+xml',
  'image/svg+xml',
  'image/SVG+XML;charset=utf-8',
  'text/xml',
  'application/xml',
  'application/anything+xml',
  'text/xsl',
  'text/javascript',
  'application/javascript',
  'text/ecmascript',
  'multipart/x-mixed-replace;boundary=x',
  'multipart/mixed;boundary=x',
  'message/rfc822',
  'text/html,',
  'nothing,text/html',
  'text/html;x="a,image/png"',
  // Served by its one type, in the sandbox of another that a reader without quoted strings would find.
  'image/png;x="a,text/html;y="',
  'image/png;x="a,text/html',
])('%j is served as inscribed, and runs', (inscribed) => {
  expect(servedType(inscribed)).toMatchObject({ value: inscribed, active: true })
})

test.each([
  ['another alphabet', 'text/plain;x=текст', false],
  ['a letter beyond 16 bits', 'text/plain;x="😀"', false],
  ['a letter that Latin-1 has', 'text/html;x=é', true],
  ['a control character beyond ASCII', 'text/html;x="\x85"', true],
])('%s in a parameter is served in the bytes that were inscribed', (_, inscribed, active) => {
  const served = servedType(inscribed)
  expect(served).toMatchObject({ active })
  expect(Buffer.from(served.value, 'latin1').toString('utf8')).toBe(inscribed)
})

test.each([
  ['nothing', ''],
  ['a word', 'html'],
  ['no subtype', 'text/'],
  ['a space in the subtype', 'text/ht ml'],
  ['brackets', 'text/<html>'],
  ['two types, the last of which would win', 'image/png,text/html'],
  ['two types with a space', 'text/plain, text/html'],
  ['a comma in a parameter', 'image/png;x=,text/html'],
  ['a comma behind an escaped quote', 'image/png;x="\\"",text/html'],
  ['types in which no browser sees any', '*/*'],
  ['a header after it', 'text/plain\r\nContent-Security-Policy: none'],
  ['a line feed in a parameter', 'text/plain;x=y\nSet-Cookie: a=b'],
  ['a NUL', 'text/plain\0'],
  ['a control character', 'text/plain;x=\x1b[31m'],
  ['a carriage return', 'text/html\rX-Evil: 1'],
  ['a letter beyond ASCII in the subtype', 'text/htmlé'],
  ['two types, one with a letter beyond ASCII behind it', 'text/plain;x=é,text/html'],
])('%s is served as bytes of no type', (_, inscribed) => {
  expect(servedType(inscribed)).toMatchObject(UNTYPED)
})
