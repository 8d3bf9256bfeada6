import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { PrivateKey } from '@bsv/sdk'
import { NOBODY_LOCK } from '../../../src/payments/fake.js'
import { p2pkhLockOf } from '../../../src/payments/key.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { type Files, writeFiles } from '../../support/cli/commands.js'
import { startIndex } from '../../support/client/name-index.js'
import { arcServer } from '../../support/mining/miners-services.js'
import { paymentsIn, statesIn } from '../../support/payments/journals.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { serving } from '../../support/server/connections.js'
import { type Answer, ask, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

const cli = useBuiltCli()
const servers = useServers()
const key = new PrivateKey(71)

/** A server with a name of nobody, and one of the key; a folder; and what publishes, with fake money or that of the key. */
async function scene(files: Files = { 'index.html': '<h1>first</h1>', 'style/main.css': 'h1 {}' }) {
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
  const site = await writeFiles(await servers.folder(), files)
  const { port } = new URL(server.url)
  const host = (name: string): string => `${name}.localhost:${port}`
  /** What the host of a name shows. */
  const shown = async (name: string, path = '/index.html'): Promise<string> => {
    const { status, body } = await server.ask(path, { headers: { Host: host(name) } })
    return status === 200 ? body.toString() : String(status)
  }
  const run = async (name: string, ...args: string[]) => {
    const ended = await cli.call(['publish', '--name', name, '--url', server.url, ...args], env)
    return { ...ended, json: () => JSON.parse(ended.stdout) as Record<string, unknown> }
  }
  return { server, data, env, site, shown, run, url: (name: string) => `http://${host(name)}/` }
}

/** The options of a command that the key pays, through an ARC of the test. */
async function payingKey(data: string, url: string, satoshis: number): Promise<string[]> {
  const [keyFile, coins] = [join(data, 'key.wif'), join(data, 'coins.beef')]
  await writeFile(keyFile, key.toWif())
  await writeFile(coins, Uint8Array.from(coinsFor(key, satoshis).toBEEF()))
  return ['--key-file', keyFile, '--coins', coins, '--arc', url, '--yes']
}

test('a folder is published on a name where money is fake, and then what has changed', async () => {
  const { server, env, site, shown, run, url } = await scene()
  const first = await run('a', site)
  expect(first).toMatchObject({ code: 0, stdout: `${url('a')}\n` })
  expect(first.stderr).toMatch(/publishing on a: 2 new; in 1 transaction of \d+ bytes, the money is fake\n/)
  expect(first.stderr).toContain(
    `this is state 1 of a; to publish the next: minetree publish ${site} --name a --url `,
  )
  expect(await shown('a')).toBe('<h1>first</h1>')
  expect(await shown('a', '/style/main.css')).toBe('h1 {}')

  await writeFile(join(site, 'index.html'), '<h1>second</h1>')
  await writeFile(join(site, 'more.txt'), 'more')
  const dry = await run('a', site, '--dry-run')
  expect(dry.code).toBe(0)
  const watched = await startIndex({}, server.url)
  const again = await cli.call(['publish', site, '--name', 'a', '--dry-run', '--url', watched.url], env)
  expect(again.stdout).toBe(dry.stdout)
  expect(watched.asked.filter((path) => path.includes('/provenance/'))).toHaveLength(1)
  expect(dry.stdout).toMatch(
    /^changed \.\/ \(\d+ B\)\nchanged index\.html \(15 B\)\nnew {5}more\.txt \(4 B\)\nkept {4}style\/main\.css \(5 B\)\npublishing on a: 1 new, 1 changed, 1 kept; in 1 transaction of \d+ bytes, the money is fake\n$/,
  )
  expect(await shown('a')).toBe('<h1>first</h1>')
  const second = await run('a', site, '--format', 'dir', '--json')
  expect(second.json()).toMatchObject({
    ...{ name: 'a', isUnchanged: false, new: 1, changed: 1, kept: 1, removed: 0, sequence: 2, url: url('a') },
  })
  expect(second.stderr).toContain('to go back to state 1: minetree publish --name a --to 1 --url ')
  expect(await shown('a')).toBe('<h1>second</h1>')
  expect(await shown('a', '/style/main.css')).toBe('h1 {}')

  for (const args of [[site], [site, '--dry-run']]) {
    const again = await run('a', ...args)
    expect(again.code).toBe(0)
    expect(again.stdout + again.stderr).toContain('nothing changed: a shows this already')
  }
  expect((await run('a', '--to', '2', '--json')).json()).toMatchObject({ isUnchanged: true })

  const back = await run('a', '--to', '1', '--json')
  expect(back.json()).toMatchObject({ isUnchanged: false, sequence: 3, url: url('a') })
  // Half of so short a directory is about what a patch has: which is shorter depends on the txids.
  expect(back.stderr).toMatch(/putting state 1 of a back(?:, 1 as a patch)?; in 1 transaction of /)
  expect([await shown('a'), await shown('a', '/style/main.css')]).toEqual(['<h1>first</h1>', 'h1 {}'])
  // The file that it had not, falls back to the index as any other path.
  expect(await shown('a', '/more.txt')).toBe('<h1>first</h1>')
})

test('mistakes are reported before anything is asked or paid', async () => {
  const { site, run, server } = await scene()
  expect(await run('a', site, '--stream')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no stream'),
  })
  expect(await run('zz', site)).toMatchObject({ code: 3 })
  expect(await run('a')).toMatchObject({ code: 2, stderr: expect.stringContaining('say what to publish') })
  expect(await run('a', site, '--to', '1')).toMatchObject({ code: 2 })
  const missing = await run('a', '--to', '1')
  expect(missing).toMatchObject({ code: 3, stderr: expect.stringContaining('nothing has been published on') })
  for (const args of [
    [site, '--dry-run'],
    ['--to', '1'],
  ]) {
    const unnamed = await cli.call(['publish', ...args, '--url', server.url])
    expect(unnamed).toMatchObject({ code: 2, stderr: expect.stringContaining('need --name') })
  }
})

