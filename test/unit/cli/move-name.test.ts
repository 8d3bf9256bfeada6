import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { PrivateKey, ProtoWallet } from '@bsv/sdk'
import { type Deed, type MoveOptions, runMove } from '../../../src/cli/move-name.js'
import { runResolve } from '../../../src/cli/name-commands.js'
import { CommandOutput } from '../../../src/cli/output.js'
import { type PublishOnNameOptions, runPublishOnName } from '../../../src/cli/publish-on-name.js'
import { NOBODY_LOCK } from '../../../src/payments/fake.js'
import { p2pkhLockOf } from '../../../src/payments/key.js'
import { walletLock } from '../../../src/payments/wallet-keys.js'
import { walletServer } from '../../support/mining/miners-services.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { paymentsIn, statesIn } from '../../support/payments/journals.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// `bind`, `unbind`, `transfer` and `resolve`, called in this process, on a local network.

const servers = useServers()
const [alice, bob] = [new PrivateKey(2001), new PrivateKey(2002)]
const keyOf = (key: PrivateKey): string => key.toPublicKey().toString()
const chain = new FakeChain()
let server: TestServer
let folder: string
let env: Record<string, string>

beforeAll(async () => {
  server = await servers.start(treeOf(chain.deployment))
  folder = await servers.folder()
  env = { ...treeOf(chain.deployment), XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
  await server.submit(beefOf(chain.genesis))
  for (const [name, ownerLock] of [
    ['o', NOBODY_LOCK],
    ['0', p2pkhLockOf(alice.toPublicKey())],
  ] as const)
    await server.submit(beefOf(chain.mint(name, { ownerLock })), ['tm_names', 'tm_ordinals'])
  for (const key of [alice, bob]) await writeFile(fileOf(key), key.toWif())
})

const fileOf = (key: PrivateKey): string => join(folder, `${key === alice ? 'alice' : 'bob'}.wif`)

/** What a command prints, and what it remarks. */
async function printed(command: (output: CommandOutput) => Promise<void>) {
  const streams = [new PassThrough(), new PassThrough()] as const
  const [stdout, stderr] = streams
  await command(new CommandOutput({ stdout, stderr, json: false, env: {} }))
  const [out, err] = streams.map((stream) => String(stream.read(stream.readableLength) ?? ''))
  return { out: out ?? '', err: err ?? '' }
}

type Command = Deed | ((options: MoveOptions) => Promise<void>)

const move = async (name: string, command: Command, more: Partial<MoveOptions> = {}) =>
  await printed((output) => {
    const options: MoveOptions = {
      ...{ name, url: server.url, coins: [], maxFee: 1000, yes: true },
      ...{ ask: undefined, env, output, signal: new AbortController().signal },
      ...more,
    }
    return typeof command === 'function' ? command(options) : runMove(options, command)
  })
const resolve = async (name: string, accept = false) =>
  await printed((output) =>
    runResolve(
      { name, urls: [server.url], requireProofs: false, env, output, signal: new AbortController().signal },
      { accept },
    ),
  )

const bind: Deed = {
  kind: 'bind',
  terms: { profile: { name: 'Al\u001b', domain: 'a.example' } },
  printLock: false,
}

test('a name is bound, transferred into the lock of its new holder, and unbound; resolve says so', async () => {
  expect((await resolve('o')).out).toContain('key     none: the name is bound to no identity\n')
  await move('o', bind, { keyFile: fileOf(alice) })
  const bound = await resolve('o')
  expect(bound.out).toContain(`key     ${keyOf(alice)} (layout key-value, protocol onesat)\n`)
  expect(bound.out).toContain('says    "Al\\u001b" at "a.example", unverified\n')
  expect(bound.out).toMatch(/fresh {3}until \d{4}-\S+Z, by 1 of 1 indexes\n/)
  expect(bound).toMatchObject({ out: expect.not.stringContaining('before'), err: '' })

  // Anybody can make a lock; only the holder can use it.
  const lock = (await move('o', { ...bind, terms: {}, printLock: true }, { keyFile: fileOf(bob) })).out.trim()
  const transfer: Deed = { kind: 'transfer', lock }
  await expect(move('o', transfer, { keyFile: fileOf(bob) })).rejects.toMatchObject({ code: 'NOT_YOURS' })
  await expect(move('o', transfer)).rejects.toMatchObject({ code: 'NOT_YOURS' })
  await move('o', transfer, { keyFile: fileOf(alice) })
  for (const _ of ['once', 'as long as nobody accepts it']) {
    const changed = await resolve('o')
    expect(changed.out).toContain(`key     ${keyOf(bob)} `)
    expect(changed.out).toContain(`before  ${keyOf(alice)}\n`)
    expect(changed.err).toContain(`the identity key of o has changed from ${keyOf(alice)}`)
  }
  expect((await resolve('o', true)).err).toBe('')
  expect(await resolve('o')).toMatchObject({ out: expect.not.stringContaining('before'), err: '' })
  // Known, so one that looks like it is pointed out.
  expect((await resolve('0')).out).toContain('alike   o\n')

  await move('o', { kind: 'unbind' }, { keyFile: fileOf(bob) })
  expect((await resolve('o')).err).toContain(': send nothing of value until you know why')
  const again = move('o', { kind: 'unbind' }, { keyFile: fileOf(bob) })
  await expect(again).rejects.toMatchObject({ code: 'REFUSED' })
})

test('a key pays with its coins, and each transaction is kept with its change', async () => {
  const lockingScript = p2pkhLockOf(alice.toPublicKey())
  const coins = chain.spend({ inputs: [], outputs: [{ satoshis: 3000, lockingScript }] })
  const file = join(folder, 'coins.beef')
  await writeFile(file, beefOf(coins))
  const paying = { keyFile: fileOf(alice), coins: [file] }
  await expect(move('0', bind, { ...paying, yes: false })).rejects.toMatchObject({ code: 'USAGE' })
  await expect(move('0', bind, { ...paying, maxFee: 1 })).rejects.toMatchObject({ code: 'OVER_BUDGET' })
  expect((await move('0', bind, paying)).err).toMatch(/paid \d+ satoshis of fees/)
  // The coin is spent; its change pays for the way to an address.
  const address = bob.toAddress()
  const moved = await move('0', { kind: 'transfer', address }, paying)
  expect(moved.err).toContain('leaves 0 bound to no identity')
  expect((await resolve('0')).out).toContain(`owner   ${address}\n`)
})

describe('with a wallet', () => {
  /** A wallet that holds a name, and what moves that. */
  async function holding(name: string) {
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 500_000))
    const ownerLock = await walletLock(new ProtoWallet(wallet.key), name)
    await server.submit(beefOf(chain.mint(name, { ownerLock })), ['tm_names', 'tm_ordinals'])
    const { url } = await walletServer(wallet)
    const data = join(folder, `data-${name}`)
    const moveIt = async (deed: Command, more: Partial<MoveOptions> = {}) =>
      await move(name, deed, {
        ...{ wallet: url, maxFee: 2000, env: { ...env, XDG_DATA_HOME: data } },
        ...more,
      })
    return { wallet, moveIt, data }
  }

  test('each key is asked for once, and its user reads what is sent', async () => {
    const { wallet, moveIt, data } = await holding('w')
    await moveIt(bind)
    expect(wallet.keysAsked).toEqual(['identity', expect.stringMatching(/^opns:/), 'w'])
    const read = wallet.actions.map(({ description }) => description)
    expect(read).toEqual(['Move the name w', 'Send the name w'])
    const [txid] = wallet.sent.map((sent) => sent.id('hex'))
    expect(paymentsIn(data)).toMatchObject([{ txid, kind: 'move', subject: 'w', isAdmitted: true }])
    expect((await resolve('w')).out).toContain(`key     ${keyOf(wallet.key)} `)
  })

  test('its reason is shown, without what it was asked', async () => {
    const { moveIt } = await holding('x')
    const positional: Deed = { ...bind, terms: { layout: 'positional' } }
    await expect(moveIt(positional)).rejects.toMatchObject({
      code: 'BAD_WALLET',
      message: 'the wallet failed: Unsupported P-module scheme: p 1sat',
    })
    await moveIt({ ...positional, terms: { layout: 'positional', protocol: 'onesat' } })
    expect((await resolve('x')).out).toContain('(layout positional, protocol onesat)\n')
  })

  test('what is too long for its answers is refused before it is asked to draft it', async () => {
    const { wallet, moveIt } = await holding('v')
    const path = join(folder, 'long.bin')
    await writeFile(path, new Uint8Array(2 * 1024 * 1024))
    const publish = async (options: MoveOptions) =>
      await runPublishOnName({ ...options, path, format: 'json', dryRun: false, patches: true })
    await expect(moveIt(publish)).rejects.toMatchObject({ code: 'USAGE' })
    expect(wallet.actions).toEqual([])
    // With what it spends.
    await writeFile(path, new Uint8Array(2 * 1024 * 1024 - 20_000))
    await moveIt(publish, { maxFee: 300_000 })
    expect(wallet.sent).toHaveLength(1)
  })

  test.each([
    ['drafts', 'u', 'draft'],
    ['signs', 'y', 'sign'],
  ] as const)('it gets the name back if the command is stopped while it %s', async (_, name, step) => {
    const { wallet, moveIt, data } = await holding(name)
    const stop = new AbortController()
    wallet.faults[step] = () => stop.abort(new Error('stopped'))
    await expect(moveIt(bind, { signal: stop.signal })).rejects.toThrow('stopped')
    expect({ aborted: wallet.aborted, stored: statesIn(data) }).toEqual({ aborted: ['0000'], stored: [] })
    wallet.faults = {}
    await moveIt(bind)
    expect(wallet.sent).toHaveLength(1)
  })

  test('what it signed and did not send is sent by the next command, which does nothing else', async () => {
    const { wallet, moveIt, data } = await holding('z')
    wallet.faults.send = () => {
      throw new Error('User rejected the request')
    }
    for (const _ of ['first', 'again'])
      await expect(moveIt(bind)).rejects.toMatchObject({
        code: 'UNDECIDED',
        message: expect.stringMatching(/the wallet failed: User rejected the request.*; it is stored/),
      })
    const [pending] = paymentsIn(data)
    wallet.faults = {}
    const { out, err } = await moveIt({ kind: 'transfer', address: bob.toAddress() })
    expect(out.trim()).toBe(`z ${pending?.txid}_0`)
    expect(err).toContain('nothing else was done')
    expect((await resolve('z')).out).toContain(`key     ${keyOf(wallet.key)} `)
    expect(wallet.actions.filter(({ outputs }) => outputs !== undefined)).toHaveLength(1)
    // What the network rejects for good ends, and a new one is made.
    wallet.faults.result = 'failed'
    await expect(moveIt({ kind: 'unbind' })).rejects.toMatchObject({ code: 'REFUSED' })
    wallet.faults = {}
    await moveIt({ kind: 'unbind' })
    expect(wallet.sent).toHaveLength(2)
    expect(statesIn(data)).toEqual(['admitted', 'lost', 'admitted'])
  })
})

