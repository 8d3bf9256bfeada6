import { setTimeout as sleep } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { type GaspHost, startGaspHost } from '../../support/plugin/gasp-host.js'
import { ToolboxWallet } from '../../support/plugin/toolbox-wallet.js'
import type { FakeTransaction } from '../../support/protocol/fake-chain.js'
import { ask, submission, useServers } from '../../support/server/test-server.js'
import { eventually, until } from '../../support/server/waiting.js'
import { describeWithMariadb, describeWithMongo } from '../../support/storage/databases.js'
import { startTcpProxy, type TcpProxy } from '../../support/storage/tcp-proxy.js'
import { testAtNight } from '../../support/tests-at-night.js'

// A host whose log stops answering under load, and whose process is killed before it answers again.

/** How long the log does not answer, in seconds; by day, until the engine has stored what was sent. */
const STALL = IS_NIGHTLY ? 60 : 0
/** How many transactions of each kind are sent while the log does not answer. */
const LOAD = 5
const PATIENCE = 600_000

interface Places {
  knexUrl: string
  logUrl?: string
}

describeWithMariadb('a host on MariaDB that is killed while its log does not answer', (mariadb) => {
  const { folder } = useServers()

  async function proxyTo(url: string): Promise<{ proxy: TcpProxy; url: string }> {
    const behind = new URL(url)
    const proxy = await startTcpProxy(Number(behind.port))
    onTestFinished(() => proxy.stop())
    behind.port = String(proxy.port)
    return { proxy, url: behind.href }
  }

  /** What the engine has stored, or applied without storing anything of it. */
  async function storedIn(engine: Connection): Promise<Set<string>> {
    const [rows] = await engine.query('select txid from outputs union select txid from applied_transactions')
    return new Set((rows as { txid: string }[]).map(({ txid }) => txid))
  }

  async function run(
    open: () => Promise<{ direct: string; places: Places; proxy: TcpProxy }>,
  ): Promise<void> {
    const wallet = new ToolboxWallet()
    const { direct, places, proxy } = await open()
    const settings = {
      ...{ deployment: wallet.chain.deployment, engine: '0.4.6' as const, attached: false, peers: [] },
      ...{ ...places, indexDir: await folder() },
    }
    const start = async (): Promise<GaspHost> => {
      const host = await startGaspHost(settings)
      onTestFinished(() => host.stop())
      return host
    }
    const host = await start()
    const engine = await createConnection(direct)
    const submit = async (each: FakeTransaction) =>
      (await ask(host.url, '/submit', submission(wallet.beef(each), ['tm_names', 'tm_ordinals']))).status
    const known = Array.from({ length: 2 * LOAD }, (_, at) => wallet.inscribe(`known ${at}`))
    for (const each of [wallet.chain.genesis, ...known]) expect(await submit(each)).toBe(200)

    const answered: FakeTransaction[] = []
    const sent: FakeTransaction[] = []
    const send = (each: FakeTransaction): void => {
      sent.push(each)
      // The process may be killed before it answers.
      submit(each).then(
        (status) => void (status === 200 && answered.push(each)),
        () => {},
      )
    }
    const isEngineStalled = places.logUrl === undefined
    const ends = known.map((each, at) => (at % 2 === 0 ? wallet.transfer(each, 0) : wallet.burn(each, 0)))
    const mints = Array.from({ length: LOAD }, (_, at) => wallet.mint(String.fromCharCode(97 + at)))
    for (const each of isEngineStalled ? mints : []) send(each)
    if (isEngineStalled) await until(() => answered.length > 0, 'one is answered')
    proxy.stall({ newOnes: true })
    for (const each of isEngineStalled ? ends : [...ends, ...mints]) send(each)
    for (const end = Date.now() + STALL * 1000; Date.now() < end; await sleep(200))
      send(wallet.inscribe(`after ${end - Date.now()} ms`))
    if (!isEngineStalled)
      await eventually(async () => {
        const stored = await storedIn(engine)
        for (const { txid } of sent) expect(stored).toContain(txid)
      })
    expect((await ask(host.url, `/content/${known[0]?.outpoint(0)}`)).status).toBe(200)
    await host.stop()
    proxy.mend()

    const again = await start()
    const stored = await storedIn(engine)
    for (const { txid } of answered) expect(stored).toContain(txid)
    // What is burnt is in no answer but this.
    const spends = ends.map(({ txid }, at) => [txid, `/1sat/txo/${known[at]?.outpoint(0)}/spend`] as const)
    await eventually(async () => {
      for (const [spendTxid, path] of spends)
        if (stored.has(spendTxid)) expect((await ask(again.url, path)).json).toEqual({ spendTxid })
      const burns = spends.flatMap(([txid], at) => (at % 2 === 0 ? [] : [txid]))
      for (const txid of stored)
        if (!burns.includes(txid))
          expect([txid, (await ask(again.url, `/1sat/beef/${txid}`)).status]).toEqual([txid, 200])
    })
    await engine.end()
  }

  testAtNight(
    'while its engine goes on, loses nothing that the engine has stored',
    () =>
      run(async () => {
        const direct = await mariadb.database()
        const { proxy, url } = await proxyTo(direct)
        return { direct, proxy, places: { knexUrl: direct, logUrl: url } }
      }),
    PATIENCE,
  )

  test(
    'with the database of its engine, loses nothing that the engine has stored',
    () =>
      run(async () => {
        const direct = await mariadb.database()
        const { proxy, url } = await proxyTo(direct)
        return { direct, proxy, places: { knexUrl: url } }
      }),
    PATIENCE,
  )

  describeWithMongo('with its log in MongoDB', (mongo) => {
    test(
      'loses nothing that the engine has stored',
      () =>
        run(async () => {
          const { proxy, url } = await proxyTo(mongo.database())
          const direct = await mariadb.database()
          return { direct, proxy, places: { knexUrl: direct, logUrl: url } }
        }),
      PATIENCE,
    )
  })
})
