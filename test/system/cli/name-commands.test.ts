import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { type Ended, useBuiltCli } from '../../support/cli/built-cli.js'
import { type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import { at, namedWorld, outpointBeef, proofOf, recordsOf } from '../../support/client/name-proofs.js'
import { ownerOf } from '../../support/graph/owner-of.js'
import { beefOf, FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { listening } from '../../support/server/connections.js'
import { chainWithRoots } from '../../support/server/header-chain.js'
import { HeaderService, headersSettings } from '../../support/server/header-service.js'
import { type Environment, type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// The commands as they are installed, against a server of a local network.

const cli = useBuiltCli()
const servers = useServers()

const world = namedWorld()
const { chain, deployment, line, mints, origin, purse, tip, transfers, way } = world
const [first, second] = transfers
const genesis = formatOutpoint(deployment.genesis)
const shown = {
  origin: formatOutpoint(origin),
  tip: formatOutpoint(tip),
  owner: encodeAddress(ownerOf(3), 'main'),
}

let server: TestServer
let url: string

beforeAll(async () => {
  server = await servers.start(treeOf(deployment))
  for (const mint of line) await server.submit(beefOf(mint))
  await server.submit(beefOf(first, { with: [mints.abc] }), ['tm_ordinals'])
  await server.submit(beefOf(second, { with: [purse, first] }), ['tm_ordinals'])
  url = server.url
})

const index = async (routes: Record<string, RouteAnswer>): Promise<string> =>
  (await startIndex(routes, server.url)).url

/** A run of the command, without the lines that say now and then how far it is: there are some if the machine is slow. */
const run = async (args: string[], env: Environment = treeOf(deployment)): Promise<Ended> => {
  const ended = await cli.call(args, env)
  return { ...ended, stderr: ended.stderr.replace(/^block headers are being fetched;.*\n/gm, '') }
}

/** A command that says why not, in one line, and nothing else. */
const refusedWith = (reason: unknown, code = 1) => ({ code, signal: null, stdout: '', stderr: reason })
const line1 = (text: string) => expect.stringMatching(new RegExp(`^minetree: [^\\n]*${text}[^\\n]*\\n$`))

/** A service with the headers of the blocks of the world. */
async function headersService(): Promise<{ settings: Environment; close: () => Promise<void> }> {
  const chain = chainWithRoots(new Map([...line, ...way].map(({ txid, height }) => [height, txid])))
  const { url, close } = await listening(new HeaderService(chain).listener)
  return { settings: headersSettings(chain, url), close }
}

describe('resolve', () => {
  test('says where a name is and whose, and that no header was asked where none was', async () => {
    expect(await run(['resolve', 'abc', '--url', url])).toEqual({
      code: 0,
      signal: null,
      stdout: expect.stringMatching(
        `^origin  ${shown.origin}\ntip     ${shown.tip}\nowner   ${shown.owner}\n` +
          'proven  no: CHAIN_TRACKER is scripts-only, so no block headers were checked\n' +
          'key     none: the name is bound to no identity\n' +
          'fresh   until \\d{4}-\\S+Z, by 1 of 1 indexes\n$',
      ),
      stderr: '',
    })
  })

  test('says so as JSON, with all that was found', async () => {
    const { code, stdout } = await run(['resolve', 'abc', '--json', '--url', url])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      name: 'abc',
      ...shown,
      sequence: 2,
      script: Buffer.from(p2pkh(3)).toString('hex'),
      proven: false,
      spendStatus: 'unspent',
      identity: { state: 'unbound' },
      confusables: [],
      checkedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      freshUntil: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      genesis,
      genesisFrom: 'settings',
      indexes: [{ index: url, verdict: 'agrees' }],
    })
  })

  test('checks it against block headers where the settings say where those are', async () => {
    const headers = await headersService()
    const XDG_CACHE_HOME = await servers.folder()
    const env = { ...treeOf(deployment), ...headers.settings, XDG_CACHE_HOME }
    try {
      const { code, stdout, stderr } = await run(
        ['resolve', 'abc', '--json', '--require-proofs', '--url', url],
        env,
      )
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(JSON.parse(stdout)).toMatchObject({ proven: true, height: mints.abc.height })
      const verified = await run(['verify', 'abc', '--url', url], env)
      expect(verified.stdout).toContain(
        'blocks   all transactions are in blocks of the chain with the most work\n',
      )
      const stray = await index({
        '/svc/names/proof/abc': { body: proofOf([...line.slice(0, -1), { ...mints.abc, height: 5 }]) },
      })
      // What was verified above is kept, and needs no proof.
      expect((await run(['resolve', 'abc', '--url', stray], env)).code).toBe(0)
      expect(await run(['resolve', 'abc', '--no-cache', '--url', stray], env)).toEqual(
        refusedWith(line1('is in no block at height 5')),
      )
    } finally {
      await headers.close()
    }
    // What is known of the chain is kept, beside what is known of names.
    await rm(join(XDG_CACHE_HOME, 'minetree', 'segments'), { recursive: true })
    expect((await run(['resolve', 'abc', '--require-proofs', '--url', url], env)).code).toBe(0)
    expect(await run(['resolve', 'abc', '--no-cache', '--url', url], env)).toEqual(
      refusedWith(line1('no block header'), 5),
    )
  })

  test('believes a server on this machine which tree it follows, where none is set, and remembers nothing', async () => {
    const XDG_CONFIG_HOME = await servers.folder()
    const { code, stdout, stderr } = await run(['resolve', 'abc', '--json', '--url', url], {
      XDG_CONFIG_HOME,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ ...shown, genesis, genesisFrom: 'servers' })
    expect(await readdir(XDG_CONFIG_HOME)).toEqual([])
  })

  test('takes no genesis from servers that differ, follow none, or follow the live network', async () => {
    const other = await servers.start(treeOf(new FakeChain({ codeSize: 65 }).deployment))
    const none = await servers.start()
    const live = await servers.start({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
    const asking = async (...urls: string[]) => await run(['resolve', 'abc', '--url', ...urls], {})
    expect(await asking(server.url, other.url)).toEqual(refusedWith(line1('different trees'), 2))
    expect(await asking(none.url)).toEqual(refusedWith(line1('follows no tree'), 3))
    expect(await asking(live.url)).toEqual(refusedWith(line1('PROFILE is local, and'), 2))
    const stranger = await startIndex({ '/deployment.json': { body: 'nothing' } })
    expect(await asking(stranger.url)).toEqual(refusedWith(line1('is not a minetree server'), 3))
  })

  test('takes the tree from those servers that name one, whatever the others do', async () => {
    const none = await servers.start()
    const live = await servers.start({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
    const nobody = 'http://127.0.0.1:2'
    const args = ['resolve', 'abc', '--json', '--url', nobody, none.url, live.url, url]
    const { code, stdout, stderr } = await run(args, {})
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ...shown, genesis, genesisFrom: 'servers' })
    const why = [nobody, none.url, live.url].map(
      (each) => `minetree: ignoring ${each} \\((?:failed|denies)\\): .*\n`,
    )
    expect(stderr).toMatch(new RegExp(`^${why.join('')}$`))
    expect(stderr).toContain(`PROFILE is local, and ${live.url} follows`)
  })

  test('asks several indexes, and says which it set aside', async () => {
    const stale = await index({
      '/svc/names/abc': { body: nameRecord(at(first, 0)) },
      [`/svc/gateway/provenance/${shown.origin}`]: {
        body: outpointBeef(at(first, 0), recordsOf([mints.abc, first])),
      },
    })
    const { code, stdout, stderr } = await run(['resolve', 'abc', '--url', stale, url])
    expect(code).toBe(0)
    expect(stdout).toContain(`tip     ${shown.tip}\n`)
    expect(stderr).toEqual(line1(`ignoring ${stale} \\(stale\\)`))
  })
})

describe('verify', () => {
  test('says each step that held', async () => {
    expect(await run(['verify', 'abc', '--url', url])).toEqual({
      code: 0,
      signal: null,
      stdout: [
        `genesis  ${genesis}, from the settings`,
        'line     5 mints from it, each follows the rules of the tree',
        `origin   ${shown.origin} is the name abc`,
        `tip      ${shown.tip}, 2 steps from there along the ordinal`,
        'blocks   not checked: CHAIN_TRACKER is scripts-only, so no block headers were checked',
        `unspent  according to ${url}`,
        '',
      ].join('\n'),
      stderr: '',
    })
  })

  test('says in one line why a name does not hold', async () => {
    const cut = await index({ '/svc/names/proof/abc': { body: proofOf(line.slice(1)) } })
    expect(await run(['verify', 'abc', '--url', cut])).toEqual(refusedWith(line1('genesis')))
    const otherGenesis = `${'ab'.repeat(32)}_0`
    expect(await run(['verify', 'abc', '--genesis', otherGenesis, '--url', url])).toEqual(
      refusedWith(line1(`GENESIS is ${otherGenesis}, and ${url} follows ${genesis}`), 2),
    )
    expect(await run(['verify', 'abc', '--require-proofs', '--url', url])).toEqual(
      refusedWith(line1('in no block')),
    )
    expect(await run(['verify', 'nobody', '--url', url])).toEqual(refusedWith(line1('not claimed'), 3))
  })

  test('refuses a tip that is spent, or of which nobody says', async () => {
    const spent = await index({ '/svc/names/abc': { body: nameRecord(tip, true) } })
    expect(await run(['verify', 'abc', '--url', spent])).toEqual(refusedWith(line1('was burnt or has moved')))
    expect(await run(['verify', 'abc', '--url', spent, url])).toEqual(
      refusedWith(line1('disagree on whether')),
    )
    const moved = await index({ '/svc/names/abc': { body: nameRecord(at(first, 0)) } })
    expect(await run(['verify', 'abc', '--url', moved])).toEqual(refusedWith(line1('no index says')))
  })
})

test('a lock that is no P2PKH is not called an address', async () => {
  const open = chain.move(mints.b, 2, Uint8Array.of(0x51))
  await server.submit(beefOf(open, { with: [mints.b] }), ['tm_ordinals'])
  const { stdout } = await run(['resolve', 'b', '--url', url])
  expect(stdout).toContain(`tip     ${open.outpoint(0)}\nowner   no address: the lock is not P2PKH\n`)
})

/** What an index says of the name, and of where it is. */
function nameRecord(now: { txid: string; vout: number }, spent = false) {
  return { name: 'abc', origin: shown.origin, tip: { outpoint: formatOutpoint(now), spent } }
}
