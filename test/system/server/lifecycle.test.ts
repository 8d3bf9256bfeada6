import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Ended, useBuiltCli } from '../../support/cli/built-cli.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import {
  ask,
  type Environment,
  posted,
  submission,
  treeOf,
  useServers,
} from '../../support/server/test-server.js'
import { storedRows } from '../../support/storage/fact-rows.js'

// The command as it is installed, as a process of its own.

const cli = useBuiltCli()
const servers = useServers()

/** Of a server that nothing fills: what fills one is tested in test/cli. */
async function settings(more: Environment = {}): Promise<Environment> {
  return { PORT: '0', DATA_DIR: await servers.folder(), SEED: 'none', ...more }
}

/** One line on stderr that says why, and no success. All but one of the commands are called in this process, which is faster. */
function expectOneLine({ code, stdout, stderr }: Ended, line: RegExp, exit: number): void {
  expect(stderr).toMatch(/^minetree: [^\n]+\n$/)
  expect(stderr).toMatch(line)
  expect(stdout).not.toContain('listening')
  expect(code).toBe(exit)
}

describe('a server', () => {
  test.each([
    ['SIGTERM', { HOST: '127.0.0.1' }, 'stopped'],
    ['SIGINT', { PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' }, 'merkle proofs are not checked'],
  ] as const)('answers on its own host until %s, and ends with 0: %j', async (signal, env, says) => {
    const running = cli.start(['serve'], await settings(env))
    const url = await running.url
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    for (const path of ['/health/live', '/health/ready']) {
      const { status, headers, json } = await ask(url, path)
      expect({ status, json }).toEqual({ status: 200, json: { status: 'ok' } })
      expect(headers['cache-control']).toBe('no-store')
    }
    running.child.kill(signal)
    const { code, stdout, stderr } = await running.ended
    expect(code).toBe(0)
    expect(stderr).toBe('')
    expect(stdout).toContain('stopped')
    expect(stdout).toContain(says)
    await expect(ask(url, '/health/live')).rejects.toThrow('ECONNREFUSED')
  })

  test('finishes what is under way when it is asked to stop, and keeps it', async () => {
    const chain = new FakeChain()
    const env = await settings(treeOf(chain.deployment))
    const running = cli.start(['serve'], env)
    const url = await running.url
    const beef = beefOf(chain.genesis)
    const { headers } = submission(beef)
    const { hostname, port } = new URL(url)
    const asked = request({
      hostname,
      port,
      path: '/submit',
      method: 'POST',
      agent: false,
      headers: { ...headers, 'Content-Length': String(beef.length), Expect: '100-continue' },
    })
    asked.flushHeaders()
    // The server has taken the request once it says so; only then is it under way.
    await once(asked, 'continue')
    asked.write(beef.subarray(0, 10))
    running.child.kill('SIGTERM')
    await expectSaid(running.child.stdout, 'stopping')
    asked.end(beef.subarray(10))
    const [response] = await once(asked, 'response')
    expect(response.statusCode).toBe(200)
    response.resume()
    expect((await running.ended).code).toBe(0)
    expect(storedRows(env.DATA_DIR ?? '').nodes).toHaveLength(1)
  })

  test('says what it waits for before it listens, and ends then, too', async () => {
    const place = 'mongodb://127.0.0.1:2/graph'
    const running = cli.start(
      ['serve'],
      await settings({ MONGO_URL: `${place}?serverSelectionTimeoutMS=600000` }),
    )
    await expectSaid(running.child.stdout, `"database":"${place}"`)
    running.child.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
  })
})

async function expectSaid(stdout: NodeJS.ReadableStream | null, words: string): Promise<void> {
  if (stdout === null) throw new Error('no stdout')
  let said = ''
  while (!said.includes(words)) said += String((await once(stdout, 'data'))[0])
}

describe('a server that cannot start says why in one line', () => {
  test('a port in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    try {
      const end = await cli.run(['serve'], await settings({ PORT: String(port) }))
      expectOneLine(end, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}.*EADDRINUSE`), 5)
    } finally {
      taken.close()
    }
  })

  test('a DATA_DIR that is a file', async () => {
    const file = join(await servers.folder(), 'file')
    await writeFile(file, 'a file')
    expectOneLine(
      await cli.call(['serve'], await settings({ DATA_DIR: file })),
      /cannot open the store in .*file/,
      5,
    )
  })

  test('a store that is garbage', async () => {
    const env = await settings()
    await writeFile(join(env.DATA_DIR ?? '', 'log.db'), 'garbage '.repeat(2000))
    expectOneLine(await cli.call(['serve'], env), /the store in .* is damaged, [^\n]+: minetree check/, 5)
  })

  test('a store of an earlier kind', async () => {
    const env = await settings()
    await writeFile(join(env.DATA_DIR ?? '', 'minetree.sqlite'), '')
    expectOneLine(
      await cli.call(['serve'], env),
      /cannot open the store in .*an earlier kind.*choose another DATA_DIR, and import or follow again/,
      5,
    )
  })

  test('a DATA_DIR with the tree of another genesis', async () => {
    const chain = new FakeChain()
    const env = await settings(treeOf(chain.deployment))
    const first = cli.start(['serve'], env)
    await first.url
    first.child.kill('SIGTERM')
    expect((await first.ended).code).toBe(0)
    const other = new FakeChain({ codeSize: 32 })
    for (const another of [
      treeOf(other.deployment),
      { PROFILE: 'mainnet', GENESIS: '', COVENANT_VERSION: '' },
    ]) {
      const end = await cli.call(['serve'], { ...env, ...another })
      expectOneLine(end, new RegExp(`GENESIS.*${chain.genesis.txid}_0`), 2)
    }
    const again = cli.start(['serve'], env)
    await again.url
  })

  test('a DATA_DIR that another server has', async () => {
    const env = await settings()
    const first = cli.start(['serve'], env)
    const url = await first.url
    expectOneLine(
      await cli.call(['serve'], env),
      /cannot open the store in .*another minetree process has it open/,
      5,
    )
    const file = join(await servers.folder(), 'genesis.beef')
    await writeFile(file, beefOf(new FakeChain().genesis))
    expectOneLine(await cli.call(['import', file], env), /another minetree process has it open/, 5)
    expect((await ask(url, '/health/ready')).status).toBe(200)
    // However the first one ends, the next one starts.
    first.child.kill('SIGKILL')
    await first.ended
    const next = cli.start(['serve'], env)
    expect((await ask(await next.url, '/health/ready')).status).toBe(200)
  })

  test.each([
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PROFILE', 'testnet'],
    ['GENESIS', 'abc_0'],
    ['CHAIN_TRACKER', 'none'],
    ['CHAIN_TRACKER', 'ftp://127.0.0.1'],
    ['DIFFICULTY', '0'],
    ['MAX_BODY_BYTES', '72M'],
    ['LOG_LEVEL', 'loud'],
    ['KNEX_URL', 'mysql://127.0.0.1'],
  ])('%s=%s', async (name, value) => {
    expectOneLine(
      await cli.call(['serve'], await settings({ [name]: value })),
      new RegExp(`^minetree: ${name}: `),
      2,
    )
  })
})

test('what a killed server acknowledged is there, and sending all again makes it whole', async () => {
  const chain = new FakeChain()
  const mints = 'abcdefgh'.split('').map((_, at) => chain.mint('abcdefgh'.slice(0, at + 1)))
  const notes = Array.from({ length: 12 }, (_, at) =>
    // More than one chunk of the store each.
    chain.inscribe({ contentType: 'text/plain', body: utf8(`${at} `.repeat(150_000)) }),
  )
  const all: [FakeTransaction, string[]][] = [
    [chain.genesis, ['tm_names']],
    ...notes.flatMap((note, at): [FakeTransaction, string[]][] => {
      const mint = mints[at]
      return mint === undefined
        ? [[note, ['tm_ordinals']]]
        : [
            [mint, ['tm_names']],
            [note, ['tm_ordinals']],
          ]
    }),
  ]
  const env = await settings(treeOf(chain.deployment))
  const send = async (url: string): Promise<void> => {
    for (const [transaction, topics] of all) {
      expect((await ask(url, '/submit', submission(beefOf(transaction), topics))).status).toBe(200)
    }
  }

  const acknowledged: FakeTransaction[] = []
  for (const killAfter of [3, 9]) {
    const running = cli.start(['serve'], env)
    const url = await running.url
    // All at once, so that the kill falls into the middle of some.
    const sent = all.map(async ([transaction, topics]) => {
      const { json } = await ask(url, '/submit', submission(beefOf(transaction), topics))
      const outputs = Object.values(json as Record<string, { outputsToAdmit: number[] }>)
      if (outputs.some(({ outputsToAdmit }) => outputsToAdmit.length > 0)) acknowledged.push(transaction)
      if (acknowledged.length >= killAfter) running.child.kill('SIGKILL')
    })
    await Promise.allSettled(sent)
    expect((await running.ended).signal).toBe('SIGKILL')
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(9)

  const again = cli.start(['serve'], env)
  const url = await again.url
  for (const transaction of acknowledged.filter((each) => notes.includes(each))) {
    expect((await ask(url, `/content/${transaction.outpoint(0)}`)).status).toBe(200)
  }
  await send(url)
  const fresh = await servers.start(treeOf(chain.deployment))
  await send(fresh.url)
  const origins = posted(mints.map((mint) => mint.outpoint(2)))
  expect((await ask(url, '/svc/names/origins', origins)).json).toEqual(
    Object.fromEntries(mints.map((mint) => [mint.outpoint(2), true])),
  )
  again.child.kill('SIGTERM')
  expect((await again.ended).code).toBe(0)
  expect(storedRows(env.DATA_DIR ?? '')).toEqual(storedRows(fresh.dataDir))
})