test('redirects that no gateway can read are said before anything is paid, and a folder without files is refused', async () => {
  const { site, run, server } = await scene({ 'index.html': 'x', _redirects: '/a /b\n/c javascript:0\n' })
  const said = /could not parse _redirects: line 2: .*: until you correct it, .* get an error\n/
  const dry = await run('a', site, '--dry-run')
  expect(dry).toMatchObject({ code: 0, stderr: expect.stringMatching(said) })
  const unnamed = await cli.call(['publish', site, '--url', server.url])
  expect(unnamed).toMatchObject({ code: 0, stderr: expect.stringMatching(said) })
  await writeFile(join(site, '_redirects'), '/a /b\n')
  expect((await run('a', site, '--dry-run')).stderr).not.toContain('_redirects')

  const empty = await writeFiles(await servers.folder(), {})
  for (const args of [[], ['--dry-run']])
    expect(await run('a', empty, ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no files'),
    })
})

test('changing one heading of a site of 360 kB costs about as much as the heading', async () => {
  const files: Files = {
    'index.html': '<h1>first</h1>',
    'blog/2026/post.html': `<h1>one</h1>${'x'.repeat(2000)}`,
  }
  for (let i = 0; i < 10; i++) files[`assets/picture-${i}.png`] = randomBytes(36_000)
  for (let i = 0; i < 20; i++) files[`blog/2025/post-${i}.html`] = `<p>${i}</p>`
  const { data, site, shown, run } = await scene(files)
  const arc = await arcServer()
  const paying = await payingKey(data, arc.url, 200_000)
  expect(await run('b', site, ...paying)).toMatchObject({ code: 0 })
  await writeFile(join(site, 'blog/2026/post.html'), `<h1>two</h1>${'x'.repeat(2000)}`)
  const dry = (await run('b', site, '--dry-run', '--json')).json()
  const updated = await run('b', site, ...paying, '--json')
  expect(updated).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('1 changed, 31 kept, 1 as a patch;'),
  })
  const sizes = (): number[] => paymentsIn(data).map(({ transaction }) => transaction.toBinary().length)
  const [before = 0, after = 0] = sizes()
  const [paidBefore, paidAfter] = paymentsIn(data).map(({ fee }) => fee)
  process.stdout.write(
    `first publish: ${before} bytes, ${paidBefore} satoshis of fees; after one heading: ${after} bytes, ${paidAfter} satoshis (${((100 * after) / before).toFixed(2)} %)\n`,
  )
  expect(before).toBeGreaterThan(360_000)
  // A patch on the page, and the directories above it: of the year with 1 entry, the blog with 2, the site with 3.
  expect(after).toBeLessThan(200 + 3 * 130 + 6 * 90 + 500)
  expect(dry.transactionBytes).toBeGreaterThanOrEqual(after - 10)
  expect(dry.transactionBytes).toBeLessThan(after + 100)
  expect(await shown('b', '/blog/2026/post.html')).toContain('<h1>two</h1>')
  expect(Buffer.from(await shown('b', '/assets/picture-7.png')).length).toBeGreaterThan(36_000)
  expect(await shown('b', '/blog/2025/post-3.html')).toBe('<p>3</p>')
  // What is removed costs the directory.
  await rm(join(site, 'assets/picture-3.png'))
  const removed = await run('b', site, ...paying, '--json')
  expect(removed.json()).toMatchObject({ new: 0, changed: 0, removed: 1, kept: 31 })
  expect(sizes().at(-1)).toBeLessThan(11 * 95 + 900)
})

