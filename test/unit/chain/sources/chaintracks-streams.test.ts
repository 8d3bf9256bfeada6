import type { ServerResponse } from 'node:http'
import type { ChainTip } from '../../../../src/chain/sources/chain-source.js'
import { ChaintracksStreams } from '../../../../src/chain/sources/chaintracks-streams.js'
import { listening } from '../../../support/server/connections.js'
import { until } from '../../../support/server/waiting.js'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** The streams of a server that writes to the n-th connection of that of tips, from 0, and nothing to the other. */
async function setUp(
  write: (response: ServerResponse, nth: number) => void,
  { idleTimeout = 500 } = {},
): Promise<{ tips: ChainTip[]; opened: () => number }> {
  let opened = 0
  const server = await listening(({ url }, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(': connected\n\n')
    if (url === '/v2/tip/stream') write(response, opened++)
  })
  const tips: ChainTip[] = []
  const onTip = (tip: ChainTip): void => void tips.push(tip)
  const streams = new ChaintracksStreams({ url: server.url, onTip, idleTimeout, firstPause: 1 })
  closing.push(async () => {
    await streams.close()
    await server.close()
  })
  streams.start()
  return { tips, opened: () => opened }
}

test('events are read however they are cut, and whatever else is sent is ignored', async () => {
  const text = [
    'retry: 5\r\nid: 1\r\ndata: {"height": 1}\r\n\r\n',
    'data:{"height": 2}\n\ndata: {"height": "3"}\n\ndata: nonsense\n\n: comment\ndata: {"height": 4}\n\n',
  ].join('')
  const write = async (response: ServerResponse): Promise<void> => {
    for (const character of text) {
      response.write(character)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const { tips } = await setUp(write, { idleTimeout: 60_000 })
  await until(() => tips.length === 3)
  expect(tips).toEqual([{ height: 1 }, { height: 2 }, { height: 4 }])
})

test('an event without end is not read on, and the stream is opened again', async () => {
  let written = 0
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const flood = (response: ServerResponse): void => {
    do written += chunk.length
    while (response.write(chunk))
    response.once('drain', () => flood(response))
  }
  const { tips } = await setUp((response, nth) => {
    if (nth === 0) flood(response)
    else response.write('data: {"height": 7}\n\n')
  })
  await until(() => tips.length > 0)
  expect(tips[0]).toEqual({ height: 7 })
  expect(written).toBeLessThan(32 * 1024 * 1024)
})

test('a stream that sends nothing is opened again', async () => {
  const { tips } = await setUp((response, nth) => {
    if (nth > 0) response.write('data: {"height": 7}\n\n')
  })
  await until(() => tips.length > 0)
  expect(tips[0]).toEqual({ height: 7 })
})

test('a stream that does not stop sending events is closed, and opened again', async () => {
  const events = Buffer.from('data: {"height": 1}\n\n'.repeat(1000))
  const flood = (response: ServerResponse): void => {
    while (response.write(events));
    response.once('drain', () => flood(response))
  }
  const { tips } = await setUp((response, nth) => {
    if (nth === 0) flood(response)
    else response.write('data: {"height": 7}\n\n')
  })
  await until(() => tips.some(({ height }) => height === 7))
  expect(tips.length).toBeLessThan(60_000)
})
