import fc from 'fast-check'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  MAX_REDIRECTS_BYTES,
  type Redirection,
  RedirectsError,
  readRedirects,
  redirectionOf,
  withQuery,
} from '../../../backend/src/protocol/redirects.js'

/** Where a path leads, its segments decoded as a gateway does. */
function led(file: string, path: string): Redirection | undefined {
  return redirectionOf(readRedirects(utf8(file)), path.slice(1).split('/').map(decodeURIComponent))
}
/** As a line: the status, and a `Location` or a path of the site. */
function lead(file: string, path: string): string | undefined {
  const to = led(file, path)
  return to && `${to.status} ${'location' in to ? to.location : `/${to.segments.join('/')}`}`
}

type Led = [rule: string, path: string, leadsTo: string | undefined]
test.each<Led>([
  ['/a /b', '/a', '301 /b'],
  ['/a /b', '/a/', '301 /b'],
  ['/a/ /b', '/a', '301 /b'],
  ['/a /b', '/a/c', undefined],
  ['/a /b', '/A', undefined],
  ['/ /b 302', '/', '302 /b'],
  ...[302, 303, 307, 308].map((status): Led => [`/a /b ${status}`, '/a', `${status} /b`]),
  ...[200, 404, 410, 451].map((status): Led => [`/a /b/c.html ${status}`, '/a', `${status} /b/c.html`]),
  // The first rule that matches.
  ['/a /b\n/a /c', '/a', '301 /b'],
  ['/x /y\n/* /rest 302', '/a', '302 /rest'],
  // Placeholders stand for one segment.
  ['/:y/:m/:t /blog/:t/:m/:y', '/2022/06/hi', '301 /blog/hi/06/2022'],
  ['/:y/:m /:y/:y', '/1/2', '301 /1/1'],
  ['/:y /b', '/a/c', undefined],
  ['/x/:y /b', '/x//', undefined],
  ['/:a/:ab /:ab-:a', '/1/2', '301 /2-1'],
  ['/:a /:abc', '/1', '301 /1bc'],
  ['/:a /:b', '/1', '301 /:b'],
  ['/:a /t?code=:a&x=1', '/7', '301 /t?code=7&x=1'],
  // A splat stands for the rest.
  ['/s/* /t/:splat', '/s/a/b.html', '301 /t/a/b.html'],
  ['/s/* /t/:splat', '/s/', '301 /t/'],
  ['/s/* /t/:splat', '/s', undefined],
  ['/s* /t/:splat', '/sab/c', '301 /t/ab/c'],
  ['/* /index.html 200', '/a/b/c', '200 /index.html'],
  ['/* /app/:splat 200', '/a/b', '200 /app/a/b'],
  ['/* https://other.example/:splat 302', '/a/b', '302 https://other.example/a/b'],
  ['/a https://other.example', '/a', '301 https://other.example'],
  // What stands before the host is left out, whatever it is.
  ['/* https://:splat@good.example/x', '/evil.example', '301 https://good.example/x'],
  // Letters beyond ASCII, in the rule and in the path.
  ['/café /naïve', '/caf%C3%A9', '301 /na%C3%AFve'],
  ['/caf%C3%A9 /b', '/caf%C3%A9', '301 /b'],
  ['/a/* /b/:splat', '/a/%F0%9F%98%80', '301 /b/%F0%9F%98%80'],
  ['/a https://bücher.example/ü', '/a', '301 https://xn--bcher-kva.example/%C3%BC'],
  ['/a/* /b/:splat', '/a/@me', '301 /b/@me'],
  // Lines and white space.
  ['\ufeff/a /b', '/a', '301 /b'],
  ['  \t/a \t /b\t302  ', '/a', '302 /b'],
  ['/x /y\r\n/a /b\r\n', '/a', '301 /b'],
  ['\n\n# /a /c\n  # note\n/a /b', '/a', '301 /b'],
  ['', '/a', undefined],
])('%j leads %s to %s', (rule, path, leadsTo) => {
  expect(lead(rule, path)).toBe(leadsTo)
})

test.each([
  ['no target', '/a', 'from to [status]'],
  ['too much in a line', '/a /b 301 x', 'from to [status]'],
  ['a path that is none', 'a /b', "must begin with '/'"],
  ['an asterisk in the middle', '/a/*/b /c', 'asterisk'],
  ['two asterisks', '/** /c', 'asterisk'],
  ['a placeholder twice', '/:a/:a /c', 'twice'],
  ['a placeholder of the name of the rest', '/:splat/* /c', 'twice'],
  ['a placeholder without a name', '/:/a /c', 'not a valid placeholder'],
  ['a placeholder with a long name', `/:${'n'.repeat(65)} /c`, 'not a valid placeholder'],
  ['a forced redirect', '/a /b 301!', 'forced redirects'],
  ['another status', '/a /b 418', 'not supported'],
  ['a status that is none', '/a /b x', 'not supported'],
  ['a target that is neither', '/a b', 'neither a path nor'],
  ['a target with a scheme that runs', '/a javascript:alert(1)', 'neither a path nor'],
  ['a target with another scheme', '/a data:text/html,x', 'neither a path nor'],
  ['a target on another host without a scheme', '/a //evil.example', 'neither a path nor'],
  ['the same with a backslash', '/a /\\evil.example', 'neither a path nor'],
  ['a placeholder in the host', '/:h https://:h/x', 'neither a path nor'],
  ['a placeholder behind the host', '/* https://good.example:splat', 'neither a path nor'],
])('refuses a file with %s, and says in which line', (_, line, reason) => {
  const read = (): unknown => readRedirects(utf8(`/fine /there\n${line}\n`))
  expect(read).toThrow(RedirectsError)
  expect(read).toThrow(/^could not parse _redirects: line 2: /)
  expect(read).toThrow(reason)
})

