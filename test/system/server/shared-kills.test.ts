import { join } from 'node:path'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { rounds } from '../../support/nightly.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../support/protocol/fake-chain.js'
import { Random } from '../../support/random.js'
import { ask, type Environment, submission, treeOf, useServers } from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { onOneSharedEngine } from '../../support/storage/databases.js'
import { indexIn } from '../../support/writer/gateways.js'

// Gateways as processes of their own over one log, that are stopped in the middle of what they do, or killed.

const ROUNDS = rounds(2, 6)
const GATEWAYS = 3

interface Gateway {
  env: Environment
  running: Running
  url: string
}

onOneSharedEngine('gateways that are stopped and killed, over a log in', (databases) => {
  const cli = useBuiltCli()
  const servers = useServers()

  const start = async (env: Environment): Promise<Gateway> => {
    const running = cli.start(['serve'], env)
    return { env, running, url: await running.url }
  }

  test('answer 200 for one of those that spend a coin, lose nothing, and have one index', async () => {
    const chain = new FakeChain()
    const random = new Random(7)
    const shared = { ...treeOf(chain.deployment), ...(await databases.settings()) }
    const gateways = await Promise.all(
      Array.from({ length: GATEWAYS }, async () =>
        start({ PORT: '0', DATA_DIR: await servers.folder(), ...shared }),
      ),
    )
    const spenderOf = (coin: FakeTransaction, text: string): FakeTransaction => {
      const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
      const inputs = [{ transaction: coin, vout: 0 }]
      return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    }
    const races: { spenders: FakeTransaction[]; statuses: (number | undefined)[] }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const victim = gateways[random.below(GATEWAYS)] as Gateway
      const isStopped = random.below(2) === 0
      const coins = Array.from({ length: 6 }, () =>
        chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
      )
      const started = coins.map((coin, index) => {
        const spenders = gateways.map((_, at) => spenderOf(coin, `${round} ${index} ${at}`))
        const statuses = gateways.map(async ({ url }, at) => {
          const beef = beefOf(spenders[at] as FakeTransaction, { proven: false, with: [coin] })
          // It may be killed before it has answered.
          const answer = await ask(url, '/submit', submission(beef, ['tm_ordinals'])).catch(() => undefined)
          return answer?.status
        })
        return { spenders, statuses }
      })
      await Promise.race(started.flatMap(({ statuses }) => statuses))
      victim.running.child.kill(isStopped ? 'SIGSTOP' : 'SIGKILL')
      // What the others answer does not wait for the one that is gone.
      const others = gateways.flatMap((each, at) => (each === victim ? [] : [at]))
      await Promise.all(started.flatMap(({ statuses }) => others.map((at) => statuses[at])))
      if (isStopped) victim.running.child.kill('SIGCONT')
      else {
        await victim.running.ended
        Object.assign(victim, await start(victim.env))
      }
      for (const { spenders, statuses } of started)
        races.push({ spenders, statuses: await Promise.all(statuses) })
    }
    for (const { spenders, statuses } of races) {
      const admitted = spenders.filter((_, at) => statuses[at] === 200)
      expect(admitted.length).toBeLessThanOrEqual(1)
      for (const { url } of gateways)
        for (const each of admitted)
          await eventually(async () => {
            expect((await ask(url, `/content/${each.outpoint(0)}`)).status).toBe(200)
          })
    }
    expect(races.filter(({ statuses }) => statuses.includes(200)).length).toBeGreaterThan(races.length / 2)
    await eventually(async () => {
      const [first, ...others] = gateways.map(({ env }) => indexIn(join(env.DATA_DIR ?? '', 'gateway')))
      for (const other of others) expect(other).toEqual(first)
    })
    for (const { running } of gateways) {
      running.child.kill('SIGTERM')
      expect(await running.ended).toMatchObject({ code: 0 })
    }
  })
})
