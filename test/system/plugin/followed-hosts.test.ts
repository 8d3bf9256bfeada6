import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { useFollowWorlds } from '../../support/follow/follow-world.js'
import { type GaspHost, startGaspHost } from '../../support/plugin/gasp-host.js'
import { ask, posted } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { describeWithMariadb } from '../../support/storage/databases.js'

// Processes of a host that share a database, over the real engine 0.4.6: one of them follows the chain.

const stateOf = async ({ url }: GaspHost): Promise<string> =>
  ((await ask(url, '/follower')).json as { state: string }).state

/** The origin of a name, as a host answers. Until it has caught up, there may be none. */
async function originOf({ url }: GaspHost, name: string): Promise<string | undefined> {
  const { json } = await ask(url, '/lookup', posted({ service: 'ls_names', query: { origin: name } }))
  const { outputs = [] } = json as { outputs?: { beef: number[]; outputIndex: number }[] }
  const [output] = outputs
  return output && formatOutpoint({ txid: readBeef(output.beef).subject.txid, vout: output.outputIndex })
}

describeWithMariadb('processes of a host over', (mariadb) => {
  const { world } = useFollowWorlds()

  test('follow one at a time, and another one goes on when that one is killed', async () => {
    const { tree, headersSettings, url, service } = await world()
    const { deployment } = tree.chain
    const knexUrl = await mariadb.database()
    const quick = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '500', HEADERS_POLL_MS: '500' }
    const follow = { CHAIN_SOURCES: url, ...headersSettings, ...quick }
    const start = async (): Promise<GaspHost> => {
      const settings = { knexUrl, deployment, engine: '0.4.6' as const, peers: [], attached: false }
      const host = await startGaspHost({ ...settings, follow })
      onTestFinished(() => host.stop())
      return host
    }
    const late = ['bab', 'd'].map((name) => tree.mintOf(name))
    for (const { txid } of late) service.forget(txid)
    // The engine's migrations take a lock.
    const both = [await start(), await start()]
    const expected = (name: string) => tree.mintOf(name).outpoint(2)
    for (const host of both)
      for (const name of ['a', 'abc', 'baa'])
        await until(async () => (await originOf(host, name)) === expected(name), `it answers with ${name}`)
    const states = await Promise.all(both.map(stateOf))
    expect([...states].sort()).toEqual(['following', 'waiting'])
    const [holder, other] = states[0] === 'following' ? both : both.toReversed()
    if (holder === undefined || other === undefined) throw new Error('there are two')
    await until(async () => (await ask(other.url, '/svc/names/zz')).status === 404, 'it has heard of the end')

    await holder.stop()
    const fetched = service.asked.length
    service.know(...late.map((each) => tree.record(each)))
    for (const name of ['bab', 'd'])
      await until(async () => (await originOf(other, name)) === expected(name), `it answers with ${name}`)
    expect(await stateOf(other)).toBe('following')
    // What the other process has found is not fetched again.
    const again = service.asked.slice(fetched).filter((path) => path.includes('/get/'))
    for (const { txid } of late) expect(again.join()).toContain(txid)
    expect(again.join()).not.toContain(tree.mintOf('a').txid)

    const third = await start()
    await until(async () => (await stateOf(third)) === 'waiting', 'it waits')
    await until(async () => (await originOf(third, 'bab')) === expected('bab'), 'it answers with all')
    await until(async () => (await ask(third.url, '/svc/names/zz')).status === 404, 'it has caught up')
  })
})