test('what was signed before a crash is sent by the next command, which pays for the rest alone; an identity stays', async () => {
  const { server, data, env, site, shown, run } = await scene()
  const arc = await arcServer()
  const paying = await payingKey(data, arc.url, 20_000)
  expect(await cli.call(['bind', 'b', '--url', server.url, ...paying], env)).toMatchObject({ code: 0 })
  const crash = async (): Promise<void> => {
    const sent = new Set(arc.received.map((each) => each.id('hex')))
    // What was sent before is sent again first.
    arc.says = (each) => (sent.has(each.id('hex')) ? 'SEEN_ON_NETWORK' : 'no answer')
    const running = cli.start(['publish', site, '--name', 'b', '--url', server.url, ...paying], env)
    await until(() => arc.received.some((each) => !sent.has(each.id('hex'))))
    running.child.kill('SIGKILL')
    await running.ended
    arc.says = 'SEEN_ON_NETWORK'
  }
  await crash()
  expect(statesIn(data)).toEqual(['admitted', 'pending'])
  // A dry run sends nothing.
  expect(await run('b', site, '--dry-run')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('2 new;'),
  })
  expect(statesIn(data)).toEqual(['admitted', 'pending'])
  const again = await run('b', site, ...paying, '--json')
  expect(again).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('that an earlier command had signed'),
  })
  expect(again.json()).toMatchObject({ name: 'b', isUnchanged: true })
  expect(paymentsIn(data).map(({ kind, isAdmitted }) => [kind, isAdmitted])).toEqual([
    ['move', true],
    ['publish', true],
  ])
  expect(await shown('b')).toBe('<h1>first</h1>')

  await writeFile(join(site, 'index.html'), '<h1>second</h1>')
  await crash()
  await writeFile(join(site, 'style/main.css'), 'h2 {}')
  const both = await run('b', site, ...paying, '--json')
  expect(both.json()).toMatchObject({ new: 0, changed: 1, kept: 1, sequence: 4 })
  expect(statesIn(data)).toEqual(['admitted', 'admitted', 'admitted', 'admitted'])
  expect([await shown('b'), await shown('b', '/style/main.css')]).toEqual(['<h1>second</h1>', 'h2 {}'])
  const resolved = await cli.call(['resolve', 'b', '--url', server.url], env)
  expect(resolved.stdout).toContain(`key     ${key.toPublicKey().toString()} `)

  const back = await run('b', '--to', '2', ...paying)
  expect(back).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/about \d+ satoshis: a fee of \d+ /),
  })
  expect([await shown('b'), await shown('b', '/style/main.css')]).toEqual(['<h1>first</h1>', 'h1 {}'])
  await writeFile(join(site, 'index.html'), '<h1>third</h1>')
  const dear = await run('b', site, ...paying, '--max-fee', '1')
  expect(dear).toMatchObject({ code: 4, stderr: expect.stringContaining('at most 1 are allowed') })
  // Nothing was paid for twice: not a change, and not a file.
  const paid = paymentsIn(data).map(({ transaction }) =>
    Buffer.from(transaction.toBinary()).toString('latin1'),
  )
  expect(paid).toHaveLength(5)
  for (const body of ['<h1>first</h1>', '<h1>second</h1>', 'h1 {}', 'h2 {}'])
    expect([body, paid.filter((each) => each.includes(body)).length]).toEqual([body, 1])
})

