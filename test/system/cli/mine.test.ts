import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { P2PKH, PrivateKey, ProtoWallet, PublicKey } from '@bsv/sdk'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, termsOf } from '../../../backend/src/protocol/profile.js'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { covenantChain } from '../../support/mining/covenant-mints.js'
import { arcServer, walletServer } from '../../support/mining/miners-services.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { paymentsIn, statesIn } from '../../support/payments/journals.js'
import { beefOf } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

const cli = useBuiltCli()
const servers = useServers()

const DIFFICULTY = 8

/** A server with a tree of our own covenant, and nothing mined in it. */
async function tree({
  difficulty = DIFFICULTY,
  ...env
}: {
  difficulty?: number
  NAME_MARKER?: string
} = {}): Promise<TestServer> {
  const { genesis, beef } = deployTree(termsOf(PROFILES.local, { covenantVersion: 2, difficulty }))
  const server = await servers.start({
    GENESIS: formatOutpoint(genesis),
    DIFFICULTY: String(difficulty),
    ...env,
  })
  await server.take(beef)
  return server
}

/** A server with a tree of our first covenant, as it was deployed before there was a second. */
async function firstTree(): Promise<TestServer> {
  const { nameMarker } = PROFILES.local
  const { deployment, genesis } = covenantChain({ covenantVersion: 1, difficulty: DIFFICULTY, nameMarker })
  const server = await servers.start(treeOf(deployment))
  await server.take(beefOf(genesis))
  return server
}

const key = new PrivateKey(21)

/** A key with coins, and a journal for it. */
async function purse(...values: number[]) {
  const folder = await servers.folder()
  const keyFile = join(folder, 'key.wif')
  const coins = join(folder, 'coins.beef')
  await writeFile(keyFile, `${key.toWif()}\n`)
  await writeFile(coins, Uint8Array.from(coinsFor(key, ...values).toBEEF()))
  return { data: folder, args: ['--key-file', keyFile, '--coins', coins] }
}

/** Runs a command with a journal. */
const runIn = async (data: string, args: string[], env: Record<string, string> = {}) =>
  await cli.call(args, { XDG_DATA_HOME: data, ...env })

const recordOf = async (server: TestServer, name: string) =>
  (await server.ask(`/svc/names/${name}`)).json as { origin: string; tip: { owner: string } }

/** Who pays is asked on a terminal only, and `--yes` is for everybody else. To start a worker takes longer than to mine so little. */
const mine = (server: Pick<TestServer, 'url'>, ...args: string[]) => [
  ...['mine', '--workers', '1', ...args],
  ...['--url', server.url, '--yes'],
]

test.each([
  ['of the second covenant', 2, tree],
  ['of the first covenant', 1, firstTree],
])(
  'on a local network funding is fake, and the name goes to the given owner: in a tree %s',
  async (_, covenantVersion, start) => {
    const server = await start()
    expect((await server.ask('/deployment.json')).json).toMatchObject({ covenantVersion })
    const owner = key.toAddress()
    const { code, stdout, stderr } = await cli.run(mine(server, 'abc', '--owner', owner, '--workers', '2'))
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        /^(mining (\w+) from [0-9a-f]{64}_[01]\nmined \2 after [\d,]+ hashes\n){3}minetree: abc is mined; the site of its owner will be at http:\/\/abc\.localhost:\d+\/\n$/,
      ),
    })
    const lines = stdout.trim().split('\n')
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['a', 'ab', 'abc'])
    const record = await recordOf(server, 'abc')
    expect(lines[2]).toBe(`abc ${record.origin}`)
    expect(record.tip.owner).toBe(owner)
  },
)

