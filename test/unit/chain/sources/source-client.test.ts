import { gzipSync } from 'node:zlib'
import { vi } from 'vitest'
import { InvalidHeadersError } from '../../../../backend/src/protocol/header-rules.js'
import { ChainSourceError } from '../../../../src/chain/sources/errors.js'
import { SourceClient, type SourceClientOptions } from '../../../../src/chain/sources/source-client.js'
import { listening, serving } from '../../../support/server/connections.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

afterEach(() => vi.useRealTimers())

/** An answer: a status, and what else is said. */
type Answer = [status: number, body?: string | Uint8Array, headers?: Record<string, string>]

/** A client of a service that gives these answers in order, and the last one from then on. */
async function setUp(
  answers: Answer[],
  options: Partial<SourceClientOptions> = {},
): Promise<{ client: SourceClient; asked: string[]; lines: string[]; answers: Answer[] }> {
  const asked: string[] = []
  const { url } = await serving(({ url: path = '' }, response) => {
    asked.push(path)
    const [status, body, headers] = (answers.length > 1 ? answers.shift() : answers[0]) ?? [500]
    response.writeHead(status, headers).end(body)
  })
  const lines: string[] = []
  const log = (line: unknown): void => void lines.push(String(line))
  const client = new SourceClient({
    ...{ url: `${url}/base/`, name: 'the source' },
    logger: { info: log, warn: log },
    ...options,
  })
  onTestFinished(() => client.close())
  return { client, asked, lines, answers }
}

const TEXT = { maxBytes: 100, read: (body: Uint8Array) => Buffer.from(body).toString() }

test('reads an answer below its URL', async () => {
  const { client, asked } = await setUp([[200, 'yes']])
  expect(await client.ask('/a', TEXT)).toBe('yes')
  expect(asked).toEqual(['/base/a'])
  expect(client.status).toEqual({ name: 'the source', state: 'ok', requests: 1, failures: 0 })
})

test('a status means what the question says it means, and 404 otherwise that there is nothing', async () => {
  const { client } = await setUp([[404], [400], [404]])
  expect(await client.ask('/a', TEXT)).toBeUndefined()
  const statuses = { 400: 'unknown', 404: 'none' }
  expect(await client.ask('/a', { ...TEXT, statuses })).toBe('unknown')
  expect(await client.ask('/a', { ...TEXT, statuses })).toBe('none')
  expect(client.status).toMatchObject({ state: 'ok', failures: 0 })
})

test.each<[string, Answer, string]>([
  ['a redirect', [302, '', { Location: '/elsewhere' }], 'does not answer: .*'],
  ['a refusal', [403, ''], 'answered 403'],
])('%s is no answer, and the source rests', async (_, answer, why) => {
  const { client, asked } = await setUp([answer], { now: () => 1_000_000 })
  await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ code: 'NO_ANSWER' })
  await expect(client.ask('/a', TEXT)).rejects.toMatchObject({
    code: 'NO_ANSWER',
    message: expect.stringMatching(
      new RegExp(`^the source rests for 1 seconds: http://127.0.0.1:\\d+/a ${why}$`),
    ),
  })
  expect(asked).toEqual(['/base/a'])
  expect(client.status.state).toBe('resting')
})

/** A client of a service that sends this much of an answer and no more, and what resolves when it is asked. */
async function setUpStalled(options: Partial<SourceClientOptions>, part?: string) {
  let onAsked = (): void => {}
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve
  })
  const { url } = await serving((_, response) => {
    if (part !== undefined) response.writeHead(200).write(part)
    onAsked()
  })
  const client = new SourceClient({ ...{ url }, ...options })
  onTestFinished(() => client.close())
  return { client, asked }
}

test.each([undefined, 'half'])('an answer that never ends fails with its time: %s', async (part) => {
  const { client } = await setUpStalled({ timeout: 50 }, part)
  await expect(client.ask('/a', TEXT)).rejects.toMatchObject({
    code: 'NO_ANSWER',
    message: expect.stringMatching(/\/a took longer than 50 ms$/),
  })
})

