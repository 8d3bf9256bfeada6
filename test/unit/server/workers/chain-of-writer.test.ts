import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { jest } from '@jest/globals'
import express from 'express'
import {
  listenForReaders,
  newSecret,
  receivePassedOn,
  writersChain,
} from '../../../../src/server/workers/passed-on.js'
import { explorerWorld } from '../../../support/explorer/world.js'
import { saidParts } from '../../../support/server/chain-parts.js'
import { openReaders } from '../../../support/server/readers.js'
import { ask, treeOf, useServers } from '../../../support/server/test-server.js'

// How a reader learns how far the host has come: from the status of the process that writes.

const servers = useServers()
const closing: (() => Promise<void>)[] = []
// A busy machine takes as long as it takes: by the clock, a page would do without the answer.
beforeEach(() => void jest.spyOn(AbortSignal, 'timeout').mockReturnValue(new AbortController().signal))
afterEach(async () => {
  jest.restoreAllMocks()
  for (const close of closing.splice(0)) await close()
})

/** A process that writes, whose status is this, and what a reader hears of its chain. */
async function writerThat(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const secret = newSecret()
  const server = createServer(receivePassedOn(Object.assign(answer, { express: express() }), secret))
  const { place, remove } = await listenForReaders(server)
  const stop = async (): Promise<void> => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    await remove()
  }
  closing.push(stop)
  return { chain: writersChain({ place, secret }), stop }
}

test.each([
  [
    { height: 900_000, lag: 3 },
    { height: 900_000, lag: 3 },
  ],
  [{ height: 900_000, follow: {} }, { height: 900_000 }],
  [{ status: 'ok' }, {}],
])('of the status %j it hears %j', async (status, heard) => {
  const { chain } = await writerThat((_, response) => response.end(JSON.stringify(status)))
  expect(await chain()).toEqual(heard)
})

test.each<[string, (request: IncomingMessage, response: ServerResponse) => void]>([
  ['no JSON', (_, response) => response.end('{"height":')],
  ['JSON that is no status', (_, response) => response.end('null')],
  ['too much', (_, response) => response.end(`{"height":1,"x":"${'x'.repeat(300_000)}"}`)],
  ['nothing', (request) => request.socket.destroy()],
  ['half an answer', (_, response) => response.writeHead(200).write('{', () => response.destroy())],
])('of a status that is %s, it hears nothing, and its pages do without', async (_, answer) => {
  const { chain } = await writerThat(answer)
  expect(await chain()).toEqual({})
})

test('many pages ask once, and later ones again, of a process that may be gone by then', async () => {
  let now = Date.now()
  jest.spyOn(Date, 'now').mockImplementation(() => now)
  const asked: unknown[] = []
  const { chain, stop } = await writerThat(({ method, url, socket }, response) => {
    asked.push([method, url, socket.remoteAddress])
    response.end(JSON.stringify({ height: 900_000 + asked.length, lag: 0 }))
  })
  const answers = await Promise.all(Array.from({ length: 20 }, () => chain()))
  expect(new Set(answers.map(({ height }) => height))).toEqual(new Set([900_001]))
  expect(asked).toEqual([['GET', '/health', '127.0.0.1']])
  now += 1001
  expect(await chain()).toEqual({ height: 900_002, lag: 0 })
  await stop()
  expect(await chain()).toEqual({ height: 900_002, lag: 0 })
  now += 1001
  expect(await chain()).toEqual({})
})

test('the first page of a reader says how far the process that writes has come', async () => {
  const world = explorerWorld({ names: 0 })
  const { node } = await servers.start(treeOf(world.deployment))
  const { urls, close } = await openReaders(node, { chain: saidParts().parts })
  closing.push(close)
  for (const url of urls) {
    const page = (await ask(url, '/')).body.toString()
    expect(page).toMatch(/<dt>block height, 120 behind<\/dt><dd data-height[^>]*>900,120<\/dd>/)
    expect((await ask(url, '/health')).json).toMatchObject({ height: 900_120, lag: 120 })
  }
})
