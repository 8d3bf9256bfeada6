import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { recordOf } from '../../support/protocol/block.js'
import { beefOf, FakeChain, inscriptionScript, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import {
  type Environment,
  posted,
  type TestServer,
  treeOf,
  useServers,
} from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { onEachSharedEngine } from '../../support/storage/databases.js'
import { startTcpProxy } from '../../support/storage/tcp-proxy.js'

// Several servers over one log, each with an index of its own.

const ADMIN = 'an-operator-of-many-gateways'

onEachSharedEngine('gateways over a log in', (databases) => {
  const { start } = useServers()

  async function settings({ deployment }: FakeChain): Promise<Environment> {
    return { ...treeOf(deployment), ...(await databases.settings()), SHARED_FACTS: '1' }
  }

  const asOperator = (server: TestServer, path: string, body: unknown) => {
    const question = posted(body)
    const headers = { ...question.headers, Authorization: `Bearer ${ADMIN}` }
    return server.ask(path, { ...question, headers })
  }

  test('what one admits, all answer, and a new one too', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const [one, two] = await Promise.all([start(env), start(env)])
    expect((await one.submit(beefOf(chain.genesis))).status).toBe(200)
    const mint = chain.mint('a')
    await eventually(async () => {
      expect((await two.ask('/svc/names/mine/a')).json).toMatchObject({ domain: '' })
    })
    expect((await two.submit(beefOf(mint))).status).toBe(200)
    const origin = { status: 200, json: { name: 'a', outpoint: mint.outpoint(2) } }
    await eventually(async () => expect(await one.ask('/svc/names/origin/a')).toMatchObject(origin))
    const body = utf8('a body')
    const note = chain.inscribe({ contentType: 'text/plain', body })
    expect((await one.submit(beefOf(note), ['tm_ordinals'])).status).toBe(200)
    const content = `/content/${note.outpoint(0)}`
    await eventually(async () => expect((await two.ask(content)).status).toBe(200))
    const three = await start(env)
    expect(await three.ask('/svc/names/origin/a')).toMatchObject(origin)
    expect((await three.ask(content)).body).toEqual(Buffer.from(body))
  })

  test('of double spends sent to all at once, one is admitted', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const hosts = await Promise.all([start(env), start(env), start(env)])
    const coins = Array.from({ length: 6 }, () =>
      chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
    )
    for (const coin of coins) {
      const beefs = hosts.map((_, at) => {
        const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(`${at}`) })
        const inputs = [{ transaction: coin, vout: 0 }]
        const spend = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
        return beefOf(spend, { proven: false, with: [coin] })
      })
      const answers = await Promise.all(
        hosts.map((host, at) => host.submit(beefs[at] ?? new Uint8Array(), ['tm_ordinals'])),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    }
  })

  test('a read that knows a position of the log waits for it', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const [one, two] = await Promise.all([start(env), start(env)])
    expect((await one.submit(beefOf(chain.genesis))).status).toBe(200)
    for (let count = 0; count < 5; count++) {
      const note = chain.inscribe({ contentType: 'text/plain', body: utf8(`note ${count}`) })
      const { status, headers } = await one.submit(beefOf(note), ['tm_ordinals'])
      expect([status, headers['x-log-position']]).toEqual([200, expect.stringMatching(/^\d+$/)])
      const position = { 'X-Log-Position': String(headers['x-log-position']) }
      const read = await two.ask(`/content/${note.outpoint(0)}`, { headers: position })
      expect([read.status, read.body.toString()]).toEqual([200, `note ${count}`])
      expect(Number(read.headers['x-log-position'])).toBeGreaterThanOrEqual(Number(headers['x-log-position']))
    }
  })

  test('what is blocked through one, no other serves', async () => {
    const chain = new FakeChain()
    const env = { ...(await settings(chain)), ADMIN_TOKEN: ADMIN }
    const [one, two] = await Promise.all([start(env), start(env)])
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8('to be blocked') })
    expect((await one.submit(beefOf(note), ['tm_ordinals'])).status).toBe(200)
    const content = `/content/${note.outpoint(0)}`
    await eventually(async () => expect((await two.ask(content)).status).toBe(200))
    const subject = { outpoint: note.outpoint(0) }
    expect((await asOperator(one, '/admin/block', { ...subject, reason: 'a test' })).status).toBe(200)
    expect((await one.ask(content)).status).toBe(451)
    await eventually(async () => expect((await two.ask(content)).status).toBe(451))
    expect((await asOperator(two, '/admin/unblock', subject)).status).toBe(200)
    await eventually(async () => expect((await one.ask(content)).status).toBe(200))
  })

  test('a callback reaches what waits at another gateway', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const [one, two] = await Promise.all([start(env), start(env)])
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }] })
    const spend = (text: string) => {
      const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
      const inputs = [{ transaction: coin, vout: 0 }]
      return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    }
    const [winner, loser] = [spend('first'), spend('second')]
    const unproven = { proven: false, with: [coin] }
    expect((await one.submit(beefOf(winner, unproven), ['tm_ordinals'])).status).toBe(200)
    expect((await one.submit(beefOf(loser, unproven), ['tm_ordinals'])).status).toBe(409)
    const merklePath = Buffer.from(recordOf(loser, 100).proof?.merklePath ?? []).toString('hex')
    const callback = posted({ txid: loser.txid, merklePath, blockHeight: 100 })
    // It does not have it, and passes the proof on.
    expect((await two.ask('/arc-ingest', callback)).status).toBe(404)
    for (const server of [one, two])
      await eventually(async () => {
        expect((await server.ask(`/content/${loser.outpoint(0)}`)).body.toString()).toBe('second')
      })
    expect((await two.ask('/arc-ingest', callback)).status).toBe(200)
  })

  test('while the log cannot be reached, what is known is answered, and what is written gets 503', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const proxy = await startTcpProxy(databases.port())
    const [one, two] = [await start(databases.through(env, proxy.port)), await start(env)]
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8('a note') })
    const [known, refused] = [`/content/${note.outpoint(0)}`, beefOf(chain.genesis)]
    expect((await one.submit(beefOf(note), ['tm_ordinals'])).status).toBe(200)
    proxy.cut()
    expect((await one.submit(refused)).status).toBe(503)
    expect((await one.ask(known)).body.toString()).toBe('a note')
    expect((await two.submit(refused)).status).toBe(200)
    proxy.mend()
    const mint = chain.mint('a')
    await eventually(async () => expect((await one.submit(beefOf(mint))).status).toBe(200))
    expect((await one.ask('/svc/names/origin/a')).json).toMatchObject({ name: 'a' })
    await proxy.stop()
  })
})
