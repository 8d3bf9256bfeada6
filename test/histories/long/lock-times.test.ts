import { utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../support/protocol/fake-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../../support/server/header-world.js'
import { type Answer, type Environment, submission } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

// What no block can hold yet waits, and never has to be sent again.

const BOTH = ['tm_names', 'tm_ordinals']

const worlds = useHeaderWorlds()

const open = (satoshis: number): FakeOutput => ({ satoshis, lockingScript: OPEN_LOCK })
const inscribed = (body: string): FakeOutput => ({
  satoshis: 1,
  lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(body), lock: OPEN_LOCK }),
})

/** A world with a mined transaction that pays for everything, which the server does not know. */
async function started(env: Environment = {}) {
  const world = await worlds.start(env)
  const { chain, headers } = world
  const purse = chain.spend({ inputs: [], outputs: Array.from({ length: 9 }, () => open(1000)) })
  headers.mine([purse])
  let paid = 0
  const coin = () => ({ transaction: purse, vout: paid++ })
  return { ...world, purse, coin }
}

/** Submits to both topics; whatever is mined comes with its path. */
async function submit(
  { server, headers }: HeaderWorld,
  transaction: FakeTransaction,
  ancestors: readonly FakeTransaction[] = [],
  topics = BOTH,
): Promise<Answer> {
  return await server.ask('/submit', submission(headers.branch.beef(transaction, ancestors), topics))
}

/** What the answer to a submission says is admitted. */
function admitted(answer: Answer): unknown {
  if (answer.status !== 200) throw new Error(`not taken: ${answer.body.toString()}`)
  const steak = answer.json as Record<string, { outputsToAdmit: number[] }>
  return Object.fromEntries(
    Object.entries(steak).map(([topic, { outputsToAdmit }]) => [topic, outputsToAdmit]),
  )
}

async function statuses({ server }: HeaderWorld, ...paths: string[]): Promise<number[]> {
  const found: number[] = []
  for (const path of paths) found.push((await server.ask(path)).status)
  return found
}

describe('what is submitted early', () => {
  test('is admitted when its lock time has come, though two of its ancestors are built on a third', async () => {
    const world = await started()
    const { chain, headers, coin, purse } = world
    const base = chain.spend({ inputs: [coin()], outputs: [open(10), open(10)] })
    const near = chain.spend({ inputs: [{ transaction: base, vout: 0 }], outputs: [open(9)] })
    const far = chain.spend({ inputs: [{ transaction: near, vout: 0 }], outputs: [open(8)] })
    const { height } = headers.bestTip
    const late = chain.spend({
      inputs: [
        { transaction: far, vout: 0 },
        { transaction: base, vout: 1 },
      ],
      outputs: [inscribed('late')],
      lockTime: height + 1,
      sequence: 0,
    })
    const nothing = { tm_names: [], tm_ordinals: [] }
    expect(admitted(await submit(world, late, [purse, base, near, far]))).toEqual(nothing)
    headers.grow(1)
    const again = await world.restart()
    await until(async () => (await statuses(again, `/content/${late.outpoint(0)}`))[0] === 200)
  })

  test('is admitted when its lock time has come', async () => {
    // A covenant of version 2 takes no lock time.
    const world = await started({ COVENANT_VERSION: '1' })
    const { chain, headers, coin, purse, server } = world
    const { height } = headers.bestTip
    const early = chain.mint('a', { funding: [coin()], lockTime: height + 5, sequence: 0 })
    expect(admitted(await submit(world, early, [chain.genesis, purse]))).toEqual({
      tm_names: [],
      tm_ordinals: [],
    })
    const paths = ['/svc/names/origin/a', `/content/${early.outpoint(2)}`]
    expect(await statuses(world, ...paths)).toEqual([404, 404])
    // What came with it and is in a block is known all the same.
    expect(server.rows().transactions?.join()).toContain(purse.txid)
    expect((await server.ask('/svc/names/mine/ab')).json).toMatchObject({ domain: '' })
    headers.grow(5)
    // A host that starts looks at once; one that runs, every half a minute.
    const again = await world.restart()
    await until(async () => (await statuses(again, '/svc/names/origin/a'))[0] === 200)
    expect(await statuses(again, ...paths)).toEqual([200, 200])
  })
})
