import type { Sighting } from '../../../../backend/src/graph/conflict-resolution.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

// A mint that is paid with a real coin and never broadcast, and honest mints of the same node.

const { start } = useServers()

async function squatted() {
  const chain = new FakeChain()
  const env = treeOf(chain.deployment)
  const server = await start(env)
  const outputs = Array.from({ length: 9 }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ inputs: [], outputs })
  let spent = 0
  const funding = () => [{ transaction: purse, vout: spent++ }]
  await server.submit(beefOf(chain.genesis))
  const root = chain.node('')
  const squat = chain.mint('s', { from: root, funding: funding() })
  const honest = chain.mint('h', { funding: funding() })
  const further = chain.mint('ho', { funding: funding() })
  const submit = async (host: TestServer, transaction: FakeTransaction, ...before: FakeTransaction[]) =>
    await host.submit(
      beefOf(transaction, { proven: false, with: [chain.genesis, purse, ...before], unproven: before }),
    )
  return { chain, env, server, squat, honest, further, submit }
}

async function sight({ node }: TestServer, txid: string, status: Sighting): Promise<void> {
  const { overlay, graph } = node
  await overlay.engine.writes.run(() => graph.sightings.record([{ txid, status }]))
}

async function claimed(server: TestServer): Promise<string[]> {
  const names: string[] = []
  for (const name of ['s', 'h', 'ho'])
    if ((await server.ask(`/svc/names/origin/${name}`)).status === 200) names.push(name)
  return names
}

describe('an honest mint of a squatted node', () => {
  test('wins as soon as it is seen, with nothing sent again, also after a restart', async () => {
    const { env, server, squat, honest, further, submit } = await squatted()
    expect(await submit(server, squat)).toMatchObject({ status: 200 })
    for (const answer of [
      await submit(server, honest),
      await submit(server, further, honest),
      await submit(server, honest),
    ])
      expect(answer).toMatchObject({ status: 409, json: { code: 'CONFLICT', txid: squat.txid } })
    expect(await claimed(server)).toEqual(['s'])
    expect((await server.ask(`/svc/beef/${honest.txid}`)).status).toBe(404)
    expect((await server.ask(`/content/${honest.outpoint(2)}`)).status).toBe(404)
    await server.stop()

    const next = await start({ ...env, DATA_DIR: server.dataDir })
    expect(await claimed(next)).toEqual(['s'])
    const genuine = () => next.ask('/svc/names/origins', posted([squat.outpoint(2), honest.outpoint(2)]))
    expect((await genuine()).json).toMatchObject({ [squat.outpoint(2)]: true, [honest.outpoint(2)]: false })
    await sight(next, further.txid, 'seen')
    expect(await claimed(next)).toEqual(['h', 'ho'])
    expect((await genuine()).json).toMatchObject({ [squat.outpoint(2)]: false, [honest.outpoint(2)]: true })
    expect((await next.ask(`/content/${honest.outpoint(2)}`)).status).toBe(200)
    expect((await next.ask(`/content/${squat.outpoint(2)}`)).status).toBe(404)
    expect(await submit(next, honest)).toMatchObject({ status: 200 })
    expect(await submit(next, squat)).toMatchObject({ status: 409, json: { txid: honest.txid } })
  })

  test('wins at once if it was seen before it came', async () => {
    const { server, squat, honest, submit } = await squatted()
    await submit(server, squat)
    await sight(server, honest.txid, 'seen')
    expect(await submit(server, honest)).toMatchObject({ status: 200 })
    expect(await claimed(server)).toEqual(['h'])
  })

  test('wins when the squat is rejected, which its sender then hears', async () => {
    const { server, squat, honest, submit } = await squatted()
    await submit(server, squat)
    await submit(server, honest)
    await sight(server, squat.txid, 'rejected')
    expect(await claimed(server)).toEqual(['h'])
    await sight(server, honest.txid, 'rejected')
    expect(await claimed(server)).toEqual([])
    const { status, json } = await submit(server, squat)
    expect({ status, json }).toMatchObject({ status: 409, json: { code: 'CONFLICT', txid: squat.txid } })
  })

  test('stays refused where nobody can be asked, until a block has it', async () => {
    const { server, squat, honest, submit } = await squatted()
    await submit(server, squat)
    expect(await submit(server, honest)).toMatchObject({ status: 409 })
    expect(await claimed(server)).toEqual(['s'])
    expect((await server.submit(beefOf(honest))).status).toBe(200)
    expect(await claimed(server)).toEqual(['h'])
  })
})