test('what is asked fails once the client is closed, or its signal is aborted', async () => {
  const { client, asked } = await setUpStalled({}, 'half')
  const asking = client.ask('/a', TEXT)
  await Promise.all([asked.then(() => client.close()), expect(asking).rejects.toThrow('no longer asked')])
  expect(client.isClosed).toBe(true)
  const stop = new AbortController()
  const other = await setUpStalled({ signal: stop.signal }, 'half')
  const waiting = other.client.ask('/a', TEXT)
  await other.asked
  stop.abort(new RangeError('enough'))
  await expect(waiting).rejects.toThrow('enough')
})

test('an answer that breaks off is none', async () => {
  const { url } = await serving((_, response) => {
    response.writeHead(200, { 'Content-Length': 90 }).write('[', () => response.destroy())
  })
  const client = new SourceClient({ url })
  onTestFinished(() => client.close())
  await expect(client.ask('/a', TEXT)).rejects.toThrow('does not answer')
})

test('a source that cannot be reached is named without its path', async () => {
  const { url, close } = await listening(() => {})
  await close()
  const client = new SourceClient({ url: `${url}/key` })
  await expect(client.ask('/a', TEXT)).rejects.toMatchObject({
    code: 'NO_ANSWER',
    message: expect.stringMatching(/\d\/a does not answer: .+/),
  })
  await client.close()
})

test('no more is inflated than is asked for', async () => {
  const bomb = gzipSync('a'.repeat(10_000))
  expect(bomb.length).toBeLessThan(100)
  const { client } = await setUp([[200, bomb, { 'Content-Encoding': 'gzip' }]])
  await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ code: 'BAD_ANSWER' })
})

test('no more than eight are asked at once', async () => {
  const waiting: (() => void)[] = []
  const { url } = await serving((_, response) => void waiting.push(() => response.end('yes')))
  const client = new SourceClient({ url })
  onTestFinished(() => client.close())
  const questions = Array.from({ length: 10 }, () => client.ask('/a', TEXT))
  await until(() => waiting.length === 8)
  await loopTurns()
  expect(waiting).toHaveLength(8)
  for (const answer of waiting) answer()
  await until(() => waiting.length === 10)
  for (const answer of waiting.slice(8)) answer()
  await Promise.all(questions)
})

test('clients of one service share its rate, and what is urgent goes first', async () => {
  const asked: string[] = []
  const { url } = await serving(({ url: path = '' }, response) => {
    asked.push(path)
    response.end('yes')
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] })
  const clients = ['/one', '/two'].map((base) => new SourceClient({ url: url + base, rate: 2 }))
  for (const client of clients) onTestFinished(() => client.close())
  const questions = ['/a', '/b', '/c'].flatMap((path) => clients.map((client) => client.ask(path, TEXT)))
  const urgent = clients[0]?.ask('/urgent', { ...TEXT, isUrgent: true })
  const counts: number[] = []
  for (const count of [2, 4, 6]) {
    // Not `until`, whose end is a time: the clock stands still.
    for (let tries = 0; asked.length < count && tries < 100; tries++) await loopTurns()
    await vi.advanceTimersByTimeAsync(999)
    await loopTurns()
    counts.push(asked.length)
    await vi.advanceTimersByTimeAsync(1)
  }
  await vi.advanceTimersByTimeAsync(10_000)
  await Promise.all([...questions, urgent])
  expect(counts).toEqual([2, 4, 6])
  expect(asked.slice(0, 3)).toEqual(['/one/a', '/two/a', '/one/urgent'])
})

test('rests twice as long each time up to ten minutes, and starts over once it answers', async () => {
  let now = 1_000_000
  const { client, lines, answers } = await setUp([[500]], { firstRest: 100_000, now: () => now })
  const rests: number[] = []
  for (let times = 0; times < 5; times++) {
    await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ code: 'NO_ANSWER' })
    rests.push(client.rest)
    now += client.rest
  }
  expect(rests).toEqual([100_000, 200_000, 400_000, 600_000, 600_000])
  answers.unshift([200, 'yes'])
  expect(await client.ask('/a', TEXT)).toBe('yes')
  expect(client.status.state).toBe('ok')
  await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ code: 'NO_ANSWER' })
  expect(client.rest).toBe(100_000)
  // The first failure and the end of them, and nothing between.
  expect(lines).toEqual([
    expect.stringContaining('rests for 100 seconds'),
    'the source answers again',
    expect.stringContaining('rests for 100 seconds'),
  ])
})

