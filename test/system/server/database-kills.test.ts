import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { rounds } from '../../support/nightly.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, untilReady, useServers } from '../../support/server/test-server.js'
import { eventually, until } from '../../support/server/waiting.js'
import { MISSING_FOR_MARIADB, startMariadb } from '../../support/services/mariadb.js'
import { indexIn } from '../../support/writer/gateways.js'

// A database whose process is killed while gateways write, and that is started again with what it has on its disk.

const ROUNDS = rounds(1, 3)
/** How many submissions are under way at each gateway. */
const CLIENTS = 6
const PATIENCE = 600_000

const onMariadb = MISSING_FOR_MARIADB.length > 0 ? describe.skip : describe

interface Race {
  spenders: FakeTransaction[]
  statuses: (number | undefined)[]
}

onMariadb('gateways over a MariaDB that syncs each commit, and is killed under load', () => {
  const servers = useServers()

  test(
    'lose nothing that they have answered, and have one index',
    async () => {
      const mariadb = await startMariadb({ isDurable: true })
      try {
        const root = await createConnection(mariadb.url(''))
        await root.query('create database killed')
        await root.end()
        const chain = new FakeChain()
        const shared = { ...treeOf(chain.deployment), KNEX_URL: mariadb.url('killed') }
        const folders: string[] = []
        const start = async (): Promise<TestServer> => {
          const folder = await servers.folder()
          folders.push(folder)
          return await servers.start({ DATA_DIR: folder, CHAIN_TRACKER: 'scripts-only', ...shared })
        }
        const gateways = [await start(), await start()]

        const races: Race[] = []
        const seen: Record<string, number> = {}
        let isOver = false
        /** Each client sends the spenders of one coin after those of another, one to each gateway. */
        const client = async (name: number): Promise<void> => {
          for (let at = 0; !isOver; at++) {
            const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
            const spenders = gateways.map((_, gateway) => {
              const body = utf8(`${name} ${at} ${gateway}`)
              const lockingScript = inscriptionScript({ contentType: 'text/plain', body })
              const inputs = [{ transaction: coin, vout: 0 }]
              return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
            })
            const race: Race = { spenders, statuses: [] }
            race.statuses = await Promise.all(
              gateways.map(async (each, gateway) => {
                const beef = beefOf(spenders[gateway] as FakeTransaction, { proven: false, with: [coin] })
                const { status } = await each.submit(beef, ['tm_ordinals'])
                seen[status] = (seen[status] ?? 0) + 1
                return status
              }),
            )
            races.push(race)
          }
        }
        const clients = Array.from({ length: CLIENTS }, (_, name) => client(name))
        for (let round = 0; round < ROUNDS; round++) {
          const before = { ...seen }
          const isMore = (status: number): boolean => (seen[status] ?? 0) > (before[status] ?? 0) + CLIENTS
          await until(() => isMore(200), 'some are admitted')
          await mariadb.kill()
          await until(() => isMore(503), 'some are refused')
          await mariadb.restart()
          for (const each of gateways) await untilReady(each)
        }
        isOver = true
        await Promise.all(clients)
        expect(Object.keys(seen).sort()).toEqual(['200', '409', '503'])

        gateways.push(await start())
        for (const each of gateways) await untilReady(each)
        for (const { spenders, statuses } of races) {
          const admitted = spenders.filter((_, at) => statuses[at] === 200)
          expect(admitted.length).toBeLessThanOrEqual(1)
          for (const each of admitted)
            for (const gateway of gateways)
              await eventually(async () =>
                expect((await gateway.ask(`/content/${each.outpoint(0)}`)).status).toBe(200),
              )
        }
        await eventually(async () => {
          const [first, ...others] = folders.map((each) => indexIn(join(each, 'gateway')))
          for (const other of others) expect(other).toEqual(first)
        })
        for (const each of gateways) await each.stop()
      } finally {
        await mariadb.stop()
      }
    },
    PATIENCE,
  )
})
