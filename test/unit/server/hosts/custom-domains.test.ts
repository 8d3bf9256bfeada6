import { Resolver } from 'node:dns/promises'
import { DnsDomains, dnsResolver, type TxtResolver } from '../../../../src/server/hosts/custom-domains.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, text } from '../../../support/gateway/site.js'
import { type DnsServer, dnsServer, type TxtAnswer } from '../../../support/server/dns-server.js'
import { OPERATOR, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
let dns: DnsServer
beforeAll(async () => {
  dns = await dnsServer()
})
afterAll(() => dns.close())
beforeEach(() => {
  dns.asked.length = 0
})

const TXID = 'ab'.repeat(32)
const outpoint = { txid: TXID, vout: 1 }
const REFERENCE = { pointer: { kind: 'outpoint', outpoint } }
const NOT_READY = expect.objectContaining({ code: 'NOT_READY' })

function domains(options: Partial<ConstructorParameters<typeof DnsDomains>[0]> = {}): DnsDomains {
  return new DnsDomains({ resolver: dnsResolver([dns.address]), lookupRate: 1000, ...options })
}

const says = (domain: string, answer: TxtAnswer): void => void dns.answers.set(`_ordfs.${domain}`, answer)
const records = (...all: (string | string[])[]): TxtAnswer => ({ records: all })
const others = (count: number, times: number) =>
  Array.from({ length: count }, (_, at) => `${at}`.repeat(times))

test.each<[string, TxtAnswer, unknown]>([
  ['a tagged outpoint', records(`ordfs=${TXID}_1`), REFERENCE],
  ['a tag in capitals, and spaces', records(` ORDFS= ${TXID}_1 `), REFERENCE],
  ['an outpoint alone', records(`${TXID}_1`), REFERENCE],
  ['a step', records(`ordfs=${TXID}_1:-1`), { ...REFERENCE, sequence: -1 }],
  ['an outpoint in two strings', records([`ordfs=${TXID}`, '_1']), REFERENCE],
  ['others before it', records('v=spf1 -all', `ordfs=${TXID}_1`), REFERENCE],
  ['the same twice', records(`ordfs=${TXID}_1`, `ordfs=${TXID}.1`), REFERENCE],
  ['a tagged one and one alone', records(`${TXID}_2`, `ordfs=${TXID}_1`), REFERENCE],
  ['more than UDP carries', records(...others(9, 200), `ordfs=${TXID}_1`), REFERENCE],
  ['that it is truncated, and all over TCP', { truncated: [`ordfs=${TXID}_1`] }, REFERENCE],
  ['two outpoints', records(`ordfs=${TXID}_1`, `ordfs=${TXID}_2`), undefined],
  ['a txid', records(`ordfs=${TXID}`), undefined],
  ['a bad outpoint', records(`ordfs=${TXID}_01`), undefined],
  ['a bad step', records(`ordfs=${TXID}_1:x`), undefined],
  ['a path', records(`ordfs=${TXID}_1/x`), undefined],
  ['something else', records('v=spf1 -all', '', '\0\xff'), undefined],
  ['it behind a hundred others', records(...others(100, 1), `ordfs=${TXID}_1`), undefined],
  ['a record of 60,000 bytes', records(`ordfs=${TXID}_1`.padEnd(60_000)), undefined],
  ['nothing', records(), undefined],
  ['that there is none', { code: 'NXDOMAIN' }, undefined],
])('a domain whose server says %s', async (_, answer, expected) => {
  says('shop.example', answer)
  const found = domains()
  expect(await found.referenceOf('shop.example')).toEqual(expected)
  // Known from then on, whatever it is.
  const { length } = dns.asked
  expect([found.referenceOf('shop.example'), dns.asked.length]).toEqual([expected, length])
})

test.each<[string, TxtAnswer]>([
  ['fails', { code: 'SERVFAIL' }],
  ['refuses', { code: 'REFUSED' }],
  ['says nothing', 'silence'],
  ['sends garbage', 'garbage'],
  ['answers another request', { forged: `ordfs=${TXID}_1` }],
  ['answers about another name', { misnamed: `ordfs=${TXID}_1` }],
])('a domain whose server %s shows nothing for now, and is left alone for ten seconds', async (_, answer) => {
  says('down.example', answer)
  let now = 1_000_000
  const impatient = new Resolver({ timeout: 100, tries: 1 })
  impatient.setServers([dns.address])
  let resolver: TxtResolver = impatient
  const found = domains({ resolver: { resolveTxt: (name) => resolver.resolveTxt(name) }, now: () => now })
  await expect(found.referenceOf('down.example')).rejects.toThrow(NOT_READY)
  const { length } = dns.asked
  expect(() => found.referenceOf('down.example')).toThrow(NOT_READY)
  expect(dns.asked.length).toBe(length)
  now += 10_001
  says('down.example', records(`${TXID}_1`))
  resolver = dnsResolver([dns.address])
  expect(await found.referenceOf('down.example')).toEqual(REFERENCE)
})

test.each([
  ...['localhost', 'single', '127.0.0.1', '[::1]', '1.2.3.4.5', 'printer.local', 'x.internal', 'x.onion'],
  ...['1.0.0.127.in-addr.arpa', 'a..example', '.example', '-a.example', 'a-.example', 'a~b.example', ''],
  ...[`${'a'.repeat(64)}.example`, `${'a.'.repeat(124)}example`],
])('%j is never looked up', (host) => {
  expect([domains().referenceOf(host), dns.asked]).toEqual([undefined, []])
})

describe('a resolver that a test holds', () => {
  let now = 0
  /** Names that were looked up, and what settles each. */
  const waiting: { name: string; settle: (records: string[][] | Error) => void }[] = []
  const resolver: TxtResolver = {
    resolveTxt: (name) =>
      new Promise((resolve, reject) => {
        waiting.push({ name, settle: (said) => (said instanceof Error ? reject(said) : resolve(said)) })
      }),
  }
  const held = (options: Partial<ConstructorParameters<typeof DnsDomains>[0]> = {}): DnsDomains =>
    domains({ resolver, now: () => now, ...options })
  beforeEach(() => {
    now = 60_000_000
    waiting.length = 0
  })
  // A lookup that nobody settles fails seconds later, in whatever test runs then.
  afterEach(() => {
    for (const { settle } of waiting) settle([])
  })

  test('is asked once for all who ask at the same time', async () => {
    const found = held()
    const all = Array.from({ length: 50 }, () => found.referenceOf('shop.example'))
    expect(waiting.map(({ name }) => name)).toEqual(['_ordfs.shop.example'])
    waiting[0]?.settle([[`${TXID}_1`]])
    expect(await Promise.all(all)).toEqual(all.map(() => REFERENCE))
  })

  test('works on so many at a time and no more', async () => {
    const found = held()
    const both = Array.from({ length: 16 }, (_, at) => found.referenceOf(`a${at}.example`))
    expect(() => found.referenceOf('c.example')).toThrow(NOT_READY)
    expect(waiting.length).toBe(16)
    for (const { settle } of waiting) settle([])
    expect(await Promise.all(both)).toEqual(both.map(() => undefined))
    void found.referenceOf('c.example')
    expect(waiting.length).toBe(17)
  })

  test('is asked so often a minute and no more; known domains go on to show what they did', async () => {
    const found = held({ lookupRate: 2 })
    const known = found.referenceOf('known.example')
    waiting[0]?.settle([[`${TXID}_1`]])
    expect(await known).toEqual(REFERENCE)
    // Out of date; a stranger takes what is left of the minute.
    now += 6 * 60_000
    for (const host of ['a.example', 'b.example']) void found.referenceOf(host)
    expect(() => found.referenceOf('c.example')).toThrow(NOT_READY)
    expect([found.referenceOf('known.example'), waiting.length]).toEqual([REFERENCE, 3])
  })

  test('that fails leaves a domain what it showed, for a day', async () => {
    const found = held()
    const known = found.referenceOf('known.example')
    waiting[0]?.settle([[`${TXID}_1`]])
    await known
    for (let hour = 0; hour < 23; hour++) {
      now += 60 * 60_000
      const again = found.referenceOf('known.example')
      waiting.at(-1)?.settle(Object.assign(new Error('failed'), { code: 'ESERVFAIL' }))
      expect(await again).toEqual(REFERENCE)
    }
    now += 2 * 60 * 60_000
    const last = found.referenceOf('known.example')
    waiting.at(-1)?.settle(Object.assign(new Error('failed'), { code: 'ETIMEOUT' }))
    await expect(last).rejects.toThrow(NOT_READY)
  })

  test('that says a record is gone takes it away', async () => {
    const found = held()
    const known = found.referenceOf('known.example')
    waiting[0]?.settle([[`${TXID}_1`]])
    await known
    now += 6 * 60_000
    const gone = found.referenceOf('known.example')
    waiting[1]?.settle(Object.assign(new Error('gone'), { code: 'ENODATA' }))
    expect([await gone, found.referenceOf('known.example')]).toEqual([undefined, undefined])
  })
})

describe('a server with CUSTOM_DOMAINS', () => {
  const SETTINGS = { CUSTOM_DOMAINS: 'true', SERVICE_HOSTS: 'node.example' }
  const start = (env: Record<string, string> = {}) =>
    hostedServer(servers, { ...SETTINGS, DNS_SERVERS: dns.address, ...env })

  test('shows on a domain what its record names, and always revalidates', async () => {
    const { named, on, port } = await start()
    const { mint, site } = await named('a', directory({ '.': '_1', 'index.html': '_1' }), text('first page'))
    says('shop.example', records(`ordfs=${site.outpoint(0)}`))
    says('tip.example', records(`ordfs=${mint.outpoint(2)}:-1`))
    says('nowhere.example', records(`ordfs=${TXID}_1`))
    for (const [host, origin] of [
      ['shop.example', undefined],
      ['SHOP.example.', undefined],
      ['tip.example', mint.outpoint(2)],
    ] as const) {
      const { status, headers, body } = await on(host)
      expect({ status, body: body.toString() }).toEqual({ status: 200, body: 'first page' })
      expect({ origin: headers['x-origin'], name: headers['x-name'] }).toEqual({ origin })
      expect(headers['cache-control']).toBe('no-cache')
      expect(headers.link).toContain(`<http://localhost${port}/svc/gateway/provenance/`)
    }
    expectError(await on('nowhere.example'), { status: 404, code: 'NOT_FOUND' })
    // What it showed is in memory, and still it is the record that decides.
    expect((await on('shop.example', '/index.html')).body.toString()).toBe('first page')
  })

  test('has none of the service for a domain that was made to lead here', async () => {
    const { on, named } = await start(OPERATOR)
    const { site } = await named('a', text('content'))
    says('rebound.example', records(`${site.outpoint(0)}`))
    says('unknown.example', { code: 'NXDOMAIN' })
    for (const path of ['/health/live', '/mine', '/admin/blocked', '/svc/names', '/metrics', '/']) {
      expect((await on('rebound.example', path)).body.toString()).toBe('content')
      expectError(await on('unknown.example', path), { status: 404, code: 'NOT_FOUND' })
    }
    for (const host of ['localhost', '127.0.0.1', 'node.example'])
      expect((await on(host, '/health/live')).status).toBe(200)
  })

  test('says so if the servers of a domain do not answer', async () => {
    const { on } = await start()
    says('down.example', { code: 'SERVFAIL' })
    const answer = await on('down.example')
    expectError(answer, { status: 503, code: 'NOT_READY' })
    expect(answer.headers['retry-after']).toBe('10')
  })

  test('looks nothing up for its own hosts, nor without the setting', async () => {
    const { on } = await start()
    for (const host of ['localhost', 'node.example', 'x.localhost', '10.0.0.1']) await on(host)
    const other = await hostedServer(servers, { DNS_SERVERS: dns.address })
    expect([(await other.on('shop.example', '/health/live')).status, dns.asked]).toEqual([200, []])
  })
})
