import express, { type ErrorRequestHandler, type RequestHandler, Router } from 'express'
import { routesOf } from '../../support/server/express-routes.js'

const nothing: RequestHandler = () => {}
const failure: ErrorRequestHandler = (_error, _request, _response, _next) => {}

test('routes are found below every prefix of every router, with their methods', () => {
  const inner = Router().get('/', nothing).get('/:name', nothing).use(failure)
  const outer = Router()
    .use(['/one', '/two'], inner)
    .post('/three', nothing)
    .get(/^\/four/, nothing)
  const { routes, handlers } = routesOf(express().use(outer).use('/below', outer).use(failure))
  const lines = routes.map(({ method, prefix, path }) => `${method} ${prefix} ${path}`)
  const expected = ['GET /one /', 'GET /one /:name', 'GET /two /', 'GET /two /:name']
  const below = expected.map((line) => line.replace(' ', ' /below'))
  expect(lines).toEqual([
    ...expected,
    'POST  /three',
    'GET  /^\\/four/',
    ...below,
    'POST /below /three',
    'GET /below /^\\/four/',
  ])
  expect(handlers).toEqual([])
})

test('what answers without being a route is found, too', () => {
  const { routes, handlers } = routesOf(
    express()
      .use(nothing)
      .use('/files', function files() {})
      .use(Router().use('/more', express().get('/hidden', nothing))),
  )
  expect(routes).toEqual([])
  expect(handlers).toEqual([
    { name: 'nothing', prefix: '' },
    { name: 'files', prefix: '/files' },
    { name: expect.any(String), prefix: '/more' },
  ])
})

test('a route of every method is no route of GET', () => {
  const router = Router()
  router.route('/all').all(nothing)
  expect(routesOf(express().use(router)).routes).toEqual([{ method: '_ALL', prefix: '', path: '/all' }])
})

test('a router at a pattern is refused', () => {
  const app = express().use(/^\/x/, Router().get('/', nothing))
  expect(() => routesOf(app)).toThrow('no router can be mounted there')
})
