import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createConnection } from 'mysql2/promise'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { builtPackage } from '../../support/cli/built-package.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { ask, treeOf, untilReady, useServers } from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { freePort } from '../../support/services/free-port.js'
import { describeWithMariadb, onOneSharedEngine } from '../../support/storage/databases.js'
import { startTcpProxy } from '../../support/storage/tcp-proxy.js'

// A gateway that cannot read the log: at its start, and when the thread that writes is started again meanwhile.

const SHARED = { CHAIN_TRACKER: 'scripts-only' }

describeWithMariadb('a gateway that starts while the log in MariaDB does not answer', (mariadb) => {
  const servers = useServers()

  test('listens, says how far it is, and answers 503 until it has read it', async () => {
    const chain = new FakeChain()
    const url = await mariadb.database()
    const env = { ...treeOf(chain.deployment), ...SHARED, KNEX_URL: url }
    const first = await servers.start(env)
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8('a note') })
    await first.take(beefOf(note), ['tm_ordinals'])
    await first.stop()
    const blocker = await createConnection(url)
    await blocker.query('lock tables minetree_log write')
    const port = await freePort()
    const starting = servers.start({ ...env, PORT: String(port) })
    const at = `http://127.0.0.1:${port}`
    const content = `/content/${note.outpoint(0)}`
    await eventually(async () => expect((await ask(at, content)).status).toBe(503))
    const refused = await ask(at, content, { headers: { Origin: 'https://other.example' } })
    expect(refused.headers).toMatchObject({
      'retry-after': expect.stringMatching(/^\d+$/),
      'access-control-allow-origin': '*',
    })
    expect(refused.json).toMatchObject({ code: 'NOT_READY', error: expect.stringMatching(/\d+ % left$/) })
    expect((await ask(at, '/submit', { method: 'POST' })).json).toMatchObject({ status: 'error' })
    expect((await ask(at, '/health/live')).status).toBe(200)
    expect((await ask(at, '/health/ready')).status).toBe(503)
    expect((await ask(at, '/health')).json).toMatchObject({
      ready: false,
      index: { state: 'rebuilding', done: 0 },
    })
    await blocker.query('unlock tables')
    await blocker.end()
    const server = await starting
    expect(server.url).toBe(at)
    await untilReady(server)
    expect((await server.ask(content)).body.toString()).toBe('a note')
  })
})

onOneSharedEngine('a gateway whose writer ends while the log cannot be reached, in', (databases) => {
  const servers = useServers()

  test('goes on answering what it knows, and writes once the log is back', async () => {
    const chain = new FakeChain()
    const writerThread = pathToFileURL(join(await builtPackage(), 'dist/src/server/writer-worker.js'))
    const proxy = await startTcpProxy(databases.port())
    const env = { ...treeOf(chain.deployment), ...SHARED, ...(await databases.settings()) }
    const server = await servers.start(databases.through(env, proxy.port), { writerThread })
    const inscribe = (text: string) => chain.inscribe({ contentType: 'text/plain', body: utf8(text) })
    const [known, late] = [inscribe('known'), inscribe('late')]
    await server.take(beefOf(known), ['tm_ordinals'])
    proxy.cut()
    server.node.shareWriter()?.postMessage({ share: 'no port' })
    await eventually(async () => expect(server.node.index.status.state).toBe('resuming'))
    const { status, headers } = await server.submit(beefOf(late), ['tm_ordinals'])
    expect([status, headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)])
    expect((await server.ask(`/content/${known.outpoint(0)}`)).body.toString()).toBe('known')
    expect((await server.ask('/health/ready')).status).toBe(503)
    proxy.mend()
    await untilReady(server)
    await server.take(beefOf(late), ['tm_ordinals'])
    expect((await server.ask(`/content/${late.outpoint(0)}`)).body.toString()).toBe('late')
    await proxy.stop()
  })
})
