import fc from 'fast-check'
import { hidingSecrets } from '../../../../src/server/config/redaction.js'
import { createLogger } from '../../../../src/server/telemetry/logger.js'
import {
  escapeControlChars,
  escapeControlCharsInLines,
} from '../../../../src/server/telemetry/public-text.js'

/** What a terminal obeys, or a reader is deceived by. */
const HARMFUL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for.
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]|\p{Cs}/u

const harmful = fc.constantFrom(
  '\x1b[2J',
  '\x1b]0;title\x07',
  '\x7f',
  '\x9b31m',
  '\u0085',
  '\u2028',
  '\u2029',
  '\u202e',
  '\u2066',
  '\u200b',
  '\ufeff',
  '\ud800',
  '\udfff',
  '\u{e0041}',
  '\r\n',
  '\0',
  '"',
  '\\',
)
const ordinary = fc.string({ unit: 'binary', maxLength: 60 })
const words = fc.array(fc.oneof(harmful, ordinary), { maxLength: 6 }).map((parts) => parts.join(''))

/** A log at its most talkative, and its lines as they were written. */
function writtenLog(env: Record<string, string> = {}) {
  const lines: string[] = []
  const logger = createLogger({
    level: 'debug',
    hideSecrets: hidingSecrets(env),
    write: (line) => lines.push(line),
  })
  return { logger, lines }
}

function read(lines: string[]): Record<string, unknown> {
  expect(lines).toHaveLength(1)
  return JSON.parse(lines[0] ?? '') as Record<string, unknown>
}

/** A text as it comes back from a log: JSON keeps all of it. */
const bounded = (text: string): string => text.slice(0, 1000)

describe('a line of the log', () => {
  test('is one line of JSON without a harmful character, whatever strangers have sent, and says the same', () => {
    fc.assert(
      fc.property(words, words, (text, other) => {
        const { logger, lines } = writtenLog()
        const cause = new Error(other)
        const err = Object.assign(new Error(text, { cause }), { code: other, name: text })
        logger.error({ url: text, list: [other, { [`field ${text}`]: text }], err }, `it said ${text}`)
        const record = read(lines)
        expect(lines[0]).toMatch(/^\{.*\}\n$/)
        expect(HARMFUL.test(lines[0]?.slice(0, -1) ?? '')).toBe(false)
        expect(record.url).toBe(bounded(text))
        expect(record.msg).toBe(bounded(`it said ${text}`))
        expect(record.err).toMatchObject({ message: bounded(text), cause: { message: bounded(other) } })
      }),
      { numRuns: 150 },
    )
  })

  test('is such a line too if it is only an error, comes from a child logger, or has a field of that name', () => {
    fc.assert(
      fc.property(words, (text) => {
        const { logger, lines } = writtenLog()
        logger.error(new Error(text))
        logger.info({ [`field ${text}`]: text }, 'odd')
        logger.child({ said: text }).warn('again')
        expect(lines).toHaveLength(3)
        for (const line of lines) {
          expect(HARMFUL.test(line.slice(0, -1))).toBe(false)
          expect(() => JSON.parse(line)).not.toThrow()
        }
        expect(JSON.parse(lines[2] ?? '')).toMatchObject({ said: bounded(text) })
      }),
      { numRuns: 150 },
    )
  })

  test('has no more of a text than a bound, and says how long it was', () => {
    const { logger, lines } = writtenLog()
    const long = '€'.repeat(10_000)
    logger.error({ url: long, err: new Error(long), list: Array.from({ length: 100 }, () => long) }, long)
    const { url, msg, list } = read(lines)
    for (const text of [url, msg]) expect(text).toBe(`${'€'.repeat(1000)}… (10000 characters)`)
    expect(list).toHaveLength(50)
    expect(lines[0]?.length).toBeLessThan(100_000)
  })

  test('ends, though the logged object contains itself', () => {
    const { logger, lines } = writtenLog()
    const circular: Record<string, unknown> = { count: 7n }
    circular.self = circular
    const err = new Error('because of itself')
    err.cause = err
    logger.info({ circular, err }, 'round and round')
    expect(read(lines)).toMatchObject({
      circular: { count: 7 },
      err: { cause: { message: 'because of itself' } },
    })
  })

  test('leaves out what other libraries hang on errors', () => {
    const { logger, lines } = writtenLog()
    const request = { headers: { authorization: 'Bearer x' }, body: 'all of it' }
    logger.error({ err: Object.assign(new Error('refused'), { request, code: 'ECONNREFUSED' }) }, 'failed')
    expect(Object.keys(read(lines).err as object).sort()).toEqual(['code', 'message', 'stack', 'type'])
  })
})