test('what a server does not accept is not paid for, and is no patch where it accepts none', async () => {
  const types = 'application/op-ns,application/name-claim,ord-fs/json,gw-fs/json,text/html'
  const own = new FakeChain()
  const mints = [own.genesis, own.mint('c', { ownerLock: NOBODY_LOCK })]
  const started = async (settings: Record<string, string>): Promise<TestServer> => {
    const other = await servers.start({ ...treeOf(own.deployment), ...settings })
    for (const each of mints) await other.submit(beefOf(each), ['tm_names', 'tm_ordinals'])
    return other
  }
  const strict = await started({ CONTENT_TYPES: types })
  expect((await strict.ask('/deployment.json')).json).toMatchObject({ contentTypes: types.split(',') })
  const path = join(folder, 'site')
  await mkdir(path)
  const publish = async ({ url }: TestServer, more: Partial<PublishOnNameOptions> = {}) => {
    const site = { path, format: 'json' as const, dryRun: false, patches: true, ...more }
    return await move('c', (options) => runPublishOnName({ ...options, ...site }), {
      url,
      env: { ...env, ...treeOf(own.deployment) },
    })
  }
  const page = (heading: string): string => `<h1>${heading}</h1>${'a long page '.repeat(50)}`
  await writeFile(join(path, 'index.html'), page('one'))
  await publish(strict)
  await writeFile(join(path, 'index.html'), page('two'))
  expect((await publish(strict)).err).not.toContain('patch')
  await writeFile(join(path, 'note.txt'), 'a note')
  await expect(publish(strict)).rejects.toMatchObject({
    code: 'REFUSED',
    message: `nothing is paid: ${strict.url} accepts no content of type text/plain; charset=utf-8`,
  })
  // Where they are accepted, there are patches, unless they are not wanted.
  const open = await started({})
  await publish(open)
  await writeFile(join(path, 'index.html'), page('three'))
  for (const patches of [true, false])
    expect((await publish(open, { patches, dryRun: true })).out.includes('as a patch of')).toBe(patches)
})

test('mistakes are reported before anything is asked', async () => {
  const mistakes: [Command, code?: string, more?: Partial<MoveOptions>][] = [
    [{ kind: 'transfer' }],
    [{ kind: 'transfer', address: 'x', lock: '00' }],
    [{ kind: 'transfer', lock: 'xy' }],
    [{ kind: 'transfer', lock: '00' }, 'BAD_LOCK'],
    [bind],
    [bind, 'USAGE', { keyFile: fileOf(bob), wallet: 'http://x' }],
  ]
  for (const [deed, code = 'USAGE', more] of mistakes)
    await expect(move('o', deed, more)).rejects.toMatchObject({ code })
})