describe('with a key', () => {
  test('each mint is paid with the change of the one before, and kept', async () => {
    const server = await tree()
    const { data, args } = await purse(3000, 2000)
    expect((await runIn(data, mine(server, 'ab', ...args, '--fee-rate', '50'))).code).toBe(0)
    const { code, stdout } = await runIn(data, mine(server, 'abcd', ...args, '--fee-rate', '50'))
    expect({ code, names: stdout.match(/^\w+/gm) }).toEqual({ code: 0, names: ['abc', 'abcd'] })
    // The same command again, after a kill that it knows nothing of.
    const again = await runIn(data, mine(server, 'abcd', ...args))
    expect(again).toMatchObject({ code: 0, stdout: stdout.split('\n').slice(1).join('\n') })
    expect(statesIn(data)).toEqual(['admitted', 'admitted', 'admitted', 'admitted'])
    // The name is the key's, and its scripts were run: nothing of this is proven by a block.
    expect((await recordOf(server, 'abcd')).tip.owner).toBe(key.toAddress())
    const poor = await runIn(data, mine(server, 'abcdefghijklmnop', ...args, '--fee-rate', '1000'))
    expect(poor).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/minetree: \d+ satoshis are not enough for/),
    })
  })

  test('without a coin, nothing is searched for', async () => {
    const server = await tree()
    const { data, args } = await purse(3000)
    const withKey = args.slice(0, 2)
    expect(await runIn(data, mine(server, 'a', ...withKey))).toMatchObject({
      code: 1,
      stderr: `minetree: there is no coin of ${key.toAddress()}\n`,
    })
    const file = join(data, 'text')
    await writeFile(file, 'no transaction')
    expect(await runIn(data, mine(server, 'a', ...withKey, '--coins', file))).toMatchObject({
      code: 2,
      stderr: `minetree: there is no transaction in ${file}\n`,
    })
  })

  test('mints go to miners before any overlay hears of them', async () => {
    const server = await tree()
    const arc = await arcServer()
    const { data, args } = await purse(5000)
    const { code } = await runIn(data, mine(server, 'ab', ...args, '--arc', arc.url), {
      ARC_API_KEY: 'secret',
    })
    expect(code).toBe(0)
    const { origin } = await recordOf(server, 'ab')
    expect(arc.received.map((transaction) => transaction.id('hex'))).toHaveLength(2)
    expect(`${arc.received[1]?.id('hex')}_2`).toBe(origin)
    expect(arc.keys).toEqual(['Bearer secret', 'Bearer secret'])
  })

  test('a mint that miners refuse is submitted nowhere, and its coins are free', async () => {
    const server = await tree()
    const arc = await arcServer()
    const { data, args } = await purse(900)
    arc.says = 'REJECTED'
    const refused = await runIn(data, mine(server, 'a', ...args, '--arc', arc.url))
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    expect(refused.stderr).toMatch(/\nminetree: the network rejects [0-9a-f]{64}: REJECTED\n$/)
    expect(statesIn(data)).toEqual(['lost'])
    expect((await server.ask('/svc/names/a')).status).toBe(404)
    arc.says = 'SEEN_ON_NETWORK'
    expect((await runIn(data, mine(server, 'a', ...args, '--arc', arc.url))).code).toBe(0)
  })

  /** Mines until the mint is kept and a miner has it, and ends the command there, as a crash would. */
  const stoppedHalfway = async (server: TestServer) => {
    const arc = await arcServer()
    arc.says = 'no answer'
    const { data, args } = await purse(5000)
    const running = cli.start(mine(server, 'ab', ...args, '--arc', arc.url), { XDG_DATA_HOME: data })
    await until(() => arc.received.length > 0)
    running.child.kill('SIGKILL')
    await running.ended
    arc.says = 'SEEN_ON_NETWORK'
    expect(statesIn(data)).toEqual(['pending'])
    return { data, arc, again: mine(server, 'ab', ...args, '--arc', arc.url) }
  }

  test('what was paid for before a crash is sent again within the time of the command, and nothing is paid twice', async () => {
    const server = await tree()
    const { data, again, arc } = await stoppedHalfway(server)
    const [pending] = paymentsIn(data)
    arc.says = 'no answer'
    const late = await runIn(data, [...again, '--max-time', '2'])
    expect(late).toMatchObject({ code: 4, stdout: '' })
    expect(late.stderr).toMatch(/minetree: mining took longer than 2 seconds \(--max-time\)\n$/)
    expect(statesIn(data)).toEqual(['pending'])
    expect(new Set(arc.received.map((each) => each.id('hex'))).size).toBe(1)
    arc.says = 'SEEN_ON_NETWORK'
    const { code, stdout } = await runIn(data, again)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^a was submitted again\nab [0-9a-f]{64}_2\n$/)
    expect((await recordOf(server, 'a')).origin).toBe(`${pending?.txid}_2`)
    expect(statesIn(data)).toEqual(['admitted', 'admitted'])
  })

  test('what somebody else was faster with is lost, and mining goes on from where he left the node', async () => {
    const server = await tree()
    const { data, again, arc } = await stoppedHalfway(server)
    expect((await cli.call(mine(server, 'x'))).code).toBe(0)
    // The network has accepted it: a server that shows another one cannot overrule that.
    const refused = await runIn(data, again)
    expect(refused).toMatchObject({ code: 5, stdout: '' })
    expect(refused.stderr).toMatch(/a \([0-9a-f]{64}\) is still undecided: the network has accepted it/)
    expect(statesIn(data)).toEqual(['sent'])
    expect((await cli.call(mine(server, 'x1'))).code).toBe(0)
    const [sent] = paymentsIn(data)
    arc.says = (transaction) => (sent?.txid === transaction.id('hex') ? 'REJECTED' : 'SEEN_ON_NETWORK')
    const { code, stdout } = await runIn(data, again)
    expect({ code, names: stdout.match(/^\w+/gm) }).toEqual({ code: 0, names: ['a', 'ab'] })
    expect(statesIn(data)).toEqual(['lost', 'admitted', 'admitted'])
  })
})