test('refuses bytes that are no UTF-8, and one byte more than 64 KiB', () => {
  expect(() => readRedirects(Uint8Array.of(0x2f, 0xff))).toThrow(
    'could not parse _redirects: it is not UTF-8',
  )
  const longest = `/a /b\n#${'x'.repeat(MAX_REDIRECTS_BYTES - 7)}`
  expect(readRedirects(utf8(longest))).toHaveLength(1)
  expect(() => readRedirects(utf8(`${longest}x`))).toThrow(
    'could not parse _redirects: redirects file size cannot exceed 65536 bytes',
  )
})

test.each([200, 404, 410, 451])('a rule with status %i needs a file of the site', (status) => {
  expect(() => led(`/a https://other.example/x ${status}`, '/a')).toThrow('has to be a path of this site')
})

describe('what a path brings', () => {
  test.each([
    ['//evil.example', '/evil.example'],
    ['/%2Fevil.example', '/%2Fevil.example'],
    ['/%5Cevil.example', '/%5Cevil.example'],
    ['///', '/'],
    ['/a%0D%0ASet-Cookie:%20x=1', '/a%0D%0ASet-Cookie%3A%20x%3D1'],
    ['/%3F%23%22%3C', '/%3F%23%22%3C'],
  ])('stays a path of the site: %s', (path, location) => {
    expect(led('/* /:splat', path)).toEqual({ status: 301, location })
  })

  test.each(['/a/%2e%2e/b', '/a/%2e', '/a/../b', '/.'])('does not climb: %s matches no rule', (path) => {
    expect(led('/* https://other.example/below/:splat', path)).toBeUndefined()
  })

  test('is never another host or another header, whatever rule and path', () => {
    const unit = fc.constantFrom(...'/\\.:*@%#? aé\u2028\t\r', '%2e', '%0d%0a')
    const hostile = fc.string({ unit, maxLength: 20 })
    fc.assert(
      fc.property(hostile, hostile, hostile, (from, to, path) => {
        let location: string | undefined
        try {
          const segments = `/${path}`.slice(1).split('/')
          const found = redirectionOf(readRedirects(utf8(`/${from}* /${to}:splat`)), segments)
          location = found && 'location' in found ? found.location : undefined
        } catch (error) {
          expect(error).toBeInstanceOf(RedirectsError)
        }
        if (location === undefined) return
        expect(location).toMatch(/^[\x21-\x7e]+$/)
        expect(new URL(location, 'http://site.example').origin).toBe('http://site.example')
      }),
    )
  })
})

describe('is bounded', () => {
  const whole = (line: string): string => line.repeat(Math.floor(MAX_REDIRECTS_BYTES / line.length))

  test('in how far a path can make a target grow', () => {
    const file = `/* /${whole(':splat').slice(0, MAX_REDIRECTS_BYTES - 10)}`
    expect(() => led(file, `/${'a'.repeat(16_000)}`)).toThrow('its target has more than 8192 characters')
    expect(lead('/* /:splat', `/${'a'.repeat(8000)}`)).toBe(`301 /${'a'.repeat(8000)}`)
  })

  test.each([
    ['rules', whole('/a /b\n'), 10_922],
    ['rules with the rest', whole('/b/* /c\n'), 8192],
    ['rules that a path matches but for their end', whole('/:a/:b/:c/x /c\n'), 4369],
    ['placeholders in one rule', `/${Array.from({ length: 8000 }, (_, at) => `:n${at}`).join('/')}/z /b`, 1],
    ['segments in one rule', `/${whole('a/').slice(0, 60_000)} /b`, 1],
    ['white space', `${' '.repeat(30_000)}/a${'\t'.repeat(30_000)}/b`, 1],
    ['colons', `/:a /${':'.repeat(60_000)}`, 1],
  ])('in the number of %s: that of the bytes', (_, file, count) => {
    const rules = readRedirects(utf8(file))
    expect(rules).toHaveLength(count)
    const path = Array.from({ length: 8000 }, () => 'a')
    expect(redirectionOf(rules, path)).toBeUndefined()
    expect(redirectionOf(rules, ['none', 'of', 'them', 'y'])).toBeUndefined()
  })
})

test.each([
  ['/a', '', '/a'],
  ['/a', '?', '/a?'],
  ['/a', '?x=1', '/a?x=1'],
  ['/a?s=1', '', '/a?s=1'],
  ['/a?s=1&t=2', '?x=1', '/a?s=1&t=2&x=1'],
  ['/a?s=1&t=2', '?t=3&x', '/a?s=1&t=3&x'],
  ['/a?s=1#f', '?x=1', '/a?s=1&x=1#f'],
  ['/a#f?g', '?x=1', '/a?x=1#f?g'],
  ['https://other.example/a?%73=1', '?s=2', 'https://other.example/a?s=2'],
  ['/a?', '?to=//evil.example', '/a?to=//evil.example'],
])('%s with the query %j is %s', (location, query, joined) => {
  expect(withQuery(location, query)).toBe(joined)
})
