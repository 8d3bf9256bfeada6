import { OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { useHeaderWorlds } from '../../support/server/header-world.js'
import { until } from '../../support/server/waiting.js'

const worlds = useHeaderWorlds()

// That a server looks by itself; what it admits then, and in which order, the histories say.
test('what is submitted before a block can hold it is admitted when its lock time has come', async () => {
  // A covenant of version 2 takes no lock time.
  const world = await worlds.start({ COVENANT_VERSION: '1' })
  const { chain, headers, server } = world
  const coin = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  headers.mine([coin])
  const funding = [{ transaction: coin, vout: 0 }]
  const early = chain.mint('a', { funding, lockTime: headers.bestTip.height + 5, sequence: 0 })
  const beef = headers.branch.beef(early, [chain.genesis, coin])
  expect(await server.submit(beef, ['tm_names', 'tm_ordinals'])).toMatchObject({
    status: 200,
    json: { tm_names: { outputsToAdmit: [] }, tm_ordinals: { outputsToAdmit: [] } },
  })
  const content = `/content/${early.outpoint(2)}`
  expect([(await world.name('a')).status, (await server.ask(content)).status]).toEqual([404, 404])
  // What came with it and is in a block is known all the same.
  expect(server.rows().transactions?.join()).toContain(coin.txid)
  expect((await server.ask('/svc/names/mine/ab')).json).toMatchObject({ domain: '' })
  headers.grow(5)
  // A host that starts looks at once; one that runs, every half a minute.
  const again = await world.restart()
  await until(async () => (await again.name('a')).status === 200)
  expect((await again.server.ask(content)).status).toBe(200)
})
