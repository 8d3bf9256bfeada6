import { beefOf, FakeChain, type FakeTransaction, inscriptionScript, p2pkh } from '../protocol/fake-chain.js'
import {
  type Answer,
  type Environment,
  type Question,
  type StartOptions,
  type TestServer,
  treeOf,
  type useServers,
} from '../server/test-server.js'
import type { File } from './site.js'

/** A server with a tree, whose names show what they are given. */
export interface HostedServer {
  server: TestServer
  chain: FakeChain
  /** With its colon. */
  port: string
  /** Mines a name with all before it, and gives its mint. */
  mine(name: string): Promise<FakeTransaction>
  /** Spends the ordinal of a name, which is in an output of a transaction: the first file goes where it goes, the others beside it. */
  show(
    from: { transaction: FakeTransaction; vout: number },
    ...files: (File | 'lock')[]
  ): Promise<FakeTransaction>
  /** Mines a name, and has it show files. */
  named(name: string, ...files: File[]): Promise<{ mint: FakeTransaction; site: FakeTransaction }>
  /** Asks a host. A port is added, unless there is one. */
  on(host: string, path?: string, question?: Question): Promise<Answer>
}

export async function hostedServer(
  servers: ReturnType<typeof useServers>,
  env: Environment = {},
  options: StartOptions = {},
): Promise<HostedServer> {
  const chain = new FakeChain()
  const server = await servers.start({ ...treeOf(chain.deployment), ...env }, options)
  const port = `:${new URL(server.url).port}`
  await server.take(beefOf(chain.genesis))
  const mined = new Map<string, FakeTransaction>()
  const mine: HostedServer['mine'] = async (name) => {
    for (let length = 1; length <= name.length; length++) {
      const prefix = name.slice(0, length)
      if (mined.has(prefix)) continue
      const mint = chain.mint(prefix)
      mined.set(prefix, mint)
      await server.take(beefOf(mint))
    }
    return mined.get(name) as FakeTransaction
  }
  const show: HostedServer['show'] = async (from, ...files) => {
    const outputs = files.map((file) => ({
      satoshis: 1,
      lockingScript: file === 'lock' ? p2pkh(3) : inscriptionScript(file),
    }))
    const transaction = chain.spend({ inputs: [from], outputs })
    const beef = beefOf(transaction, { with: [from.transaction] })
    await server.take(beef, ['tm_ordinals'])
    return transaction
  }
  return {
    ...{ server, chain, port, mine, show },
    async named(name, ...files) {
      const mint = await mine(name)
      return { mint, site: await show({ transaction: mint, vout: 2 }, ...files) }
    },
    on: (host, path = '/', { headers, ...question } = {}) =>
      server.ask(path, {
        ...question,
        headers: { Host: /:\d*$/.test(host) ? host : host + port, ...headers },
      }),
  }
}
