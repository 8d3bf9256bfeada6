import { HTTPSOverlayLookupFacilitator } from '@bsv/sdk'
import { concatBytes, fromHex } from '../../backend/src/protocol/bytes.js'
import { HttpNameSource } from '../../src/client/http-source.js'
import { LookupNameSource } from '../../src/client/lookup-source.js'
import { resolveName } from '../../src/client/resolve.js'
import { beefOf } from '../support/fake-chain.js'
import { type Told, useNameIndexes } from '../support/name-index.js'
import { at, namedWorld, outpointBeef, recordsOf } from '../support/name-proofs.js'
import { varint } from '../support/raw-transaction.js'
import { treeOf, useServers } from '../support/test-server.js'

// Lookup services that are found by the SDK's resolver: each of its hosts is an index of its own.

const indexes = useNameIndexes()
const servers = useServers()
const world = namedWorld()
const { deployment, headers, line, purse, tip, transfers, way } = world
const [first, second] = transfers

const beef = (where: { txid: string; vout: number }, transactions: typeof line): Uint8Array =>
  outpointBeef(where, recordsOf(transactions)).subarray(40)
const whole = beef(tip, [...line, first, purse, second])

/** The binary answer of one output with one BEEF. */
const aggregate = (where: { txid: string; vout: number }, bytes: Uint8Array, outputs = 1): Uint8Array => {
  const output = concatBytes(fromHex(where.txid), varint(where.vout), Uint8Array.of(0))
  return concatBytes(varint(outputs), ...Array.from({ length: outputs }, () => output), bytes)
}
const list = (where: { vout: number }, bytes: Uint8Array) => ({
  type: 'output-list',
  outputs: [{ beef: Array.from(bytes), outputIndex: where.vout }],
})

const host = async (told: Told): Promise<string> => (await indexes.start({ '/lookup': told })).url

const source = (hosts: string[], more: ConstructorParameters<typeof LookupNameSource>[0] = {}) =>
  new LookupNameSource({
    resolver: { networkPreset: 'local', hostOverrides: { ls_names: hosts } },
    ...more,
  })

const resolve = async (hosts: string[], more: Parameters<typeof source>[1] = {}) =>
  await resolveName({ name: 'abc', deployment, chainTracker: headers, sources: [source(hosts, more)] })

const byHost = ({ reports }: { reports: { index: string; verdict: string }[] }) =>
  Object.fromEntries(reports.map(({ index, verdict }) => [index, verdict]))

test.each([
  ['in one binary answer', { body: aggregate(tip, whole) }],
  ['in JSON', { body: list(tip, whole) }],
])('a name is resolved from one host, %s', async (_, told) => {
  const url = await host(told)
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
  const sources = [source([server.url]), new HttpNameSource({ url: server.url })]
  const question = { name: 'ab', deployment, chainTracker: headers, sources }
  expect(await resolveName(question)).toMatchObject({ tip: { sequence: 0 }, spendStatus: 'unspent' })
  await expect(resolveName({ ...question, name: 'nobody' })).rejects.toMatchObject({ code: 'NOT_CLAIMED' })
})

test('the question is for the history, as one binary answer', async () => {
  let question = ''
  const asked = await indexes.start({ '/lookup': { body: aggregate(tip, whole) } })
  const fetching: typeof fetch = async (url, init) => {
    question = String(init?.body)
    expect(new Headers(init?.headers).get('x-aggregation')).toBe('yes')
    return await fetch(url, init)
  }
  await resolve([asked.url], { fetch: fetching })
  expect(JSON.parse(question)).toEqual({ service: 'ls_names', query: { name: 'abc', history: true } })
})

test("the SDK's own reader would leave nothing of the history", async () => {
  const url = await host({ body: aggregate(tip, whole) })
  const question = { service: 'ls_names', query: { name: 'abc', history: true } }
  const { outputs } = await new HTTPSOverlayLookupFacilitator(undefined, true).lookup(url, question)
  expect(outputs[0]?.beef.length).toBeLessThan(whole.length / 4)
})

test('several hosts are judged each by itself, however many lie', async () => {
  const honest = await host({ body: aggregate(tip, whole) })
  // The same output, which a reader that merges answers would take for the same answer.
  const cut = await host({ body: aggregate(tip, beef(tip, way)) })
  const stale = await host({ body: aggregate(at(first, 0), beef(at(first, 0), [...line, first])) })
  const denying = await host({ body: { type: 'output-list', outputs: [] } })
  const broken = await host({ status: 500, body: {} })
  for (const hosts of [
    [cut, stale, honest, denying, broken],
    [broken, honest, denying, stale, cut],
  ]) {
    const resolved = await resolve(hosts)
    expect(resolved.tip.tip).toEqual(tip)
    expect(byHost(resolved)).toEqual({
      [honest]: 'agrees',
      [cut]: 'refuted',
      [stale]: 'stale',
      [denying]: 'denies',
      [broken]: 'failed',
    })
  }
})

test('an output that the BEEF does not hold is refuted', async () => {
  for (const told of [
    aggregate({ txid: 'ab'.repeat(32), vout: 0 }, whole),
    aggregate({ ...tip, vout: 7 }, whole),
  ])
    await expect(resolve([await host({ body: told })])).rejects.toMatchObject({
      code: 'NO_PROOF',
      reports: [{ verdict: 'refuted', error: { code: 'BAD_BEEF' } }],
    })
})

test.each<[what: string, told: Told, code: string]>([
  ['two outputs for one name', { body: aggregate(tip, whole, 2) }, 'BAD_ANSWER'],
  ['outputs beyond counting', { body: concatBytes(fromHex('feffffffff'), whole) }, 'BAD_ANSWER'],
  ['half an output', { body: aggregate(tip, whole).subarray(0, 20) }, 'BAD_ANSWER'],
  ['no bytes at all', { body: new Uint8Array() }, 'BAD_ANSWER'],
  ['another kind of answer', { body: { type: 'freeform', result: {} } }, 'BAD_ANSWER'],
  ['outputs that are none', { body: { type: 'output-list', outputs: [null] } }, 'BAD_ANSWER'],
  [
    'text for a BEEF',
    { body: { type: 'output-list', outputs: [{ outputIndex: 0, beef: 'x' }] } },
    'BAD_ANSWER',
  ],
  [
    'no bytes for a BEEF',
    { body: { type: 'output-list', outputs: [{ outputIndex: 0, beef: [256] }] } },
    'BAD_ANSWER',
  ],
  ['an error', { status: 400, body: { error: 'no', code: 'BAD_BODY' } }, 'BAD_ANSWER'],
  ['nothing', { does: (response) => response.destroy() }, 'UNREACHABLE'],
])('a host that answers %s is said to', async (_, told, code) => {
  const url = await host(told)
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
  const trackers = await indexes.start({ '/lookup': { body: { type: 'output-list', outputs: [] } } })
  const resolver = { networkPreset: 'testnet' as const, slapTrackers: [trackers.url] }
  await expect(resolve([], { resolver })).rejects.toMatchObject({
    code: 'NO_PROOF',
    reports: [{ index: 'ls_names', verdict: 'failed', error: { code: 'UNREACHABLE' } }],
  })
})