test('a wallet pays, and knows how to spend the name', async () => {
  const server = await tree()
  const wallet = new TestWallet(coinsFor(new PrivateKey(7), 50_000))
  const { url } = await walletServer(wallet)
  const data = await servers.folder()
  const { code, stderr } = await runIn(data, mine(server, 'ab', '--wallet', url))
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('mined ab after') })
  expect(stderr).toMatch(
    /minetree: ab is mined; your site will be at http:\/\/ab\.localhost:\d+\/\nminetree: to publish: minetree publish <folder> --name ab --url http:\/\/127\S+ --wallet http:\/\/127\S+\n$/,
  )
  const { origin, tip } = await recordOf(server, 'ab')
  expect(wallet.sent.map((transaction) => `${transaction.id('hex')}_2`)[1]).toBe(origin)
  const actions = wallet.actions.filter(({ outputs = [] }) => outputs.length > 0)
  const { basket, customInstructions = '' } = actions[1]?.outputs?.[2] ?? {}
  expect(basket).toBe('minetree names')
  const { publicKey } = await new ProtoWallet(wallet.key).getPublicKey(JSON.parse(customInstructions))
  expect(tip.owner).toBe(PublicKey.fromString(publicKey).toAddress())
  expect(new P2PKH().lock(tip.owner).toHex()).toMatch(/^76a914/)
  expect(statesIn(data)).toEqual(['admitted', 'admitted'])
})

test('what a wallet signed before a crash is sent by the next command, and nothing is paid twice', async () => {
  const server = await tree()
  const wallet = new TestWallet(coinsFor(new PrivateKey(7), 50_000))
  const { url } = await walletServer(wallet)
  const data = await servers.folder()
  const command = mine(server, 'a', '--wallet', url)
  const asked = new Promise<void>((sending) => {
    wallet.faults.send = () => {
      sending()
      return new Promise(() => {})
    }
  })
  const running = cli.start(command, { XDG_DATA_HOME: data })
  await asked
  running.child.kill('SIGKILL')
  await running.ended
  expect(statesIn(data)).toEqual(['pending'])
  wallet.faults = {}
  const { code, stdout } = await runIn(data, command)
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'a was submitted again\n' })
  expect(wallet.sent.map((sent) => `${sent.id('hex')}_2`)).toEqual([(await recordOf(server, 'a')).origin])
  expect(statesIn(data)).toEqual(['admitted'])
})

test('a mint that is stuck concerns its own name, and is not paid for again', async () => {
  const server = await tree()
  const arc = await arcServer()
  const { data, args } = await purse(4000, 4000)
  const run = async (name: string) => await runIn(data, mine(server, name, ...args, '--arc', arc.url))
  arc.says = 'SEEN_IN_ORPHAN_MEMPOOL'
  const orphan = await run('a')
  expect(orphan).toMatchObject({ code: 5, stdout: '' })
  expect(orphan.stderr).toMatch(
    /it is not known yet whether the network accepts [0-9a-f]{64}: SEEN_IN_ORPHAN/,
  )
  const stuck = arc.received[0]?.id('hex')
  arc.says = (sent) => (sent.id('hex') === stuck ? 'SEEN_IN_ORPHAN_MEMPOOL' : 'SEEN_ON_NETWORK')
  const other = await run('x')
  expect({ code: other.code, names: other.stdout.match(/^\w+/gm) }).toEqual({ code: 0, names: ['x'] })
  expect(other.stderr).toContain(`a (${stuck}) is still undecided: SEEN_IN_ORPHAN_MEMPOOL`)
  expect(other.stderr).toContain(`(to give it up: minetree payments --lose ${stuck})`)
  const same = await run('ab')
  expect(same).toMatchObject({ code: 5, stdout: '' })
  expect(same.stderr).toContain(`a is paid for by ${stuck}, but it is not known yet whether that counts`)
  expect(statesIn(data)).toEqual(['pending', 'admitted'])
})

test('a tree with other terms than the server says is not paid for', async () => {
  const server = await tree({ NAME_MARKER: 'another' })
  const { data, args } = await purse(5000)
  const { code, stderr } = await runIn(data, mine(server, 'q', ...args))
  expect(code).toBe(2)
  expect(stderr).toContain('the script of the node rejects the mint')
  expect(statesIn(data)).toEqual([])
})

