import { servedType } from '../../../../src/gateway/http/security-headers.js'

const UNTYPED = { value: 'application/octet-stream', active: false }

test.each([
  'image/png',
  'image/webp',
  'text/plain',
  'text/plain; charset=utf-8',
  'text/plain;charset=UTF-8',
  'text/css',
  'text/markdown',
  'application/json',
  'application/op-ns',
  'application/octet-stream',
  'application/pdf',
  'application/wasm',
  'audio/mpeg',
  'video/mp4; codecs="avc1.42E01E"',
  'font/woff2',
  'gw/stream',
  'model/gltf-binary',
  // Legal (RFC 9110 5.6.4), and what MediaRecorder writes.
  'video/mp4; codecs="avc1.42E01E, mp4a.40.2"',
  'video/webm;codecs=vp8,opus',
  'video/webm;codecs="vp8,opus"',
  'audio/webm;codecs=opus,',
  'image/png,image/png',
  'image/png, IMAGE/PNG;x=y',
  'image/png,*/*',
  ',image/png',
  'nothing, image/png',
  'image/png;x="\\",text/plain"',
  'image/png;x="a,b',
])('%s is served as inscribed, and does not run', (inscribed) => {
  expect(servedType(inscribed)).toMatchObject({ value: inscribed, active: false })
})

test.each([
  'text/html',
  'TEXT/HTML',
  'Text/Html; charset=utf-8',
  'text/html;charset=utf-7',
  'text/html;',
  'text/html ;x=y',
  ' text/html',
  '\ttext/html\t',
  'application/xhtml+xml',
  'image/svg+xml',
  'image/SVG+XML;charset=utf-8',
  'text/xml',
  'application/xml',
  'application/rss+xml',
  'application/anything+xml',
  'text/xsl',
  'text/javascript',
  'application/javascript',
  'application/x-javascript',
  'text/ecmascript',
  'text/livescript',
  'multipart/x-mixed-replace;boundary=x',
  'multipart/mixed;boundary=x',
  'multipart/related',
  'multipart/byteranges',
  'message/rfc822',
  'text/html,',
  'text/html,text/html;charset=utf-8',
  'nothing,text/html',
  'text/html;x="a,image/png"',
  'text/html,*/*',
  // Served by its one type, in the sandbox of another that a reader without quoted strings would find.
  'image/png;x="a,text/html;y="',
  'image/png;x="a,text/html',
])('%j is served as inscribed, and runs', (inscribed) => {
  expect(servedType(inscribed)).toMatchObject({ value: inscribed, active: true })
})

test.each([
  ['another alphabet', 'text/plain;x=текст', false],
  ['a symbol', 'text/plain;x=✓', false],
  ['a letter beyond 16 bits', 'text/plain;x="😀"', false],
  ['a letter that Latin-1 has', 'text/html;x=é', true],
  ['the same in quotes', 'text/html;name="é.html"', true],
  ['a control character beyond ASCII', 'text/html;x="\x85"', true],
])('%s in a parameter is served in the bytes that were inscribed', (_, inscribed, active) => {
  const served = servedType(inscribed)
  expect(served).toMatchObject({ active })
  expect(Buffer.from(served.value, 'latin1').toString('utf8')).toBe(inscribed)
})

test.each([
  ['nothing', ''],
  ['a word', 'html'],
  ['no type', '/html'],
  ['no subtype', 'text/'],
  ['spaces within', 'text / html'],
  ['a space in the subtype', 'text/ht ml'],
  ['brackets', 'text/<html>'],
  ['two types, the last of which would win', 'image/png,text/html'],
  ['two types with a space', 'text/plain, text/html'],
  ['a comma in a parameter', 'image/png;x=,text/html'],
  ['a comma behind quotes', 'image/png;x="a",text/html'],
  ['a comma behind an escaped quote', 'image/png;x="\\"",text/html'],
  ['three types', 'image/png,image/png,text/html'],
  ['types in which no browser sees any', '*/*'],
  ['a header after it', 'text/plain\r\nContent-Security-Policy: none'],
  ['a line break after it', 'text/html\r\n'],
  ['a line break before it', '\ntext/html'],
  ['a line feed in a parameter', 'text/plain;x=y\nSet-Cookie: a=b'],
  ['a NUL', 'text/plain\0'],
  ['a NUL within', 'text/\0html'],
  ['a control character', 'text/plain;x=\x1b[31m'],
  ['DEL', 'text/html;x=\x7f'],
  ['a carriage return', 'text/html\rX-Evil: 1'],
  ['a comma', ','],
  ['spaces', '   '],
  ['a slash', '/'],
  ['a star', '*'],
  ['full-width letters', 'ｔext/html'],
  ['a letter beyond ASCII in the subtype', 'text/htmlé'],
  ['two types, one with a letter beyond ASCII behind it', 'text/plain;x=é,text/html'],
])('%s is served as bytes of no type', (_, inscribed) => {
  expect(servedType(inscribed)).toMatchObject(UNTYPED)
})
