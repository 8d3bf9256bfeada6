import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { expectError } from '../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
} from '../../support/protocol/fake-chain.js'
import {
  type Answer,
  ask,
  type Environment,
  posted,
  type Question,
  submission,
  treeOf,
  useServers,
} from '../../support/server/test-server.js'
import { eventually, until } from '../../support/server/waiting.js'

// The command as it is installed, with two processes that answer readers.

const MiB = 1024 * 1024
const TOKEN = 'the-token-of-the-operator'
/** Requests on connections of their own: so many reach every reader, several at a time. */
const MANY = 100

const cli = useBuiltCli()
const servers = useServers()
const chain = new FakeChain()

async function settings(more: Environment = {}): Promise<Environment> {
  const DATA_DIR = await servers.folder()
  return { PORT: '0', DATA_DIR, WORKERS: '2', ADMIN_TOKEN: TOKEN, ...treeOf(chain.deployment), ...more }
}

/** The processes of the readers. */
function readersOf({ child: { pid } }: Running): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.trim().split(' ').filter(Boolean).map(Number)
}

function isRunning(pid: number): boolean {
  try {
    // A zombie has ended, too.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** Asks on so many connections that every reader answers several times. */
async function everywhere(url: string, path: string, question?: Question): Promise<Answer[]> {
  return await Promise.all(Array.from({ length: MANY }, () => ask(url, path, question)))
}

const statuses = (answers: Answer[]): number[] => [...new Set(answers.map(({ status }) => status))]

function inscribed(body: Uint8Array): FakeTransaction {
  return chain.inscribe({ contentType: 'text/plain', body })
}

async function submit(url: string, transaction: FakeTransaction, topics = ['tm_ordinals']): Promise<void> {
  expect((await ask(url, '/submit', submission(beefOf(transaction), topics))).status).toBe(200)
}

const admin = (value: unknown): Question => ({
  ...posted(value),
  headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${TOKEN}` },
})

/** A question from an address that a proxy names. */
const from = (address: string, headers: Record<string, string> = {}): Question => ({
  headers: { 'X-Forwarded-For': address, ...headers },
})

async function stopped({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
}

async function untilReaders(url: string): Promise<void> {
  const answer = async (): Promise<unknown> => (await ask(url, '/health')).json
  await until(async () => {
    const { readers } = (await answer()) as { readers: { running: number; wanted: number } }
    return readers.running === readers.wanted
  }, 'all readers run')
}

describe('two readers', () => {
  let running: Running
  let url: string
  /** How many reads of the client that reads too much were refused. */
  let refused = 0

  beforeAll(async () => {
    running = cli.start(
      ['serve'],
      await settings({ TRUST_PROXY: '1', READS_PER_MINUTE: '40', SUBMISSIONS_PER_MINUTE: '3' }),
    )
    url = await running.url
    await untilReaders(url)
    await submit(url, chain.genesis, ['tm_names'])
  }, 300_000)

  afterAll(() => stopped(running))

  test('are processes of their own', async () => {
    expect(readersOf(running)).toHaveLength(2)
    expect((await ask(url, '/health')).json).toMatchObject({ readers: { running: 2, wanted: 2 } })
  })

  test('have what was just submitted, and the tip of what was just moved', async () => {
    for (const name of ['a', 'ab', 'abc']) {
      expect(statuses(await everywhere(url, `/svc/names/origin/${name}`))).toEqual([404])
      await submit(url, chain.mint(name), ['tm_names'])
      expect(statuses(await everywhere(url, `/svc/names/origin/${name}`))).toEqual([200])
    }
  })

  test('have pages that lead to hosts at the port that the system chose', async () => {
    const mint = chain.mint('w')
    await submit(url, mint, ['tm_names', 'tm_ordinals'])
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('of w') })
    const outputs = [{ satoshis: 1, lockingScript }]
    await submit(url, chain.spend({ inputs: [{ transaction: mint, vout: 2 }], outputs }))
    const { port } = new URL(url)
    for (const { body } of await everywhere(url, '/name/w'))
      expect(body.toString()).toContain(`href="//w.localhost:${port}/"`)
  })

  test('answer 451 to whatever is blocked, from the moment on in which the block is answered', async () => {
    const note = inscribed(Buffer.from('to be blocked'))
    await submit(url, note)
    const path = `/content/${note.outpoint(0)}`
    expect(statuses(await everywhere(url, path))).toEqual([200])
    const subject = { outpoint: note.outpoint(0) }
    expect((await ask(url, '/admin/block', admin({ ...subject, reason: 'a test' }))).status).toBe(200)
    expect(statuses(await everywhere(url, path))).toEqual([451])
    expect((await ask(url, '/admin/unblock', admin(subject))).status).toBe(200)
    expect(statuses(await everywhere(url, path))).toEqual([200])
  })

  test('pass on what they cannot answer, with the errors of the process that writes', async () => {
    expectError(await ask(url, '/nothing'), { status: 404, code: 'NOT_FOUND' })
    expectError(await ask(url, '/submit', { method: 'POST' }), {
      status: 400,
      code: 'BAD_BODY',
      overlay: true,
    })
    const { headers } = await ask(url, '/deployment.json', { headers: { 'X-Request-Id': 'mine' } })
    expect(headers['x-request-id']).toBe('mine')
    expect(headers['access-control-allow-origin']).toBe('*')
  })

  test('pass on a body of many MiB, and refuse one that is too large', async () => {
    const body = Buffer.alloc(20 * MiB, 'large')
    const note = inscribed(body)
    await submit(url, note)
    const [answer] = await Promise.all([ask(url, `/content/${note.outpoint(0)}`)])
    expect(answer.body.equals(body)).toBe(true)
    expectError(await ask(url, '/lookup', { method: 'POST', body: Buffer.alloc(MiB, ' ') }), {
      status: 413,
      code: 'TOO_LARGE',
      overlay: true,
    })
  })

  test('count the reads of a client together, and tell it what is left', async () => {
    const path = '/svc/names/origin/a'
    const first = await ask(url, path, from('203.0.113.1'))
    expect(first.headers['ratelimit-policy']).toMatch(/^"reads"; q=40; w=60/)
    expect(first.headers.ratelimit).toMatch(/^"reads"; r=39; t=\d+$/)
    // What one reader was granted and does not use in time is refused by the other, and granted again a second later.
    let answered = 1
    await until(async () => {
      const more = await everywhere(url, path, from('203.0.113.1'))
      const passed = more.filter(({ status }) => status === 200)
      answered += passed.length
      refused += more.length - passed.length
      expect(more.filter(({ status }) => status === 429)).toHaveLength(more.length - passed.length)
      return answered >= 40
    }, 'all 40 reads are granted')
    expect(answered).toBe(40)
    // Lookups, which the writer answers, count as well.
    const lookup = { ...posted({ service: 'ls_names', query: { name: 'a' } }) }
    const headers = { ...lookup.headers, 'X-Forwarded-For': '203.0.113.1' }
    expect((await ask(url, '/lookup', { ...lookup, headers })).status).toBe(429)
    expect((await ask(url, path, from('203.0.113.2'))).status).toBe(200)
  })

  test('let nobody say that a request comes from elsewhere', async () => {
    const forged = { 'X-Minetree-Passed-On': 'secret 127.0.0.1' }
    const asked: number[] = []
    for (let times = 0; times < 5; times++) {
      const { headers } = from('203.0.113.3', forged)
      asked.push((await ask(url, '/submit', { method: 'POST', ...(headers && { headers }) })).status)
    }
    expect(asked).toEqual([400, 400, 400, 429, 429])
    // Without a proxy, this machine is not limited.
    const local = await everywhere(url, '/submit', { method: 'POST', headers: forged })
    expect(statuses(local)).toEqual([400])
  })

  test('are counted in the metrics of the host', async () => {
    // Those of a reader that does not respond in time are left out.
    await eventually(async () => {
      const { body } = await ask(url, '/metrics')
      const counted = (code: string): number => {
        const line = new RegExp(`^minetree_error_answers_total\\{code="${code}"\\} (\\d+)$`, 'm')
        return Number(line.exec(body.toString())?.[1])
      }
      expect([counted('BLOCKED'), counted('RATE_LIMITED')]).toEqual([MANY, refused + 1 + 2])
    })
  })

  test('are replaced when they are killed', async () => {
    const before = readersOf(running)
    const [killed = 0] = before
    process.kill(killed, 'SIGKILL')
    await until(() => readersOf(running).some((pid) => !before.includes(pid)), 'another reader is started')
    await untilReaders(url)
    await submit(url, chain.mint('b'), ['tm_names'])
    expect(statuses(await everywhere(url, '/svc/names/origin/b'))).toEqual([200])
  })

  test('are killed and replaced when they do not respond, and the answer to a block waits for that', async () => {
    const note = inscribed(Buffer.from('to be blocked, too'))
    await submit(url, note)
    const [frozen = 0] = readersOf(running)
    process.kill(frozen, 'SIGSTOP')
    // Other writes hardly wait for it.
    await submit(url, chain.mint('c'), ['tm_names'])
    expect(isRunning(frozen)).toBe(true)
    const block = admin({ outpoint: note.outpoint(0), reason: 'a test' })
    expect((await ask(url, '/admin/block', block)).status).toBe(200)
    expect(isRunning(frozen)).toBe(false)
    await untilReaders(url)
    expect(statuses(await everywhere(url, `/content/${note.outpoint(0)}`))).toEqual([451])
  })
})

test('on SIGINT, readers finish what they send, and end with the process that writes', async () => {
  // Where there can be no socket, they reach it at 127.0.0.1.
  const running = cli.start(['serve'], await settings({ TMPDIR: '/nowhere' }))
  const url = await running.url
  await untilReaders(url)
  const body = Buffer.alloc(20 * MiB, 'slow')
  const note = inscribed(body)
  await submit(url, note)
  const request = get(`${url}/content/${note.outpoint(0)}`, { agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const readers = readersOf(running)
  // What a terminal sends to all of them.
  for (const pid of readers) process.kill(pid, 'SIGINT')
  running.child.kill('SIGINT')
  await until(
    async () =>
      await ask(url, '/health/live').then(
        () => false,
        () => true,
      ),
    'it accepts no more',
  )
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  expect(Buffer.concat(chunks).equals(body)).toBe(true)
  expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
  expect(readers.filter(isRunning)).toEqual([])
})

test('a port in use is one line, as without readers', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const { code, stdout, stderr } = await cli.run(['serve'], await settings({ PORT: String(port) }))
  taken.close()
  expect({ code, stdout, stderr }).toEqual({
    code: 5,
    stdout: '',
    stderr: expect.stringMatching(/^minetree: cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.*\n$/),
  })
})

test('readers end when the process that writes is killed, and the next start has everything', async () => {
  const env = await settings()
  const killed = cli.start(['serve'], env)
  const note = inscribed(Buffer.from('kept'))
  await untilReaders(await killed.url)
  await submit(await killed.url, note)
  const readers = readersOf(killed)
  killed.child.kill('SIGKILL')
  await until(() => readers.every((pid) => !isRunning(pid)), 'the readers end')
  const next = cli.start(['serve'], env)
  const url = await next.url
  expect(statuses(await everywhere(url, `/content/${note.outpoint(0)}`))).toEqual([200])
  await stopped(next)
})
