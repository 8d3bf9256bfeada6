import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { Metrics } from '../../../../src/server/telemetry/metrics.js'
import {
  beefOf,
  FakeChain,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { saidParts } from '../../../support/server/chain-parts.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const PUBLIC = 'minetree_http_request_duration_seconds_count'

/** Every sample of a text in the format of Prometheus, by its name and labels as they are written. */
function samplesIn(text: string): Record<string, number> {
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    samples.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
}

async function samplesOf(server: TestServer): Promise<Record<string, number>> {
  return samplesIn((await server.ask('/metrics')).body.toString())
}

async function samplesFrom(metrics: Metrics): Promise<Record<string, number>> {
  return samplesIn((await metrics.text()).body)
}

/** Those of one metric, without its name. */
function only(samples: Record<string, number>, name: string): Record<string, number> {
  const found = Object.entries(samples).filter(([sample]) => sample.split('{')[0] === name)
  return Object.fromEntries(found.map(([sample, value]) => [sample.slice(name.length), value]))
}

/** Asks until requests that are over are counted: an answer is read a moment before. */
async function counted(server: TestServer, expected: Record<string, number>): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const found = only(await samplesOf(server), PUBLIC)
    if (Object.entries(expected).every(([sample, value]) => found[sample] === value)) return
  }
  expect(only(await samplesOf(server), PUBLIC)).toMatchObject(expected)
}

describe('/metrics', () => {
  test('is text that Prometheus reads, never from a cache', async () => {
    const server = await start()
    const { status, headers, body } = await server.ask('/metrics')
    expect({ status, type: headers['content-type'], cache: headers['cache-control'] }).toEqual({
      status: 200,
      type: 'text/plain; version=0.0.4; charset=utf-8',
      cache: 'no-store',
    })
    for (const line of body.toString().trimEnd().split('\n'))
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{(?:\w+="[^"\\]*",?)+\})? [-+\d.eInf]+|)$/)
  })

  test('counts of two servers in one process are two', async () => {
    const [one, other] = await Promise.all([start(), start()])
    await one.ask('/nowhere')
    await counted(one, { '{route="none",method="GET",status="4xx"}': 1 })
    expect(only(await samplesOf(other), PUBLIC)).not.toHaveProperty([
      '{route="none",method="GET",status="4xx"}',
    ])
  })
})

describe('submissions', () => {
  test('are counted by topic, what is refused by its code, and a conflict as one', async () => {
    const chain = new FakeChain()
    const server = await start({ ...treeOf(chain.deployment), MAX_CONTENT_BYTES: '20' })
    const mint = chain.mint('a')
    const coin = chain.spend({ outputs: [{ satoshis: 9, lockingScript: OPEN_LOCK }] })
    for (const each of [chain.genesis, mint]) await server.take(beefOf(each), ['tm_names'])
    // Known before: nothing is admitted by it.
    await server.take(beefOf(mint), ['tm_names'])
    const [spend, conflicting] = ['one', 'other'].map((text) =>
      chain.spend({
        inputs: [coin],
        outputs: [inscriptionScript({ contentType: 'text/plain', body: utf8(text) }), p2pkh(0)],
      }),
    ) as [typeof mint, typeof mint]
    await server.take(beefOf(spend, { with: [coin] }), ['tm_ordinals'])
    expect(
      (await server.submit(beefOf(conflicting, { proven: false, with: [coin] }), ['tm_ordinals'])).status,
    ).toBe(409)
    expect((await server.submit(utf8('no BEEF'))).status).toBe(400)
    expect((await server.submit(beefOf(mint), ['tm_other'])).status).toBe(400)
    const large = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(21) })
    await server.take(beefOf(large), ['tm_ordinals'])
    const origin = chain.inscribe({ contentType: 'text/plain', body: utf8('moved') })
    const moved = chain.spend({ inputs: [origin], outputs: [p2pkh(0)] })
    // One write admits both.
    await server.take(beefOf(moved, { with: [origin] }), ['tm_ordinals'])

    const samples = await samplesOf(server)
    expect(only(samples, 'minetree_admitted_transactions_total')).toEqual({
      '{topic="tm_names"}': 2,
      '{topic="tm_ordinals"}': 4,
    })
    expect(only(samples, 'minetree_admitted_outputs_total')).toEqual({
      '{topic="tm_names"}': 4,
      '{topic="tm_ordinals"}': 4,
    })
    expect(only(samples, 'minetree_refusals_total')).toMatchObject({
      '{topic="tm_ordinals",code="CONTENT_TOO_LARGE"}': 1,
    })
    expect(only(samples, 'minetree_refused_submissions_total')).toEqual({
      '{code="BAD_BODY"}': 2,
      '{code="CONFLICT"}': 1,
    })
    expect(samples).toMatchObject({
      minetree_conflicts_total: 1,
      minetree_submissions_waiting: 0,
      minetree_submission_duration_seconds_count: 9,
    })
  })

  test('that wait are counted while they do, and failures here are counted as such', async () => {
    const metrics = new Metrics()
    const endings: ((error: Error) => void)[] = []
    const submit = metrics.counted(() => new Promise((_resolve, reject) => endings.push(reject)))
    const submitted = [0, 1].map(() => submit({ beef: new Uint8Array(), topics: [] }))
    expect(await samplesFrom(metrics)).toMatchObject({ minetree_submissions_waiting: 2 })
    for (const end of endings) end(new Error('the disk is full'))
    for (const each of submitted) await expect(each).rejects.toThrow('the disk is full')
    expect(await samplesFrom(metrics)).toMatchObject({
      minetree_submissions_waiting: 0,
      'minetree_refused_submissions_total{code="INTERNAL"}': 2,
    })
  })

  test('that reorganise a branch are counted by how many transactions changed', async () => {
    const server = await start()
    for (const transactions of [3, 4]) server.node.overlay.emit({ kind: 'reorganised', transactions })
    expect(await samplesOf(server)).toMatchObject({ minetree_reorganised_transactions_total: 7 })
  })
})

