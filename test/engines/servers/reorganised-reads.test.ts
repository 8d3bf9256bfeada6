import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import {
  type Environment,
  posted,
  type TestServer,
  treeOf,
  useServers,
} from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { onMariadb } from '../../support/storage/databases.js'

/** Starts a server that is read from, and one that is written to: the same, or another on the same database. */
type StartPair = (env: Environment) => Promise<{ server: TestServer; writer: TestServer }>

/** A name that is mined twice from one node: by a mint without a proof that counts, and by one that a proof brings. */
async function contestedOn(startPair: StartPair) {
  const chain = new FakeChain()
  const { server, writer } = await startPair(treeOf(chain.deployment))
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const root = chain.node('')
  const first = chain.mint('a', { funding: [{ transaction: purse, vout: 0 }] })
  const competing = chain.mint('a', { from: root, ownerLock: p2pkh(9) })
  await writer.take(beefOf(chain.genesis))
  const unproven = beefOf(first, { proven: false, with: [chain.genesis, purse] })
  expect((await writer.submit(unproven)).status).toBe(200)
  await eventually(async () => expect((await server.ask('/svc/names/a')).status).toBe(200))
  return { server, writer, first, competing }
}

/** What the answers say of the name, whatever else they have. */
const saysOf = (
  json: unknown,
  { first, competing }: { first: FakeTransaction; competing: FakeTransaction },
) => {
  const text = JSON.stringify(json)
  return { first: text.includes(first.txid), competing: text.includes(competing.txid) }
}

function readersOf(startPair: StartPair): void {
  const contested = () => contestedOn(startPair)

  test('repeated reads during it never find two origins, nor parts of both', async () => {
    const world = await contested()
    const { server, writer, first, competing } = world
    let isReorganising = true
    const reorganisation = writer.submit(beefOf(competing)).finally(() => {
      isReorganising = false
    })
    const said: { first: boolean; competing: boolean }[] = []
    while (isReorganising) {
      said.push(saysOf((await server.ask('/svc/names/a')).json, world))
      const origins = await server.ask(
        '/svc/names/origins',
        posted([first.outpoint(2), competing.outpoint(2)]),
      )
      expect(Object.values(origins.json as Record<string, boolean>).filter(Boolean)).toHaveLength(1)
    }
    expect((await reorganisation).status).toBe(200)
    // Another process sees it within a second.
    await eventually(async () => {
      said.push(saysOf((await server.ask('/svc/names/a')).json, world))
      expect(said.at(-1)).toEqual({ first: false, competing: true })
    })
    for (const { first: one, competing: other } of said) expect(one).toBe(!other)
  })
}

describe('on the one server that there is', () => {
  const { start } = useServers()
  const one: StartPair = async (env) => {
    const server = await start(env)
    return { server, writer: server }
  }
  readersOf(one)
})

onMariadb('on another server of the same', (databases) => {
  const { start } = useServers()
  const two: StartPair = async (env) => {
    const shared = { ...env, ...(await databases.settings()) }
    const [server, writer] = await Promise.all([start(shared), start(shared)])
    return { server, writer }
  }
  readersOf(two)
})
