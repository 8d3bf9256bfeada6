import { FakeChain, type FakeTransaction } from '../protocol/fake-chain.js'
import { HeaderChain } from './header-chain.js'
import { HostTracker } from './host-tracker.js'
import {
  type Answer,
  AS_OPERATOR,
  type Environment,
  OPERATOR,
  posted,
  type StartOptions,
  type TestServer,
  treeOf,
  useServers,
} from './test-server.js'

/** Settings for a test in which the tracker says nothing: how long the server waits, long enough for one that answers. */
export const IMPATIENT = { CHAIN_TRACKER_TIMEOUT_MS: '2000' }

/** A server that asks a tracker about the blocks of a chain, on which the transactions of a fake chain are mined. */
export interface HeaderWorld {
  chain: FakeChain
  headers: HeaderChain
  tracker: HostTracker
  server: TestServer
  /** Mines transactions in one block of the branch that counts, and submits them in order, each with its path. */
  mined(...transactions: FakeTransaction[]): Promise<void>
  /** Submits a transaction as the branch that counts proves it. */
  submit(transaction: FakeTransaction, ancestors?: readonly FakeTransaction[]): Promise<Answer>
  /** Tells the server that the chain has changed. */
  tell(height?: number): Promise<Answer>
  /** What the server says of a name. */
  name(name: string): Promise<Answer>
  /** Another server over the same store, once the first has ended. */
  restart(env?: Environment): Promise<HeaderWorld>
}

/** Worlds for the tests of one file. A server asks at start and on a notice, unless the settings say how often. */
export function useHeaderWorlds(): {
  start(env?: Environment, options?: StartOptions & { chain?: FakeChain }): Promise<HeaderWorld>
} {
  const servers = useServers()
  return {
    async start(env = {}, { chain: given, ...options } = {}) {
      const chain = given ?? new FakeChain({ covenantVersion: env.COVENANT_VERSION === '1' ? 1 : 2 })
      const headers = new HeaderChain()
      const tracker = new HostTracker(headers)
      const usual = { HEADERS_POLL_MS: '0', ...OPERATOR }
      const settings = { ...treeOf(chain.deployment), ...usual, ...env }
      const over = (server: TestServer): HeaderWorld => {
        const submit: HeaderWorld['submit'] = (transaction, ancestors) =>
          server.submit(headers.branch.beef(transaction, ancestors))
        return {
          ...{ chain, headers, tracker, server, submit },
          async mined(...transactions) {
            headers.mine(transactions)
            for (const transaction of transactions) await server.take(headers.branch.beef(transaction))
          },
          tell(height) {
            const question = posted(height === undefined ? {} : { height }, AS_OPERATOR)
            return server.ask('/admin/headers', question)
          },
          name: (name) => server.ask(`/svc/names/${name}`),
          async restart(more = {}) {
            await server.stop()
            const again = { ...settings, ...more, DATA_DIR: server.dataDir }
            return over(await servers.start(again, { tracker, ...options }))
          },
        }
      }
      const world = over(await servers.start(settings, { tracker, ...options }))
      await world.mined(chain.genesis)
      return world
    },
  }
}
