import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { expectError } from '../../support/gateway/expect-error.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { ask, type Environment, submission, treeOf, useServers } from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'
import { onOneSharedEngine } from '../../support/storage/databases.js'
import { startTcpProxy } from '../../support/storage/tcp-proxy.js'

// The command as it is installed, as processes of their own over one log.

const MiB = 1024 * 1024

onOneSharedEngine('processes on one', (databases) => {
  const cli = useBuiltCli()
  const servers = useServers()

  async function settings(chain: FakeChain): Promise<Environment> {
    return inFolder({ PORT: '0', ...treeOf(chain.deployment), ...(await databases.settings()) })
  }

  /** Each has one of its own. */
  async function inFolder(env: Environment): Promise<Environment> {
    return { ...env, DATA_DIR: await servers.folder() }
  }

  async function stopped({ child, ended }: Running): Promise<void> {
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 0, stderr: '' })
  }

  const inscribed = (chain: FakeChain, length: number): { note: FakeTransaction; body: Buffer } => {
    const body = Buffer.alloc(length, `${length} bytes of it `)
    return { note: chain.inscribe({ contentType: 'application/x-large', body }), body }
  }

  const submit = async (url: string, transaction: FakeTransaction, topics = ['tm_names']) =>
    await ask(url, '/submit', submission(beefOf(transaction), topics))

  test('a large transaction is admitted in a thread of one, and read from all', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const [one, two] = [cli.start(['serve'], env), cli.start(['serve'], await inFolder(env))]
    const [here, there] = await Promise.all([one.url, two.url])
    const { note, body } = inscribed(chain, 3 * MiB)
    const { json } = await submit(here, note, ['tm_ordinals'])
    expect(json).toMatchObject({ tm_ordinals: { outputsToAdmit: [0] } })
    const path = `/content/${note.outpoint(0)}`
    expect((await ask(here, path)).body.equals(body)).toBe(true)
    await eventually(async () => expect((await ask(there, path)).status).toBe(200))
    expect((await ask(there, path)).body.equals(body)).toBe(true)
    const headers = { Range: `bytes=${MiB - 5}-${MiB + 4}` }
    const part = await ask(there, path, { headers })
    expect({ status: part.status, body: part.body }).toEqual({
      status: 206,
      body: body.subarray(MiB - 5, MiB + 5),
    })
    // What was decided in the thread, is known here: it is known before.
    expect((await submit(there, note, ['tm_ordinals'])).json).toMatchObject({
      tm_ordinals: { outputsToAdmit: [0] },
    })
    await Promise.all([stopped(one), stopped(two)])
  })

  test('while the database is away, a large transaction is answered 503, and taken afterwards', async () => {
    const chain = new FakeChain()
    const proxy = await startTcpProxy(databases.port())
    const host = cli.start(['serve'], databases.through(await settings(chain), proxy.port))
    const url = await host.url
    const { note, body } = inscribed(chain, 2 * MiB)
    proxy.cut()
    expectError(await submit(url, note, ['tm_ordinals']), {
      status: 503,
      code: 'NOT_READY',
      overlay: true,
    })
    proxy.mend()
    await eventually(async () => expect((await submit(url, note, ['tm_ordinals'])).status).toBe(200))
    expect((await ask(url, `/content/${note.outpoint(0)}`)).body.equals(body)).toBe(true)
    await stopped(host)
    await proxy.stop()
  })

  test('what a killed one acknowledged is there, sending all again makes it whole, and one in another folder has it all', async () => {
    const chain = new FakeChain()
    const env = await settings(chain)
    const NAME = 'abcdef'
    const mints = chain.mintAll(NAME)
    const { note, body } = inscribed(chain, 2 * MiB)
    const all: [FakeTransaction, string[]][] = [
      ...[chain.genesis, ...mints].map((mint): [FakeTransaction, string[]] => [mint, ['tm_names']]),
      [note, ['tm_ordinals']],
    ]
    const killed = cli.start(['serve'], env)
    const url = await killed.url
    const acknowledged: FakeTransaction[] = []
    // One after the other, and the large one beside them, so that the kill falls into the middle of something.
    const sent = [all.slice(0, -1), all.slice(-1)].map(async (some) => {
      for (const [transaction, topics] of some) {
        if ((await submit(url, transaction, topics)).status === 200) acknowledged.push(transaction)
        if (acknowledged.length === 4) killed.child.kill('SIGKILL')
      }
    })
    await Promise.allSettled(sent)
    expect((await killed.ended).signal).toBe('SIGKILL')
    expect(acknowledged.length).toBeGreaterThanOrEqual(4)

    const again = cli.start(['serve'], env)
    const back = await again.url
    const names = mints.map((mint, at) => ({ name: NAME.slice(0, at + 1), outpoint: mint.outpoint(2) }))
    const served = async (): Promise<unknown> => (await ask(back, '/svc/names?prefix=')).json
    for (const [at, mint] of mints.entries()) {
      if (!acknowledged.includes(mint)) continue
      expect((await ask(back, `/svc/names/origin/${NAME.slice(0, at + 1)}`)).json).toEqual(names[at])
    }
    for (const [transaction, topics] of all)
      expect((await submit(back, transaction, topics)).status).toBe(200)
    expect(await served()).toMatchObject({ names })
    expect((await ask(back, `/content/${note.outpoint(0)}`)).body.equals(body)).toBe(true)

    const other = cli.start(['serve'], await inFolder(env))
    const elsewhere = await other.url
    await eventually(async () =>
      expect((await ask(elsewhere, '/svc/names?prefix=')).json).toMatchObject({ names }),
    )
    expect((await ask(elsewhere, `/content/${note.outpoint(0)}`)).body.equals(body)).toBe(true)
    await stopped(other)
    await stopped(again)
  })
})