describe('requests', () => {
  test('are counted by the route that has answered, never by what was asked for', async () => {
    const chain = new FakeChain()
    const server = await start({
      ...treeOf(chain.deployment),
      PROFILE: 'mainnet',
      CHAIN_TRACKER: 'scripts-only',
    })
    const unknown = `${'ab'.repeat(32)}_0`
    const asked: [path: string, label: string][] = [
      ['/svc/names', 'route="/svc/names/",method="GET",status="2xx"'],
      ['/SVC/Names?limit=x', 'route="/svc/names/",method="GET",status="4xx"'],
      ['/1sat/opns/origin/alice', 'route="/1sat/opns/origin/:name",method="GET",status="4xx"'],
      ['/svc/names/bob', 'route="/svc/names/:name",method="GET",status="4xx"'],
      [`/content/${unknown}`, 'route="/content/*",method="GET",status="4xx"'],
      [`/svc/gateway/stream/${unknown}`, 'route="/svc/gateway/stream/*",method="GET",status="4xx"'],
      [`/1sat/ordfs/metadata/${unknown}`, 'route="/1sat/ordfs/metadata/*",method="GET",status="4xx"'],
      ['/svc/gateway/preview/PGI+', 'route="/svc/gateway/preview*",method="GET",status="2xx"'],
      ['/health', 'route="/health",method="GET",status="2xx"'],
      ['/svc/names/a/b/c', 'route="none",method="GET",status="4xx"'],
    ]
    for (const [path] of asked) await server.ask(path)
    await server.ask('/lookup', posted({ service: 'ls_names', query: { name: 'alice' } }))
    await server.ask('/content/x', { method: 'OPTIONS' })
    await server.ask('/content/x', { method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'GET' } })
    await server.ask('/content/x', { method: 'PURGE' })
    // No route could read its name.
    await server.ask('/svc/names/origin/%', { method: 'HEAD' })
    await counted(server, {
      ...Object.fromEntries(asked.map(([, label]) => [`{${label}}`, 1])),
      '{route="/lookup",method="POST",status="2xx"}': 1,
      '{route="none",method="OPTIONS",status="2xx"}': 1,
      '{route="none",method="OPTIONS",status="4xx"}': 1,
      '{route="none",method="other",status="4xx"}': 1,
      '{route="none",method="HEAD",status="4xx"}': 1,
    })
  })

  test('leave as few labels as there are routes, and nothing of strangers', async () => {
    const server = await start()
    const marker = 'strangersword'
    for (let at = 0; at < 50; at++) {
      await server.ask(`/${marker}${at}`)
      await server.ask(`/svc/names/${marker}${at}?${marker}=${at}`)
      await server.ask(`/content/${marker}${at}`, { headers: { 'X-Request-Id': `${marker}${at}` } })
      await server.ask('/submit', {
        method: 'POST',
        body: marker,
        headers: { 'X-Topics': JSON.stringify([`${marker}${at}`]) },
      })
    }
    await counted(server, { '{route="none",method="GET",status="4xx"}': 50 })
    expect(only(await samplesOf(server), 'minetree_error_answers_total')).toEqual({
      '{code="NOT_FOUND"}': 100,
      '{code="BAD_OUTPOINT"}': 50,
      '{code="BAD_BODY"}': 50,
    })
    const { body } = await server.ask('/metrics')
    expect(body.toString()).not.toContain(marker)
    expect(Object.keys(only(samplesIn(body.toString()), PUBLIC)).length).toBeLessThan(6)
  })
})

