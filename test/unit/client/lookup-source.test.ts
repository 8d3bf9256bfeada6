import { concatBytes, fromHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { LookupNameSource } from '../../../src/client/lookup-source.js'
import { HttpNameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { endless, type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import { at, namedWorld, outpointBeef, recordsOf } from '../../support/client/name-proofs.js'
import { beefOf } from '../../support/protocol/fake-chain.js'
import { varint } from '../../support/protocol/raw-transaction.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { givenTime } from '../../support/server/waiting.js'

// Lookup services that are found by the SDK's resolver: each of its hosts is an index of its own.

const servers = useServers()
const world = namedWorld()
const { deployment, headers, line, purse, tip, transfers, way } = world
/** A point of the curve, which a record has for a key. */
const GENERATOR = fromHex('0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798')
const [first, second] = transfers

const beef = (where: { txid: string; vout: number }, transactions: typeof line): Uint8Array =>
  outpointBeef(where, recordsOf(transactions)).subarray(40)
const whole = beef(tip, [...line, first, purse, second])

/** The binary answer of one output with one BEEF. */
const aggregate = (where: { txid: string; vout: number }, bytes: Uint8Array, outputs = 1): Uint8Array => {
  const output = concatBytes(fromHex(where.txid), varint(where.vout), Uint8Array.of(0))
  return concatBytes(varint(outputs), ...Array.from({ length: outputs }, () => output), bytes)
}
const listed = (outputs: unknown[] = []) => ({ body: { type: 'output-list', outputs } })

const question = { name: 'abc', deployment, chainTracker: headers }
const host = async (answer: RouteAnswer): Promise<string> => (await startIndex({ '/lookup': answer })).url

const source = (hosts: string[], more: ConstructorParameters<typeof LookupNameSource>[0] = {}) =>
  new LookupNameSource({ resolver: { networkPreset: 'local', hostOverrides: { ls_names: hosts } }, ...more })

const resolve = async (hosts: string[], more: Parameters<typeof source>[1] = {}) =>
  await resolveName({ ...question, sources: [source(hosts, more)] })

test.each([
  ['in one binary answer', { body: aggregate(tip, whole) }],
  ['in JSON', listed([{ beef: Array.from(whole), outputIndex: tip.vout }])],
])('a name is resolved from one host, %s', async (_, answer) => {
  const url = await host(answer)
  expect(await resolve([url])).toMatchObject({
    tip: { tip, sequence: 2 },
    proven: true,
    spendStatus: 'unspent',
    reports: [{ index: url, verdict: 'agrees' }],
  })
})

test('a name is resolved from a real server', async () => {
  const server = await servers.start(treeOf(deployment))
  for (const mint of line) await server.submit(beefOf(mint))
  await server.submit(beefOf(first, { with: line.slice(-1) }), ['tm_ordinals'])
  await server.submit(beefOf(second, { with: [purse, first] }), ['tm_ordinals'])
  expect(await resolve([server.url])).toMatchObject({
    tip: { tip, sequence: 2 },
    proven: true,
    reports: [{ index: server.url, verdict: 'agrees' }],
  })
  const both = { ...question, sources: [source([server.url]), new HttpNameSource({ url: server.url })] }
  expect(await resolveName({ ...both, name: 'ab' })).toMatchObject({
    ...{ tip: { sequence: 0 }, spendStatus: 'unspent' },
  })
  await expect(resolveName({ ...both, name: 'nobody' })).rejects.toMatchObject({ code: 'NOT_CLAIMED' })
})

test('the question is for the history, as one binary answer', async () => {
  let question = ''
  const asked = await startIndex({ '/lookup': { body: aggregate(tip, whole) } })
  const fetching: typeof fetch = async (url, init) => {
    question = String(init?.body)
    expect(new Headers(init?.headers).get('x-aggregation')).toBe('yes')
    return await fetch(url, init)
  }
  await resolve([asked.url], { fetch: fetching })
  expect(JSON.parse(question)).toEqual({ service: 'ls_names', query: { name: 'abc', history: true } })
})

test('several hosts are judged each by itself, however many lie', async () => {
  const honest = await host({ body: aggregate(tip, whole) })
  // The same output, which a reader that merges answers would take for the same answer.
  const cut = await host({ body: aggregate(tip, beef(tip, way)) })
  const stale = await host({ body: aggregate(at(first, 0), beef(at(first, 0), [...line, first])) })
  const denying = await host(listed())
  const broken = await host({ status: 500, body: {} })
  const hosts = [cut, stale, honest, denying, broken]
  for (const order of [hosts, hosts.toReversed()]) {
    const resolved = await resolve(order)
    expect(resolved.tip.tip).toEqual(tip)
    expect(Object.fromEntries(resolved.reports.map(({ index, verdict }) => [index, verdict]))).toEqual({
      ...{ [honest]: 'agrees', [cut]: 'refuted', [stale]: 'stale', [denying]: 'denies', [broken]: 'failed' },
    })
  }
})

test('an output that the BEEF does not hold is refuted', async () => {
  for (const answer of [
    aggregate({ txid: 'ab'.repeat(32), vout: 0 }, whole),
    aggregate({ ...tip, vout: 7 }, whole),
  ])
    await expect(resolve([await host({ body: answer })])).rejects.toMatchObject({
      code: 'NO_PROOF',
      reports: [{ verdict: 'refuted', error: { code: 'BAD_BEEF' } }],
    })
})

test.each<[what: string, answer: RouteAnswer, code: string]>([
  ['two outputs for one name', { body: aggregate(tip, whole, 2) }, 'BAD_ANSWER'],
  ['half an output', { body: aggregate(tip, whole).subarray(0, 20) }, 'BAD_ANSWER'],
  ['another kind of answer', { body: { type: 'freeform', result: {} } }, 'BAD_ANSWER'],
  ['no bytes for a BEEF', listed([{ outputIndex: 0, beef: [256] }]), 'BAD_ANSWER'],
  ['an error', { status: 400, body: { error: 'no', code: 'BAD_BODY' } }, 'BAD_ANSWER'],
  ['nothing', { does: (response) => response.destroy() }, 'UNREACHABLE'],
])('a host that answers %s is said to', async (_, answer, code) => {
  const url = await host(answer)
  await expect(resolve([url])).rejects.toMatchObject({
    code: 'NO_PROOF',
    reports: [{ index: url, verdict: 'failed', error: { name: 'SourceError', code } }],
  })
})

test('a host without encryption is for a network of one’s own', async () => {
  const url = await host({ body: aggregate(tip, whole) })
  const resolver = { networkPreset: 'mainnet' as const, hostOverrides: { ls_names: [url] } }
  await expect(resolve([url], { resolver })).rejects.toMatchObject({
    reports: [{ verdict: 'failed', error: { code: 'UNREACHABLE' } }],
  })
})

test('where no host is found, that is the answer', async () => {
  const trackers = await startIndex({ '/lookup': listed() })
  const resolver = { networkPreset: 'testnet' as const, slapTrackers: [trackers.url] }
  await expect(resolve([], { resolver })).rejects.toMatchObject({
    code: 'NO_PROOF',
    reports: [{ index: 'ls_names', verdict: 'failed', error: { code: 'UNREACHABLE' } }],
  })
})

describe('hosts without end', () => {
  const strangersThat = async (answer: RouteAnswer): Promise<string[]> => {
    const { url } = await startIndex(new Proxy<Record<string, RouteAnswer>>({}, { get: () => answer }))
    return Array.from({ length: 30 }, (_, at) => `${url}/${at}`)
  }

  test('of 500, those are asked first that rank best, and no more than 64 in all', async () => {
    const front = await startIndex({})
    const hosts = Array.from({ length: 500 }, (_, at) => `${front.url}/${at}`)
    await expect(resolve(hosts)).rejects.toMatchObject({
      message: expect.stringMatching(/^.{1,1000}; 59 more proved nothing either; 436 more were not asked$/),
      reports: hosts.slice(0, 64).map((index) => ({ index, verdict: 'failed' })),
      notAsked: 436,
    })
    expect(front.asked.toSorted()).toEqual(Array.from({ length: 64 }, (_, at) => `/${at}/lookup`).toSorted())
    // Those that failed are passed over: the resolver has heard of it.
    front.asked.length = 0
    await expect(resolve(hosts, { maxHosts: 3 })).rejects.toMatchObject({ code: 'NO_PROOF' })
    expect(front.asked).toHaveLength(64)
    expect(front.asked.every((path) => Number(path.split('/')[1]) >= 64)).toBe(true)
  })

  test.each([
    ['deny the name', listed()],
    ['fail', { status: 500, body: {} }],
    ['show what does not hold', { body: aggregate(tip, beef(tip, way)) }],
  ])('thirty strangers that %s do not hide it from one honest host', async (_, answer) => {
    const hosts = await strangersThat(answer)
    const honest = await host({ body: aggregate(tip, whole) })
    for (const place of [hosts.length, 9])
      expect(await resolve(hosts.toSpliced(place, 0, honest))).toMatchObject({ tip: { tip } })
  })

  test('strangers that say nothing leave time for the honest host after them', async () => {
    const hosts = await strangersThat({ does: () => {} })
    const sources = [source([...hosts, await host({ body: aggregate(tip, whole) })])]
    await givenTime(1000, async (timeout) =>
      expect(await resolveName({ ...question, sources, timeout })).toMatchObject({
        tip: { tip },
        notAsked: 0,
      }),
    )
  })

  test('hosts that may not be asked do not take the place of others', async () => {
    const honest = await host({ body: aggregate(tip, whole) })
    const others = Array.from({ length: 20 }, (_, at) => `ftp://${at}.example`)
    expect(await resolve([...others, 'x'.repeat(100_000), honest])).toMatchObject({
      tip: { tip },
      reports: [{ index: honest, verdict: 'agrees' }, ...others.slice(0, 7).map((index) => ({ index }))],
    })
  })

  test('one that answers more than JSON may have is not read as such', async () => {
    const headers = { 'content-type': 'application/json' }
    const url = await host({ headers, body: Buffer.alloc(17_000_000, ' ') })
    await expect(resolve([url])).rejects.toMatchObject({ reports: [{ error: { code: 'TOO_LARGE' } }] })
  })
})

describe('trackers', () => {
  /** A record of a host as SLAP has it: a token whose fields are dropped. */
  const record = (domain: string) => {
    const fields = [utf8('SLAP'), GENERATOR, utf8(domain), utf8('ls_names')].map((field) => encodePush(field))
    const [checkSig, drops] = [Uint8Array.of(0xac), Uint8Array.of(0x6d, 0x6d)]
    const lockingScript = concatBytes(encodePush(GENERATOR), checkSig, ...fields, drops)
    const token = world.chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
    return { beef: Array.from(beefOf(token)), outputIndex: 0 }
  }
  const sourceBy = (slapTrackers: string[], more: Parameters<typeof source>[1] = {}) => {
    // No test has TLS: what the resolver takes for that is asked without.
    const fetching: typeof fetch = async (url, init) =>
      await fetch(String(url).replace('https:', 'http:'), init)
    const trackers = slapTrackers.map((url) => url.replace('http:', 'https:'))
    const resolver = { networkPreset: 'testnet' as const, slapTrackers: trackers }
    return source([], { resolver, fetch: fetching, ...more })
  }
  const resolveBy = async (slapTrackers: string[], more: Parameters<typeof source>[1] = {}) =>
    await resolveName({ ...question, sources: [sourceBy(slapTrackers, more)] })
  const refused = (code: string) => ({
    code: 'NO_PROOF',
    reports: [{ index: 'ls_names', verdict: 'failed', error: { code } }],
  })

  test('say which hosts there are', async () => {
    const honest = (await host({ body: aggregate(tip, whole) })).replace('http:', 'https:')
    const broken = { beef: [1, 2, 3], outputIndex: 0 }
    const outputs = [null, broken, record(honest), record(`${honest}/`), { ...record(honest), beef: 'x' }]
    const tracker = await startIndex({ '/lookup': listed(outputs) })
    expect(await resolveBy([tracker.url])).toMatchObject({
      tip: { tip },
      reports: [{ index: honest, verdict: 'agrees' }],
    })
    expect(tracker.asked).toEqual(['/lookup'])
  })

  test.each<[what: string, answer: RouteAnswer]>([
    ['a binary answer', { body: new Uint8Array(100) }],
    ['an answer without end', { does: endless }],
    ['a failure', { status: 500, body: {} }],
  ])('that give %s say nothing', async (_, answer) => {
    const tracker = await startIndex({ '/lookup': answer })
    await expect(resolveBy([tracker.url])).rejects.toMatchObject(refused('UNREACHABLE'))
  })

  test('order equal hosts at random, however many strangers they list first', async () => {
    const honest = (await host({ body: aggregate(tip, whole) })).replace('http:', 'https:')
    const strangers = Array.from({ length: 100 }, (_, at) => record(`https://127.0.0.1:1/${at}`))
    const tracker = await startIndex({ '/lookup': listed([...strangers, record(honest)]) })
    const firsts = new Set<string>()
    for (let left = 8; left > 0; left--) {
      const [first] = await sourceBy([tracker.url]).find()
      firsts.add(first?.index ?? '')
    }
    expect(firsts.size).toBeGreaterThan(3)
  })

  test('that say nothing are waited for half of the time', async () => {
    const tracker = await startIndex({ '/lookup': { does: () => {} } })
    await expect(resolveBy([tracker.url], { timeout: 400 })).rejects.toMatchObject(refused('UNREACHABLE'))
  })
})
