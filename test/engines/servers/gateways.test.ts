import { MongoClient } from 'mongodb'
import { createConnection } from 'mysql2/promise'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { recordOf } from '../../support/protocol/block.js'
import { beefOf, FakeChain, inscriptionScript, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import {
  type Environment,
  OPERATOR,
  posted,
  treeOf,
  untilReady,
  useServers,
} from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import {
  describeWithMariadb,
  describeWithMongo,
  onEachSharedEngine,
} from '../../support/storage/databases.js'
import { startTcpProxy } from '../../support/storage/tcp-proxy.js'

// Several servers over one log, each with an index of its own.

const OLD_TABLES = 'it holds tables of an earlier kind of store, which are not read: name another database'

onEachSharedEngine('gateways over a log in', (databases) => {
  const { start } = useServers()

  async function settings({ deployment }: FakeChain): Promise<Environment> {
    return { ...treeOf(deployment), ...(await databases.settings()) }
  }

  test('what one admits, all answer, and a new one too', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const [one, two] = await Promise.all([start(env), start(env)])
    await one.take(beefOf(chain.genesis))
    const mint = chain.mint('a')
    await eventually(async () => {
      expect((await two.ask('/svc/names/mine/a')).json).toMatchObject({ domain: '' })
    })
    await two.take(beefOf(mint))
    const origin = { status: 200, json: { name: 'a', outpoint: mint.outpoint(2) } }
    await eventually(async () => expect(await one.ask('/svc/names/origin/a')).toMatchObject(origin))
    const body = utf8('a body')
    const note = chain.inscribe({ contentType: 'text/plain', body })
    await one.take(beefOf(note), ['tm_ordinals'])
    const content = `/content/${note.outpoint(0)}`
    await eventually(async () => expect((await two.ask(content)).status).toBe(200))
    const three = await start(env)
    expect(await three.ask('/svc/names/origin/a')).toMatchObject(origin)
    expect((await three.ask(content)).body).toEqual(Buffer.from(body))
  })

  test('whatever version of a covenant each names, all derive by that of the log', async () => {
    const chain = new FakeChain({ covenantVersion: 1 })
    const env = await settings(chain)
    const all = [await start(env), await start({ ...env, COVENANT_VERSION: '2' })]
    for (const each of [chain.genesis, chain.mint('a', { lockTime: 1 })]) await all[0]?.take(beefOf(each))
    for (const each of all)
      await eventually(async () => expect((await each.ask('/svc/names/origin/a')).status).toBe(200))
  })

  test('one without a tree is not ready, and says why, as soon as another one pins a tree', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const bare = await start({ ...env, GENESIS: '' })
    await start(env)
    const refused = {
      status: 503,
      json: { code: 'NOT_READY', error: expect.stringContaining('pinned a tree') },
    }
    await eventually(async () => expect(await bare.ask('/health/ready')).toMatchObject(refused))
    expect(await bare.submit(beefOf(chain.genesis))).toMatchObject(refused)
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
    // What lost is known to one gateway alone, and none counts it.
    const transactions = 2 * coins.length
    for (const host of hosts)
      await eventually(async () => {
        expect((await host.ask('/svc/gateway/counts')).json).toMatchObject({ transactions })
      })
  })

  test('a read that knows a position of the log waits for it', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const [one, two] = await Promise.all([start(env), start(env)])
    await one.take(beefOf(chain.genesis))
    for (let count = 0; count < 5; count++) {
      const note = chain.inscribe({ contentType: 'text/plain', body: utf8(`note ${count}`) })
      // The coin is pending, as no topic holds it.
      const coin = chain.spend({
        inputs: [],
        outputs: [{ satoshis: 1000 + count, lockingScript: OPEN_LOCK }],
      })
      const written = count % 2 === 0 ? note : coin
      const { status, headers } = await one.submit(beefOf(written), ['tm_ordinals'])
      expect([status, headers['x-log-position']]).toEqual([200, expect.stringMatching(/^\d+$/)])
      const position = { 'X-Log-Position': String(headers['x-log-position']) }
      const read = await two.ask(`/svc/gateway/transactions/${written.txid}`, { headers: position })
      expect(read).toMatchObject({ status: 200, json: { txid: written.txid } })
      expect(Number(read.headers['x-log-position'])).toBeGreaterThanOrEqual(Number(headers['x-log-position']))
    }
  })

  test('what is blocked through one, no other serves', async () => {
    const chain = new FakeChain()
    const env = { ...(await settings(chain)), ...OPERATOR }
    const [one, two] = await Promise.all([start(env), start(env)])
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8('to be blocked') })
    await one.take(beefOf(note), ['tm_ordinals'])
    const content = `/content/${note.outpoint(0)}`
    await eventually(async () => expect((await two.ask(content)).status).toBe(200))
    const subject = { outpoint: note.outpoint(0) }
    await one.block(subject)
    expect((await one.ask(content)).status).toBe(451)
    await eventually(async () => expect((await two.ask(content)).status).toBe(451))
    await two.unblock(subject)
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
    await one.take(beefOf(winner, unproven), ['tm_ordinals'])
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
    await one.take(beefOf(note), ['tm_ordinals'])
    proxy.cut()
    expect((await one.submit(refused)).status).toBe(503)
    expect((await one.ask(known)).body.toString()).toBe('a note')
    expect((await two.submit(refused)).status).toBe(200)
    proxy.mend()
    const mint = chain.mint('a')
    await eventually(async () => await one.take(beefOf(mint)))
    expect((await one.ask('/svc/names/origin/a')).json).toMatchObject({ name: 'a' })
    await proxy.stop()
  })

  test('of what is sent while connections break again and again, nothing is lost and nothing is there twice', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const proxy = await startTcpProxy(databases.port())
    const host = await start(databases.through(env, proxy.port))
    const NAMES = 'abcdefghijkl'
    const mints = chain.mintAll(NAMES)
    let isDone = false
    const breaking = (async () => {
      // Longer each time, so that it ends on a machine of any speed.
      let { lasting } = databases
      for (let pause = 5; !isDone; pause = (pause * 7) % 97) {
        await new Promise((resolve) => setTimeout(resolve, lasting + pause))
        lasting *= 1.05
        proxy.cut()
        await new Promise((resolve) => setTimeout(resolve, pause))
        proxy.mend()
      }
    })()
    for (const transaction of [chain.genesis, ...mints]) {
      await eventually(async () => {
        const { status, json } = await host.submit(beefOf(transaction))
        if (status !== 200)
          expect({ status, json }).toMatchObject({ status: 503, json: { code: 'NOT_READY' } })
        expect(status).toBe(200)
      })
    }
    isDone = true
    await breaking
    await untilReady(host)
    const names = mints.map((mint, at) => ({ name: NAMES.slice(0, at + 1), outpoint: mint.outpoint(2) }))
    await eventually(async () => expect((await host.ask('/svc/names?prefix=')).json).toMatchObject({ names }))
    expect((await host.ask('/svc/names/mine/abcdefghijklm')).json).toEqual({
      domain: NAMES,
      outpoint: mints.at(-1)?.outpoint(1),
    })
  })
})

