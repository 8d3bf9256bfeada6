import { publicText } from '../../../../src/server/telemetry/public-text.js'

test.each([
  ['https://a.example/key answered 503', 'https://a.example answered 503'],
  [
    'asked https://a.example:8443/key?x=1, which is too slow',
    'asked https://a.example:8443, which is too slow',
  ],
  ['see "https://key@a.example/"', 'see "https://a.example"'],
  ['(http://10.0.0.1:80/v1/x).', '(http://10.0.0.1).'],
  ['mysql://user:pass@db/minetree is away', 'mysql://db is away'],
  ['wss://a.example/sub/key: closed', 'wss://a.example: closed'],
  ['https://[::1]:8080/key/', 'https://[::1]:8080'],
  ['http://user:not a port/', 'http://… a port/'],
  ['connect ECONNREFUSED 127.0.0.1:80', 'connect ECONNREFUSED 127.0.0.1:80'],
  ['two\nlines \x1b[2J', 'two\\u000alines \\u001b[2J'],
])('%j reads %j', (text, expected) => {
  expect(publicText(text)).toBe(expected)
})

test('a long text is cut, and no URL in it at a place that shows a part of a password', () => {
  expect(publicText('x'.repeat(300))).toBe('x'.repeat(300))
  expect(publicText('y '.repeat(1000))).toHaveLength(300 + '… (2000 characters)'.length)
  // Shortened by their origins, much of what was read fits.
  const urls = `http://a.example/${'k'.repeat(175)} `.repeat(10)
  for (let pad = 0; pad < 100; pad++)
    expect(publicText(`${urls}${'k'.repeat(pad)} https://pass-word@a.example/`)).not.toMatch(/pass/)
})