describe('what is counted elsewhere', () => {
  test('is what the caches of the store had, and had not', async () => {
    const chain = new FakeChain()
    const server = await start(treeOf(chain.deployment))
    const file = chain.inscribe({ contentType: 'text/plain', body: utf8('seen') })
    await server.submit(beefOf(file), ['tm_ordinals'])
    const use = async () => only(await samplesOf(server), 'minetree_cache_lookups_total')
    const before = await use()
    for (let at = 0; at < 3; at++) await server.ask(`/content/${file.outpoint(0)}`)
    const after = await use()
    const grown = (sample: string): number => (after[sample] ?? 0) - (before[sample] ?? 0)
    expect([grown('{cache="bodies",result="miss"}'), grown('{cache="bodies",result="hit"}')]).toEqual([1, 0])
    expect(grown('{cache="answers",result="miss"}')).toBeGreaterThan(0)
    // The response is kept whole, however many reads it took.
    expect(grown('{cache="answers",result="hit"}')).toBe(2)
  })

  test('is how much the index lacks, asked for each time', async () => {
    const read = async (metrics: Metrics) => (await samplesFrom(metrics)).minetree_index_lag_transactions
    expect(await read(new Metrics())).toBe(0)
    let left = 5
    const metrics = new Metrics({ indexLag: async () => left })
    expect(await read(metrics)).toBe(5)
    left = 1
    expect(await read(metrics)).toBe(1)
    // If the store is gone, the other metrics are still there.
    const failing = () => Promise.reject(new Error('the disk is gone'))
    expect(await read(new Metrics({ indexLag: failing }))).toBe(Number.NaN)
  })
})

describe('the metrics of the parts that follow the chain', () => {
  test('say how far it was followed, and how each source is doing', async () => {
    const { said, parts } = saidParts()
    // Another URL of the same origin.
    said.sources.push({ name: 'junglebus https://a.example', state: 'ok', requests: 4, failures: 1 })
    const metrics = new Metrics({ chain: parts })
    const ofParts = async (): Promise<Record<string, number>> => {
      const samples = Object.entries(await samplesFrom(metrics))
      return Object.fromEntries(
        samples.filter(([name]) => /^minetree_(?:chain|follow|source|ancestors)_/.test(name)),
      )
    }
    const source = (use: string, name: string): string => `{use="${use}",source="${name}"}`
    const [one, other, ofHeaders] = [
      source('follow', 'junglebus https://a.example'),
      source('follow', 'whatsonchain https://b.example'),
      source('headers', 'junglebus https://a.example'),
    ] as const
    const expected = {
      minetree_chain_height: 900_120,
      minetree_follow_lag_blocks: 120,
      minetree_follow_height: 900_000,
      minetree_follow_catching_up: 1,
      minetree_follow_sweep_coins: 2048,
      minetree_follow_sweep_asked: 512,
      minetree_follow_unproven: 3,
      minetree_follow_mints_total: 1204,
      minetree_follow_transfers_total: 300,
      minetree_follow_failures_total: 2,
      minetree_ancestors_waiting: 4,
      minetree_ancestors_holes: 1,
      minetree_ancestors_fetched_total: 50,
      minetree_source_contradictions_total: 6,
      [`minetree_source_requests_total${one}`]: 6004,
      [`minetree_source_requests_total${other}`]: 11,
      [`minetree_source_requests_total${ofHeaders}`]: 91,
      [`minetree_source_failures_total${one}`]: 8,
      [`minetree_source_failures_total${other}`]: 5,
      [`minetree_source_failures_total${ofHeaders}`]: 0,
      [`minetree_source_resting${one}`]: 0,
      [`minetree_source_resting${other}`]: 1,
      [`minetree_source_resting${ofHeaders}`]: 0,
    }
    expect([await ofParts(), await ofParts()]).toEqual([expected, expected])

    said.follow.state = 'keeping up'
    said.follow.height = undefined
    expect(await ofParts()).toMatchObject({ minetree_follow_catching_up: 0, minetree_chain_height: 900_120 })
    for (const unknown of ['minetree_follow_lag_blocks', 'minetree_follow_height'])
      expect(await ofParts()).not.toHaveProperty([unknown])
  })

  test('are missing for parts that are not configured', async () => {
    const { parts } = saidParts()
    expect((await new Metrics().text()).body).not.toMatch(/minetree_(?:chain|follow|source|ancestors)_/)
    const { body } = await new Metrics({ chain: { ancestors: parts.ancestors } }).text()
    expect(body).toContain('minetree_ancestors_waiting 4')
    expect(body).not.toMatch(/minetree_(?:chain|follow|source)_/)
  })
})