test('a server that changes or leaves out what was inscribed makes nobody pay for a broken site', async () => {
  const { server, data, env, site, shown } = await scene()
  const arc = await arcServer()
  const kept = new Map<string, Answer>()
  let lie: 'none' | 'changes a file' | 'leaves the last state out' = 'none'
  const front = await serving(async (request, response) => {
    const body = await buffer(request)
    const { method = 'GET', url = '/' } = request
    const headers = passed(request.headers)
    const asked = `${method} ${url} ${body.toString('latin1')}`
    const isStale = lie === 'leaves the last state out' && !url.startsWith('/submit')
    const answer = (isStale && kept.get(asked)) || (await ask(server.url, url, { method, headers, body }))
    if (lie === 'none') kept.set(asked, answer)
    const [style, other] = ['h1 {}', 'h9 {}'].map((text) => Buffer.from(text))
    const at = lie === 'changes a file' && style ? answer.body.indexOf(style) : -1
    const sent = Buffer.from(answer.body)
    if (at >= 0) other?.copy(sent, at)
    response.writeHead(answer.status, { 'Content-Type': answer.headers['content-type'] ?? '' }).end(sent)
  })
  const paying = await payingKey(data, arc.url, 20_000)
  const publish = async () =>
    await cli.call(['publish', site, '--name', 'b', '--url', front.url, ...paying], env)
  expect(await publish()).toMatchObject({ code: 0 })
  // What is known of the first state is what the server shows of the name later.
  await writeFile(join(site, 'index.html'), '<h1>second</h1>')
  expect(
    await cli.call(['publish', site, '--name', 'b', '--url', front.url, '--dry-run'], env),
  ).toMatchObject({
    code: 0,
  })
  const direct = await cli.call(['publish', site, '--name', 'b', '--url', server.url, ...paying], env)
  expect(direct).toMatchObject({ code: 0 })
  await writeFile(join(site, 'index.html'), '<h1>third</h1>')
  for (const [each, code, why] of [
    ['changes a file', 1, /no index proved b: .+ is not the tip/],
    ['leaves the last state out', 5, /no payment for .+ but the server does not show /],
  ] as const) {
    lie = each
    expect(await publish()).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(why) })
    expect(paymentsIn(data)).toHaveLength(2)
  }
  lie = 'none'
  expect(await publish()).toMatchObject({ code: 0 })
  expect([await shown('b'), await shown('b', '/style/main.css')]).toEqual(['<h1>third</h1>', 'h1 {}'])
})

/** The headers of a request that say what it holds. */
function passed(headers: IncomingHttpHeaders): Record<string, string> {
  const names = ['content-type', 'x-topics', 'x-aggregation', 'accept']
  return Object.fromEntries(
    names.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : [])),
  )
}
