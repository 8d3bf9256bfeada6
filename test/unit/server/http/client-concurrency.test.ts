import express from 'express'
import { clientConcurrency } from '../../../../src/server/http/gates.js'
import { serving } from '../../../support/server/connections.js'
import { eventually, loopTurns } from '../../../support/server/waiting.js'

/** A server that works on at most two requests of a client at a time, and answers only when a test lets it. */
async function setUp() {
  const begun: string[] = []
  const answers: (() => void)[] = []
  const app = express()
    .use(clientConcurrency(2, (request) => request.get('X-Client') ?? ''))
    .get('/head', (_request, response) => {
      response.flushHeaders()
      answers.push(() => response.end())
    })
    .use((request, response) => {
      begun.push(request.get('X-Client') ?? '')
      answers.push(() => response.end())
    })
  const { url } = await serving(app)
  const ask = (client: string, path = '/', signal?: AbortSignal): Promise<Response> =>
    fetch(url + path, {
      headers: { 'X-Client': client, Connection: 'close' },
      ...(signal && { signal }),
    })
  const answerAll = (): void => {
    for (const end of answers.splice(0)) end()
  }
  const until = async (count: number): Promise<void> => {
    await eventually(async () => expect(begun.length).toBeGreaterThanOrEqual(count))
  }
  return { begun, answerAll, ask, until }
}

test('so many requests of one client are worked on at a time, and others wait for none of them', async () => {
  const { begun, answerAll, ask, until } = await setUp()
  const asked = Array.from({ length: 5 }, () => ask('a'))
  await until(2)
  await loopTurns()
  expect(begun).toEqual(['a', 'a'])
  asked.push(ask('b'))
  await until(3)
  expect(begun).toEqual(['a', 'a', 'b'])
  answerAll()
  await until(5)
  await loopTurns()
  expect(begun).toEqual(['a', 'a', 'b', 'a', 'a'])
  answerAll()
  await until(6)
  answerAll()
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status)).toEqual(asked.map(() => 200))
})

test('a client that leaves while it waits or is worked on keeps no place', async () => {
  const { ask, answerAll, begun, until } = await setUp()
  const leaving = new AbortController()
  const left = Array.from({ length: 4 }, () => ask('a', '/', leaving.signal).catch(() => 'left'))
  await until(2)
  leaving.abort()
  expect(await Promise.all(left)).toEqual(left.map(() => 'left'))
  await loopTurns()
  const before = begun.length
  const stay = [ask('a'), ask('a')]
  await until(before + 2)
  answerAll()
  expect((await Promise.all(stay)).map(({ status }) => status)).toEqual([200, 200])
})

test('a body that is being sent keeps no place', async () => {
  const { begun, ask, answerAll, until } = await setUp()
  const sending = await Promise.all(Array.from({ length: 3 }, () => ask('a', '/head')))
  const other = ask('a')
  await until(1)
  expect(begun).toEqual(['a'])
  answerAll()
  expect([(await other).status, sending.map(({ status }) => status)]).toEqual([200, [200, 200, 200]])
})