describe('where the store is not to be had, a start says so in a line, without the password', () => {
  const { start } = useServers()

  async function expectRefused(env: Environment, place: RegExp, reason: string): Promise<void> {
    const { message } = await start(env).then(
      () => ({ message: 'it started' }),
      (error: Error) => error,
    )
    expect(message).toMatch(/^cannot open the store in [^\n]+$/)
    expect(message).toMatch(place)
    expect(message).toContain(reason)
    expect(message).not.toContain('a-password')
  }

  describeWithMariadb('on MariaDB', (mariadb) => {
    test.each([
      ['nobody listens', () => 'mysql://root:a-password@127.0.0.1:1/graph', 'ECONNREFUSED'],
      ['there is no such database', () => mariadb.url('elsewhere'), 'elsewhere'],
      ['the password is another', () => mariadb.url('mysql').replace('root', 'nobody:a-password'), 'nobody'],
    ])('as %s', async (_, url, reason) => {
      await expectRefused({ KNEX_URL: url() }, / mysql:\/\/127\.0\.0\.1:\d+\/\w+: /, reason)
    })

    test('as there are the tables of an earlier version', async () => {
      const KNEX_URL = await mariadb.database()
      const connection = await createConnection(KNEX_URL)
      await connection.query('create table graph_settings (name varchar(64))')
      await expectRefused({ KNEX_URL }, /^/, OLD_TABLES)
      const [tables] = await connection.query('show tables')
      expect(tables).toHaveLength(1)
      await connection.end()
    })
  })

  test('as nobody listens where MongoDB is to be', async () => {
    const url = 'mongodb://root:a-password@127.0.0.1:1,127.0.0.1:2/graph?serverSelectionTimeoutMS=100'
    await expectRefused(
      { MONGO_URL: url },
      / mongodb:\/\/127\.0\.0\.1:1,127\.0\.0\.1:2\/graph: /,
      'ECONNREFUSED',
    )
  })

  describeWithMongo('on MongoDB', (mongo) => {
    test('as there are the collections of an earlier version', async () => {
      const MONGO_URL = mongo.database()
      const client = await new MongoClient(MONGO_URL).connect()
      await client.db().collection('graph_settings').insertOne({ name: 'scores' })
      await expectRefused({ MONGO_URL }, /^/, OLD_TABLES)
      expect(await client.db().listCollections().toArray()).toHaveLength(1)
      await client.close()
    })

    test('as there is another tree in it', async () => {
      const MONGO_URL = mongo.database()
      const chain = new FakeChain()
      await start({ ...treeOf(chain.deployment), MONGO_URL })
      const other = treeOf(new FakeChain({ codeSize: 32 }).deployment)
      await expect(start({ ...other, MONGO_URL })).rejects.toThrow(
        /^GENESIS: the store in mongodb:\/\/127\.0\.0\.1:\d+\/test_\w+ holds the tree of /,
      )
    })
  })
})
