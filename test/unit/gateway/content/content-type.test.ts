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
])('%j is served as inscribed, and runs', (inscribed) => {
  expect(servedType(inscribed)).toMatchObject({ value: inscribed, active: true })
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
  ['a comma in quotes', 'image/png;x="a,text/html"'],
  ['a comma and nothing', 'text/html,'],
  ['a header after it', 'text/plain\r\nContent-Security-Policy: none'],
  ['a line break after it', 'text/html\r\n'],
  ['a line break before it', '\ntext/html'],
  ['a line feed in a parameter', 'text/plain;x=y\nSet-Cookie: a=b'],
  ['a NUL', 'text/plain\0'],
  ['a NUL within', 'text/\0html'],
  ['a control character', 'text/plain;x=\x1b[31m'],
  ['another alphabet', 'text/plain;x=текст'],
  ['a symbol', 'text/plain;x=✓'],
  ['a letter that Latin-1 has', 'text/html;x=é'],
  ['the same in quotes', 'text/html;name="é.html"'],
  ['a control character beyond ASCII', 'text/html;x="\x85"'],
  ['DEL', 'text/html;x=\x7f'],
  ['a carriage return', 'text/html\rX-Evil: 1'],
  ['a comma', ','],
  ['spaces', '   '],
  ['a slash', '/'],
  ['a star', '*'],
  ['full-width letters', 'ｔext/html'],
])('%s is served as bytes of no type', (_, inscribed) => {
  expect(servedType(inscribed)).toMatchObject(UNTYPED)
})
