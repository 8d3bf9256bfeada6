import { createHash } from 'node:crypto'
import { Beef } from '@bsv/sdk'
import { toHex, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  OPERATOR,
  posted,
  type Subject,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'

// What test/system/clients/field-clients.test.ts does not see through its clients.

const servers = useServers()
const chain = new FakeChain()
const a = chain.mint('a')
const funding = chain.spend({ outputs: [{ satoshis: 2, lockingScript: OPEN_LOCK }] })
const inscribed = (body: string): Uint8Array =>
  inscriptionScript({ contentType: 'text/plain', body: utf8(body), lock: OPEN_LOCK })
const pages = chain.spend({ inputs: [funding], outputs: ['one', 'two'].map(inscribed) })
let server: TestServer
let before: number

beforeAll(async () => {
  before = Date.now() / 1000
  server = await servers.start({ ...treeOf(chain.deployment), ...OPERATOR })
  for (const mint of [chain.genesis, a]) await server.take(beefOf(mint))
  await server.take(beefOf(pages, { with: [funding] }), ['tm_ordinals'])
})

/** Blocks something while a test looks, and unblocks it again. */
async function whileBlocked(subject: Subject, look: () => Promise<void>): Promise<void> {
  await server.block(subject)
  await look().finally(() => server.unblock(subject))
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('a transaction', () => {
  test.each([
    ['an outpoint', { outpoint: pages.outpoint(1) }],
    ['the content of another output', { sha256: sha256('two') }],
  ])('is refused whole if %s of it is blocked', async (_, subject) => {
    await whileBlocked(subject, async () => {
      for (const form of ['', '/tx', '/proof'])
        expectError(await server.ask(`/svc/beef/${pages.txid}${form}`), { status: 451, code: 'BLOCKED' })
      expect((await server.ask(`/svc/beef/${a.txid}/tx`)).status).toBe(200)
    })
    expect((await server.ask(`/svc/beef/${pages.txid}/tx`)).status).toBe(200)
  })

  test('is refused if an output of it is blocked that no topic holds', async () => {
    await whileBlocked({ outpoint: a.outpoint(3) }, async () => {
      expectError(await server.ask(`/svc/beef/${a.txid}/tx`), { status: 451, code: 'BLOCKED' })
      expect((await server.ask(`/svc/beef/${pages.txid}/tx`)).status).toBe(200)
    })
  })

  test('is not here if no topic holds an output of it', async () => {
    const plain = chain.spend({ outputs: [{ satoshis: 9, lockingScript: p2pkh(4) }] })
    await server.take(beefOf(plain), ['tm_ordinals'])
    for (const form of ['', '/tx', '/proof'])
      expectError(await server.ask(`/svc/beef/${plain.txid}${form}`), { status: 404, code: 'NOT_FOUND' })
  })

  test('is refused if it mints a blocked name', async () => {
    await whileBlocked({ name: 'a' }, async () => {
      expectError(await server.ask(`/svc/beef/${a.txid}`), { status: 451, code: 'BLOCKED' })
      expectError(await server.ask(`/svc/txo/${a.outpoint(2)}`), { status: 451, code: 'BLOCKED' })
    })
  })

  test('is immutable, and its proof and its BEEF are revalidated', async () => {
    const { headers, body } = await server.ask(`/svc/beef/${a.txid.toUpperCase()}/tx`)
    expect(toHex(body)).toBe(toHex(a.raw))
    expect(headers).toMatchObject({ 'cache-control': 'public, max-age=31536000, immutable' })
    for (const form of ['', '/proof']) {
      const path = `/svc/beef/${a.txid}${form}`
      const { headers } = await server.ask(path)
      expect(headers['cache-control']).toBe('no-cache')
      const known = await server.ask(path, { headers: { 'If-None-Match': String(headers.etag) } })
      expect({ status: known.status, length: known.body.length }).toEqual({ status: 304, length: 0 })
      const head = await server.ask(path, { method: 'HEAD' })
      expect(head.headers).toMatchObject({ etag: headers.etag, 'content-length': headers['content-length'] })
      expect(head.body).toHaveLength(0)
    }
  })

  test('that lost to another is not here, and the winner is', async () => {
    const spends = [7, 8].map((owner) => chain.move(pages, 0, p2pkh(owner)))
    const [lost, won] = spends as [(typeof spends)[0], (typeof spends)[0]]
    await server.submit(beefOf(lost, { with: [pages], proven: false }), ['tm_ordinals'])
    expect((await server.ask(`/svc/beef/${lost.txid}`)).status).toBe(200)
    await server.take(beefOf(won), ['tm_ordinals'])
    for (const form of ['', '/tx'])
      expectError(await server.ask(`/svc/beef/${lost.txid}${form}`), { status: 404, code: 'NOT_FOUND' })
    expectError(await server.ask(`/svc/txo/${lost.outpoint(0)}`), { status: 404, code: 'NOT_FOUND' })
    const beef = Beef.fromBinary(Array.from((await server.ask(`/svc/beef/${won.txid}`)).body))
    expect(beef.txs.map(({ txid }) => txid)).toEqual([won.txid])
    expect((await server.ask(`/svc/txo/${pages.outpoint(0)}/spend`)).json).toEqual({ spendTxid: won.txid })
  })
})

describe('an output', () => {
  test('of the tree has a value, too', async () => {
    const { json } = await server.ask(`/svc/txo/${a.outpoint(0)}?sats=true&spend=false`)
    expect(json).toEqual({ outpoint: a.outpoint(0), score: a.height, satoshis: 1 })
  })

  test('that is not mined has seconds since 1970, which no height reaches, in order of admission', async () => {
    const scores: number[] = []
    const coin = chain.spend({ outputs: [1, 1].map((satoshis) => ({ satoshis, lockingScript: OPEN_LOCK })) })
    for (const vout of [1, 0]) {
      const unmined = chain.move(coin, vout, inscribed(`${vout}`))
      await server.take(beefOf(unmined, { with: [coin], proven: false }), ['tm_ordinals'])
      const { json } = await server.ask(`/svc/txo/${unmined.outpoint(0)}`)
      scores.push((json as { score: number }).score)
    }
    const [first = 0, second = 0] = scores
    expect(first).toBeGreaterThanOrEqual(before)
    expect(second).toBeGreaterThan(first)
    expect(second).toBeLessThan(Date.now() / 1000 + 1)
  })

  test('that no topic holds is not here, spent or not, by whatever a stranger has stored', async () => {
    const coin = chain.spend({ outputs: [{ satoshis: 9, lockingScript: OPEN_LOCK }] })
    const outputs = [{ satoshis: 8, lockingScript: p2pkh(5) }]
    const plain = chain.spend({ inputs: [coin], outputs })
    await server.take(beefOf(plain, { with: [coin] }), ['tm_ordinals'])
    for (const form of ['', '/spend'])
      for (const outpoint of [coin.outpoint(0), plain.outpoint(0), funding.outpoint(0)])
        expectError(await server.ask(`/svc/txo/${outpoint}${form}`), { status: 404, code: 'NOT_FOUND' })
  })
})

describe('outputs in lists', () => {
  const unknown = `${'ab'.repeat(32)}_0`
  const list = async (form: string, outpoints: unknown): Promise<Answer> =>
    await server.ask(`/svc/txo${form}`, posted(outpoints))

  test('are answered in order, with null where nothing is held, as each alone', async () => {
    const asked = [pages.outpoint(1), unknown, a.outpoint(2), pages.outpoint(1).replace('_', '.')]
    const alone = await Promise.all(
      asked.map(async (outpoint) => {
        const { status, json } = await server.ask(`/svc/txo/${outpoint}?sats=true&block=true`)
        return status === 200 ? json : null
      }),
    )
    expect((await list('/outpoints?sats=true&block=true', asked)).json).toEqual(alone)
    expect(alone[1]).toBeNull()
    expect((await list('/outpoints', [])).json).toEqual([])
  })

  test('have what spends them, and null where nothing is known', async () => {
    const asked = [chain.genesis.outpoint(0), unknown, a.outpoint(2)]
    const spends = [a.txid, null, null].map((spendTxid) => ({ spendTxid }))
    expect((await list('/spends', asked)).json).toEqual(spends)
  })

  test('are null where they are blocked', async () => {
    await whileBlocked({ outpoint: a.outpoint(0) }, async () => {
      expect((await list('/outpoints', [a.outpoint(0)])).json).toEqual([null])
      expect((await list('/spends', [a.outpoint(0)])).json).toEqual([{ spendTxid: null }])
      const { json } = await server.ask(`/svc/txo/tx/${a.txid}`)
      expect(json).toMatchObject([{ outpoint: a.outpoint(1) }, { outpoint: a.outpoint(2) }])
    })
  })

  test('of a transaction are those that topics hold, each once', async () => {
    const { json } = await server.ask(`/svc/txo/tx/${a.txid.toUpperCase()}?sats=true`)
    const held = [0, 1, 2].map((vout) => ({ outpoint: a.outpoint(vout), score: a.height, satoshis: 1 }))
    expect(json).toEqual(held)
    expect((await server.ask(`/svc/txo/tx/${funding.txid}`)).json).toEqual([])
    expect((await server.ask(`/svc/txo/tx/${'ab'.repeat(32)}`)).json).toEqual([])
  })

  test('of a transaction with many arrive whole', async () => {
    const count = 600
    const coin = chain.spend({ outputs: [{ satoshis: count, lockingScript: OPEN_LOCK }] })
    const all = Array.from({ length: count }, (_, at) => at)
    const many = chain.spend({ inputs: [coin], outputs: all.map((at) => inscribed(`${at}`)) })
    await server.take(beefOf(many, { with: [coin] }), ['tm_ordinals'])
    const found = (await server.ask(`/svc/txo/tx/${many.txid}`)).json as { outpoint: string }[]
    expect(found.map(({ outpoint }) => outpoint)).toEqual(all.map((at) => many.outpoint(at)))
  })
})

describe('X-Topics', () => {
  const text = chain.move(pages, 1, p2pkh(3))
  const submit = (path: string, topics: string): Promise<Answer> =>
    server.ask(path, { method: 'POST', headers: { 'X-Topics': topics }, body: beefOf(text) })

  describe.each(['/submit', '/svc/overlay/submit'])('of %s', (path) => {
    test.each([
      ['tm_ordinals', ['tm_ordinals']],
      ['tm_ordinals,tm_names', ['tm_ordinals', 'tm_names']],
      [' tm_names , tm_ordinals ', ['tm_names', 'tm_ordinals']],
      ['tm_names,', ['tm_names']],
      [',tm_ordinals', ['tm_ordinals']],
      ['["tm_names"]', ['tm_names']],
      [' ["tm_names", "tm_ordinals"]', ['tm_names', 'tm_ordinals']],
    ])('%p is answered with these topics and no others', async (header, topics) => {
      const { status, json } = await submit(path, header)
      expect({ status, topics: Object.keys(json as object) }).toEqual({ status: 200, topics })
      expect((json as { tm_ordinals?: unknown }).tm_ordinals).toEqual(
        (topics as readonly string[]).includes('tm_ordinals')
          ? { outputsToAdmit: [0], coinsToRetain: [0] }
          : undefined,
      )
    })

    test.each(['', ',', ' , ', '["tm_ordinals"', '"tm_ordinals"', 'tm_other', 'tm_ordinals tm_names', '[]'])(
      '%p is refused',
      async (topics) => {
        expectError(await submit(path, topics), { status: 400, code: 'BAD_BODY', overlay: true })
      },
    )
  })
})

test('pages may send requests to a host in a private network, and the answers say so', async () => {
  const headers = {
    Origin: 'https://app.example',
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Private-Network': 'true',
  }
  const allowed = { 'access-control-allow-origin': '*', 'access-control-allow-private-network': 'true' }
  for (const path of ['/lookup', '/submit', '/svc/names/a', `/content/${pages.outpoint(0)}`])
    for (const method of ['OPTIONS', 'GET'])
      expect((await server.ask(path, { method, headers })).headers).toMatchObject(allowed)
})

test('a local network has no routes for content below the prefix of wallets', async () => {
  expect((await server.ask('/capabilities')).json).toEqual(['beef', 'txo', 'overlay'])
})
