import type { ServerResponse } from 'node:http'
import { chaintracksStream } from '../../../../src/chain/sources/chaintracks-stream.js'
import { serving } from '../../../support/server/connections.js'
import { until } from '../../../support/server/waiting.js'

/** The stream of a server that writes to its n-th connection, from 0. */
async function setUp(
  write: (response: ServerResponse, nth: number) => void,
  { idleTimeout = 500 } = {},
): Promise<{ events: () => number; opened: () => number }> {
  let opened = 0
  const server = await serving((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(': connected\n\n')
    write(response, opened++)
  })
  let events = 0
  const onTip = (): void => void events++
  const streams = chaintracksStream({ url: server.url, onTip, idleTimeout, firstPause: 1 })
  onTestFinished(() => streams.stop())
  streams.start()
  return { events: () => events, opened: () => opened }
}

test('events are read however they are cut, and whatever else is sent is ignored', async () => {
  const text = [
    'retry: 5\r\nid: 1\r\ndata: {"height": 1}\r\n\r\n',
    'data:{"height": 2}\n\n: comment, data: none\n\nevent: data\ndata: {"height": 3}\n\n',
  ].join('')
  let isWritten = false
  const write = async (response: ServerResponse): Promise<void> => {
    for (const character of text) {
      response.write(character)
      await new Promise((resolve) => setImmediate(resolve))
    }
    isWritten = true
  }
  const { events, opened } = await setUp(write, { idleTimeout: 60_000 })
  await until(() => isWritten)
  await until(() => events() === 3)
  expect(opened()).toBe(1)
})

test('an event without end is not read on, and the stream is opened again', async () => {
  let written = 0
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const flood = (response: ServerResponse): void => {
    do written += chunk.length
    while (response.write(chunk))
    response.once('drain', () => flood(response))
  }
  const { events } = await setUp((response, nth) => {
    if (nth === 0) flood(response)
    else response.write('data: {"height": 7}\n\n')
  })
  await until(() => events() > 0)
  expect(written).toBeLessThan(32 * 1024 * 1024)
})

test('a stream that sends nothing is opened again', async () => {
  const { events } = await setUp((response, nth) => {
    if (nth > 0) response.write('data: {"height": 7}\n\n')
  })
  await until(() => events() > 0)
})

test('a stream that does not stop sending events is closed, and opened again', async () => {
  const sent = Buffer.from('data: {"height": 1}\n\n'.repeat(1000))
  const flood = (response: ServerResponse): void => {
    while (response.write(sent));
    response.once('drain', () => flood(response))
  }
  const { events, opened } = await setUp((response, nth) => {
    if (nth === 0) flood(response)
    else response.write('data: {"height": 7}\n\n')
  })
  await until(() => opened() > 1)
  expect(events()).toBeLessThan(60_000)
})