describe('a secret', () => {
  const env = {
    ADMIN_TOKEN: 'a token/with "all" \\ sorts',
    SERVER_PRIVATE_KEY: '1'.repeat(64),
    ARC_API_KEY: 'mainnet_key',
    HOSTING_URL: 'https://user:p%40ssword@headers.example/',
    MONGO_URL: 'mongodb://user:of%3Amongo@one:1,two:2/graph?tls=true&tlsCertificateKeyFilePassword=of-a-key',
  }
  const passwords = ['p%40ssword', 'p@ssword', 'of%3Amongo', 'of:mongo', 'of-a-key']
  const secrets = [env.ADMIN_TOKEN, env.SERVER_PRIVATE_KEY, env.ARC_API_KEY, ...passwords]

  test.each(secrets)('is in no line, wherever it comes up: %s', (secret) => {
    const { logger, lines } = writtenLog(env)
    const err = new Error(`no ${secret}`, { cause: new Error(`because of ${secret}`) })
    // So that a bound cuts through it, and it is no more to be found as a whole.
    const cutThrough = `${'x'.repeat(990)}${secret}`
    const url = `/admin?token=${encodeURIComponent(secret)}`
    logger.error({ secret, list: [secret], [secret]: 1, url, err, cutThrough }, `it is ${secret}`)
    logger.error(err)
    logger.child({ secret }).info('%s', secret)
    expect(lines).toHaveLength(3)
    const written = JSON.stringify(lines.map((line) => JSON.parse(line) as unknown))
    for (const form of [secret, encodeURIComponent(secret)]) {
      expect(written).not.toContain(JSON.stringify(form).slice(1, -1))
      expect(written).not.toContain(JSON.stringify(form.slice(0, 8)).slice(1, -1))
    }
    expect(written).toContain('[hidden]')
  })

  test.each(['authorization', 'Authorization', 'cookie', 'ADMIN_TOKEN', 'adminToken', 'arcApiKey'])(
    'that no setting names is not in a field called %s',
    (name) => {
      const { logger, lines } = writtenLog()
      logger.info(
        { headers: { [name]: 'Bearer of-secrets' }, deep: [{ [name]: 'Bearer of-secrets' }] },
        'asked',
      )
      expect(lines.join()).not.toContain('of-secrets')
      expect(read(lines)).toMatchObject({ headers: { [name]: '[hidden]' } })
    },
  )

  test('is whatever stands behind the host in the URL of a source of headers, a chain source or a peer', () => {
    const tracker = 'https://headers.example/v1/a-key'
    const { logger, lines } = writtenLog({
      HEADERS_SOURCES: `headersservice=${tracker}`,
      CHAIN_SOURCES: 'whatsonchain, junglebus=https://three.example/d-key',
      SYNC_PEERS: 'https://one.example, http://two.example:8080/c-key/',
    })
    const err = new Error('fetch http://two.example:8080/c-key/lookup', { cause: new Error(`of ${tracker}`) })
    logger.error({ err, peer: 'https://one.example' }, `asked ${tracker}`)
    logger.warn('https://three.example/d-key/v1/txo answered 500')
    const written = lines.join()
    for (const key of ['a-key', 'c-key', 'd-key']) expect(written).not.toContain(key)
    for (const host of [
      'headers.example',
      'three.example',
      'https://one.example"',
      'http://two.example:8080/',
    ])
      expect(written).toContain(host)
  })

  test('that is not set, or is too short to be one, changes no text', () => {
    for (const settings of [{}, { ADMIN_TOKEN: '' }, { ADMIN_TOKEN: 'e' }])
      expect(hidingSecrets(settings)('the text')).toBe('the text')
  })
})

describe('text for a terminal', () => {
  test('is one line without a harmful character', () => {
    fc.assert(
      fc.property(words, (text) => {
        expect(HARMFUL.test(escapeControlChars(text))).toBe(false)
        expect(HARMFUL.test(escapeControlCharsInLines(text).replaceAll('\n', ''))).toBe(false)
        expect(escapeControlCharsInLines(text).split('\n')).toHaveLength(text.split('\n').length)
      }),
    )
  })

  test('shows what was there', () => {
    expect(escapeControlChars('a\x1b[31mb\u202e\n')).toBe('a\\u001b[31mb\\u202e\\u000a')
    expect(escapeControlChars('\u{e0041}')).toBe('\\udb40\\udc41')
    expect(escapeControlChars('Zażółć gęślą jaźń 漢字 🎵 — “…”')).toBe('Zażółć gęślą jaźń 漢字 🎵 — “…”')
  })
})