test('a signal ends the search at once, and says that it can go on', async () => {
  const server = await tree({ difficulty: 32 })
  const running = cli.start(mine(server, 'never'))
  running.child.stderr?.once('data', () => running.child.kill('SIGINT'))
  expect(await running.ended).toMatchObject({
    code: 130,
    stdout: '',
    stderr: expect.stringMatching(
      /^mining n from .*\nminetree: stopped: run the same command again to continue\n$/,
    ),
  })
})

describe('what cannot be mined is said in one line', () => {
  const failure = async (args: string[], env?: Record<string, string>, exit = 2): Promise<string> => {
    const { code, stdout, stderr } = await cli.call(['mine', ...args], env)
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' })
    expect(stderr).toMatch(/^minetree: [^\n]+\n$/)
    return stderr
  }
  const other = `${'ab'.repeat(32)}_0`
  const HASH = 'ab'.repeat(20)
  /** Nothing is mined here, so that one server does for all. */
  let untouched: TestServer
  beforeAll(async () => {
    untouched = await tree()
  })

  test.each<[string, string[], string]>([
    ['a name that is too long', ['q'.repeat(76)], 'a name is 1 to 75 characters'],
    ['no name', ['Q'], 'a name is 1 to 75 characters'],
    ['another network', ['q', '--owner', encodeAddress(HASH, 'test')], 'not an address of NETWORK=main: "m'],
    ['no address', ['q', '--owner', 'nobody'], 'not a P2PKH address: "nobody"'],
    ['a wallet and a key', ['q', '--wallet', 'http://127.0.0.1:9', '--key-file', '/dev/null'], 'not both'],
    ['no URL of a wallet', ['q', '--wallet', 'ftp://x'], 'not the URL of a wallet: "ftp://x"'],
    ['no key', ['q', '--key-file', '/dev/null'], '/dev/null does not hold a key as WIF'],
    ['no file', ['q', '--key-file', '/dev/null/x'], 'cannot read /dev/null/x'],
    ['no workers', ['q', '--workers', '0'], 'It must be a whole number from 1 to 1024'],
    ['no rate', ['q', '--fee-rate', 'high'], 'It must be a whole number'],
  ])('%s', async (_, args, message) => {
    expect(await failure([...args, '--url', untouched.url])).toContain(message)
  })

  test('a server that is not there', async () => {
    const line = await failure(['q', '--url', 'http://127.0.0.1:2'], undefined, 5)
    expect(line).toContain('does not answer')
  })

  test('a tree that the server does not follow, or none', async () => {
    const server = await tree()
    const differs = async (env: Record<string, string>): Promise<string> =>
      await failure(['q', '--url', server.url], env)
    expect(await differs({ GENESIS: other })).toContain(`GENESIS is ${other}, and ${server.url} follows `)
    expect(await differs({ PROFILE: 'mainnet' })).toContain('PROFILE is mainnet, and ')
    expect(await differs({ NETWORK: 'test' })).toContain(`NETWORK is test, and ${server.url} follows main`)
    const { genesis } = (await server.ask('/deployment.json')).json as { genesis: string }
    expect(await differs({ GENESIS: genesis, DIFFICULTY: '9' })).toContain('DIFFICULTY is 9, and ')
    expect(await differs({ NAME_TLD: 'x' })).toContain(`NAME_TLD is x, and ${server.url} follows none`)
    const { url } = await servers.start()
    expect(await failure(['q', '--url', url], undefined, 3)).toContain('follows no tree of names')
  })

  test('nobody to pay on the live network', async () => {
    const { url } = await servers.start({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
    const env = { PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' }
    expect(await failure(['q', '--url', url])).toContain('PROFILE is local, and ')
    const { code, stderr } = await cli.call(['mine', 'q', '--url', url], env)
    expect(code).toBe(2)
    expect(stderr).toContain('choose who pays: use --wallet, or --key-file with --coins')
  })

  test('nobody who agrees to pay', async () => {
    const server = await tree()
    const { data, args } = await purse(5000)
    const { code, stdout, stderr } = await cli.call(['mine', 'q', '--url', server.url, ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/at most 5,000 satoshis per mint, 20,000 in total, 4 mints and 60 minutes\n/)
    expect(stderr).toMatch(/minetree: nothing was paid: add --yes to pay without being asked\n$/)
    expect(statesIn(data)).toEqual([])
  })

  test('a fee that is more than allowed', async () => {
    const server = await tree()
    const { data, args } = await purse(5000)
    const { code, stderr } = await runIn(data, mine(server, 'q', ...args, '--max-fee', '100'))
    expect(code).toBe(4)
    expect(stderr).toMatch(/the fee of the mint of q would be \d+ satoshis; at most 100 are allowed\n$/)
    expect(statesIn(data)).toEqual([])
  })
})
