import { once } from 'node:events'
import { get, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import express from 'express'
import { readConfig } from '../../../../src/server/config/config.js'
import { type HttpServer, openHttpServer } from '../../../../src/server/http/http-server.js'

describe('an HTTP server over an Express app', () => {
  let server: HttpServer | undefined
  afterEach(() => server?.finish())

  test('makes requests and responses with the prototypes of the app, so that Express changes none', async () => {
    const routes = express().get('/', (request, response) => {
      response.end(request.path)
    })
    const app = Object.assign((...given: Parameters<RequestListener>) => void routes(...given), {
      express: routes,
    })
    server = openHttpServer({ app, limits: readConfig({}).limits, onEnd: () => {} })
    const are: boolean[] = []
    server.prependListener('request', (request, response) => {
      are.push(Object.getPrototypeOf(request) === routes.request)
      are.push(Object.getPrototypeOf(response) === routes.response)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const [answer] = (await once(get({ host: '127.0.0.1', port, agent: false }), 'response')) as [
      IncomingMessage,
    ]
    expect(await text(answer)).toBe('/')
    expect(are).toEqual([true, true])
  })
})
