import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { readConfig } from '../../../src/server/config/config.js'
import type { DatabaseStores } from '../../../src/server/store/database-stores.js'
import { openStores } from '../../../src/server/store/open-stores.js'
import { beefOf, FakeChain, inscriptionScript, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import {
  type Environment,
  posted,
  type Question,
  submission,
  type TestServer,
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
import { startTcpProxy, type TcpProxy } from '../../support/storage/tcp-proxy.js'

// Several servers on one database, each with connections of its own, as processes have them.

const ADMIN = 'an-operator-of-a-shared-database'

onEachSharedEngine('servers on one', (databases) => {
  const { start } = useServers()
  const proxies: TcpProxy[] = []
  afterAll(async () => {
    for (const proxy of proxies) await proxy.stop()
  })

  /** The settings of hosts that follow a tree in a database of their own. */
  async function settings(chain: FakeChain): Promise<Environment> {
    return { ...treeOf(chain.deployment), ...(await databases.settings()), ADMIN_TOKEN: ADMIN }
  }
  const asOperator = (server: TestServer, path: string, body: unknown) => {
    const question = posted(body)
    return server.ask(path, {
      ...question,
      headers: { ...question.headers, Authorization: `Bearer ${ADMIN}` },
    })
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

  test('what is blocked through one, no other serves', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
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

  test('of double spends sent to all hosts at once, one is admitted', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const hosts = await Promise.all([start(env), start(env), start(env)])
    const coins = Array.from({ length: 6 }, () =>
      chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
    )
    for (const coin of coins) {
      const doubleSpends = hosts.map((_, at) =>
        chain.spend({
          inputs: [{ transaction: coin, vout: 0 }],
          outputs: [
            {
              satoshis: 1,
              lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(`${at}`) }),
            },
          ],
        }),
      )
      const beefs = doubleSpends.map((spend) => beefOf(spend, { proven: false, with: [coin] }))
      const answers = await Promise.all(
        hosts.map((host, at) => host.submit(beefs[at] ?? new Uint8Array(), ['tm_ordinals'])),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    }
  })

  test('while another process rebuilds the index, nothing is answered; an abandoned rebuild is finished', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const host = await start(env)
    const mint = chain.mint('a')
    for (const transaction of [chain.genesis, mint])
      expect((await host.submit(beefOf(transaction))).status).toBe(200)
    const status = async () => (await host.ask('/svc/names/origin/a')).status
    await untilReady(host)
    const stores = (await openStores(readConfig(env), { onReorg() {} })) as DatabaseStores
    const other = stores.maintenance
    try {
      await other.alone(async () => {
        await other.setRebuildCheckpoint({ state: 'needed' })
        await eventually(async () => expect(await status()).toBe(503))
        expect((await host.submit(beefOf(chain.mint('ab')))).status).toBe(503)
        await other.empty()
      })
      await eventually(async () => expect(await status()).toBe(200))
      expect(await other.rebuild()).toBeUndefined()
      expect((await host.ask('/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: mint.outpoint(2) })
    } finally {
      await stores.close()
    }
  })

  /** A host whose connections to its database can be cut. */
  async function behindProxy(chain: FakeChain) {
    const proxy = await startTcpProxy(databases.port())
    proxies.push(proxy)
    const env = await settings(chain)
    return { proxy, host: await start(databases.through(env, proxy.port)) }
  }

  test('while the database is away, what needs it is answered 503, and then as before', async () => {
    const chain = new FakeChain()
    const { proxy, host } = await behindProxy(chain)
    expect((await host.submit(beefOf(chain.genesis))).status).toBe(200)
    const mint = chain.mint('a')
    expect((await host.submit(beefOf(mint))).status).toBe(200)
    const asked: [string, Question?][] = [
      ['/svc/names/origin/a'],
      ['/svc/names/mine/a'],
      [`/content/${mint.outpoint(2)}`],
      [`/svc/gateway/metadata/${mint.outpoint(2)}`],
      ['/lookup', posted({ service: 'ls_names', query: { name: 'a' } })],
      ['/submit', submission(beefOf(chain.mint('ab')))],
    ]
    const answers = () => Promise.all(asked.map(([path, question]) => host.ask(path, question)))
    const reads = (await answers()).slice(0, -1)
    proxy.cut()
    await eventually(async () => {
      for (const answer of await answers())
        expect(answer).toMatchObject({ status: 503, json: { code: 'NOT_READY' } })
    })
    expect((await host.ask('/health/live')).status).toBe(200)
    expect((await host.ask('/health/ready')).status).toBe(503)
    proxy.mend()
    await untilReady(host)
    await eventually(async () => {
      const [now, before] = [await answers(), reads].map((each) =>
        each.map(({ status, body }) => [status, body.toString()]),
      )
      expect(now?.slice(0, -1)).toEqual(before)
    })
  })

  test('of what is sent while connections break again and again, nothing is lost and nothing is there twice', async () => {
    const chain = new FakeChain()
    const { proxy, host } = await behindProxy(chain)
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
  }, 300_000)
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
