import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PrivateKey } from '@bsv/sdk'
import { NOBODY_LOCK } from '../../../src/payments/fake.js'
import { p2pkhLockOf } from '../../../src/payments/key.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { writeFiles } from '../../support/cli/commands.js'
import { arcServer } from '../../support/mining/miners-services.js'
import { paymentsIn, statesIn } from '../../support/payments/journals.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

const cli = useBuiltCli()
const servers = useServers()
const key = new PrivateKey(71)

/** A server with a name of nobody, and one of the key. */
async function scene() {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  await server.submit(beefOf(chain.genesis))
  for (const [name, ownerLock] of [
    ['a', NOBODY_LOCK],
    ['b', p2pkhLockOf(key.toPublicKey())],
  ] as const)
    await server.submit(beefOf(chain.mint(name, { ownerLock })), ['tm_names', 'tm_ordinals'])
  const data = await servers.folder()
  const env = { ...treeOf(chain.deployment), XDG_DATA_HOME: data, XDG_CONFIG_HOME: data }
  const site = await writeFiles(await servers.folder(), {
    'index.html': '<h1>first</h1>',
    'style/main.css': 'h1 {}',
  })
  const shown = async (url: string, path = ''): Promise<string> => await (await fetch(url + path)).text()
  return { server, data, env, site, shown }
}

test('a folder is published on a name where money is fake, and then another', async () => {
  const { server, env, site, shown } = await scene()
  const publish = ['publish', site, '--name', 'a', '--url', server.url]
  const first = await cli.run(publish, env)
  expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('publishing 2 files') })
  const url = first.stdout.trim()
  expect(await shown(url)).toBe('<h1>first</h1>')
  expect(await shown(url, 'style/main.css')).toBe('h1 {}')
  await writeFile(join(site, 'index.html'), '<h1>second</h1>')
  expect((await cli.run(publish, env)).stdout.trim()).toBe(url)
  expect(await shown(url)).toBe('<h1>second</h1>')
  const stream = await cli.run([...publish, '--stream'], env)
  expect(stream).toMatchObject({ code: 2, stderr: expect.stringContaining('no stream') })
  const missing = await cli.run(['publish', site, '--name', 'zz', '--url', server.url], env)
  expect(missing).toMatchObject({ code: 3 })
}, 120_000)

test('a key pays, what was signed before a crash is sent by the next command, and an identity stays', async () => {
  const { server, data, env, site, shown } = await scene()
  const arc = await arcServer()
  try {
    const [keyFile, coins] = [join(data, 'key.wif'), join(data, 'coins.beef')]
    await writeFile(keyFile, key.toWif())
    await writeFile(coins, Uint8Array.from(coinsFor(key, 5000).toBEEF()))
    const paying = ['--url', server.url, '--key-file', keyFile, '--coins', coins, '--arc', arc.url, '--yes']
    expect(await cli.run(['bind', 'b', ...paying], env)).toMatchObject({ code: 0 })
    const [bound] = paymentsIn(data)
    arc.says = (sent) => (sent.id('hex') === bound?.txid ? 'SEEN_ON_NETWORK' : 'no answer')
    const publish = ['publish', site, '--name', 'b', ...paying]
    const running = cli.start(publish, env)
    await until(() => arc.received.some((each) => each.id('hex') !== bound?.txid))
    running.child.kill('SIGKILL')
    await running.ended
    arc.says = 'SEEN_ON_NETWORK'
    expect(statesIn(data)).toEqual(['admitted', 'pending'])
    const again = await cli.run(publish, env)
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('it is finished now') })
    expect(paymentsIn(data).map(({ kind, isAdmitted }) => [kind, isAdmitted])).toEqual([
      ['move', true],
      ['publish', true],
    ])
    const { stdout } = await cli.run(publish, env)
    expect(await shown(stdout.trim())).toBe('<h1>first</h1>')
    const resolved = await cli.run(['resolve', 'b', '--url', server.url], env)
    expect(resolved.stdout).toContain(`key     ${key.toPublicKey().toString()} `)
    const dear = await cli.run([...publish, '--max-fee', '1'], env)
    expect(dear).toMatchObject({ code: 4, stderr: expect.stringContaining('and 1 are allowed') })
  } finally {
    await arc.close()
  }
}, 120_000)