test('warns of a source that fails now and then at most once a minute', async () => {
  let now = 1_000_000
  const { client, lines, answers } = await setUp([[429, '', { 'Retry-After': '1' }]], { now: () => now })
  for (let seconds = 0; seconds < 150; seconds += 2) {
    await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ code: 'NO_ANSWER' })
    now += 2000
    answers.unshift([200, 'yes'])
    await client.ask('/a', TEXT)
  }
  const warned = expect.stringContaining('rests for 1 seconds')
  const over = 'the source answers again'
  expect(lines).toEqual([warned, over, warned, over, warned, over])
})

test('rests for as long as it asks for, but for no more than ten minutes', async () => {
  const now = 1_000_000
  for (const [status, asked, rest] of [
    [429, '120', 120_000],
    [429, new Date(now + 120_000).toUTCString(), 120_000],
    [503, '86400', 600_000],
    [503, '9'.repeat(400), 600_000],
  ] as const) {
    const { client } = await setUp([[status, '', { 'Retry-After': asked }]], { now: () => now })
    await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ code: 'NO_ANSWER' })
    expect({ asked, rest: client.rest }).toEqual({ asked, rest })
  }
})

test('what waits for its permit is not sent to a source that rests by then', async () => {
  const { client, asked } = await setUp([[200, 'yes']], { rate: 1, firstRest: 60_000 })
  // The second may be sent a second after the first.
  const questions = Promise.allSettled([client.ask('/a', TEXT), client.ask('/b', TEXT)])
  const failing = async (): Promise<never> => {
    throw new ChainSourceError('NO_ANSWER', 'it is busy')
  }
  await client.attempt(failing)
  const [, second] = await questions
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'NO_ANSWER' } })
  expect(asked).not.toContain('/base/b')
})

test('failures at the same time are one failure', async () => {
  const { client } = await setUp([[500]], { firstRest: 10_000 })
  const asked = Array.from({ length: 4 }, () => client.ask('/a', TEXT))
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(asked.map(() => 'rejected'))
  expect(client.rest).toBeLessThanOrEqual(10_000)
})

test('rests after five invalid answers in a row, and not for one', async () => {
  const { client, answers } = await setUp([[200, 'x'.repeat(101)]], { firstRest: 60_000 })
  const ask = () => client.ask('/a', TEXT)
  for (let times = 0; times < 4; times++) await expect(ask()).rejects.toMatchObject({ code: 'BAD_ANSWER' })
  answers.unshift([200, 'good'])
  expect(await ask()).toBe('good')
  for (let times = 0; times < 5; times++) await expect(ask()).rejects.toMatchObject({ code: 'BAD_ANSWER' })
  await expect(ask()).rejects.toMatchObject({ code: 'NO_ANSWER' })
  expect(client.status).toMatchObject({ state: 'resting', failures: 9 })
})

test('rests longer after each attempt that fails as a whole, although it answers', async () => {
  let now = 1_000_000
  const { client } = await setUp([[200, 'yes']], { firstRest: 1000, now: () => now })
  const attempt = (fails: boolean) =>
    client.attempt(async () => {
      await client.ask('/a', TEXT)
      if (fails) throw new InvalidHeadersError('the answers do not fit together')
      return 'done'
    })
  const rests: number[] = []
  for (const fails of [true, true, true, false, true]) {
    expect(await attempt(fails)).toBe(fails ? undefined : 'done')
    rests.push(client.rest)
    now += client.rest
  }
  expect(rests).toEqual([1000, 2000, 4000, 0, 1000])
  expect(client.status).toMatchObject({
    failures: 4,
    lastError: { message: 'the answers do not fit together' },
  })
  await expect(client.attempt(() => Promise.reject(new TypeError('ours')))).rejects.toThrow('ours')
})

test('messages have no path of its URL, which may be a key', async () => {
  const { client } = await setUp([[200, 'x'.repeat(101)], [500]])
  for (const message of [/\d\/a answered more than 100 bytes$/, /\d\/a answered 500$/]) {
    await expect(client.ask('/a', TEXT)).rejects.toMatchObject({ message: expect.stringMatching(message) })
    expect(client.status.lastError?.message).not.toContain('base')
  }
})
