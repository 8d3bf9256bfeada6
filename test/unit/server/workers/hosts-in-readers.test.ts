import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, text } from '../../../support/gateway/site.js'
import { openReaders, type TestReaders } from '../../../support/server/readers.js'
import { ask, lastingHeaders, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const { server, named, show, mine, port } = await hostedServer(servers)
let readers: TestReaders

beforeAll(async () => {
  readers = await openReaders(server.node)
})
afterAll(() => readers.close())

test('a reader answers on hosts as one process does, from memory too, and passes nothing on', async () => {
  await named('site', directory({ '.': '_1', 'index.html': '_1', 'a.txt': '_1' }), text('of the site'))
  await mine('si')
  const hosts = ['site.localhost', 'si.localhost', 'nobody.localhost', 'a.b.localhost', 'localhost, x']
  const paths = [
    '/',
    '/a.txt',
    '/missing',
    '/mine',
    '/health/live',
    '/admin/blocked',
    '/submit',
    '/deployment.json',
  ]
  for (const host of hosts) {
    for (const path of paths) {
      for (const method of ['GET', 'HEAD', 'POST']) {
        const question = { method, headers: { Host: host + port } }
        const wanted = await server.ask(path, question)
        for (const url of [...readers.urls, ...readers.urls]) {
          const answer = await ask(url, path, question)
          expect({ status: answer.status, body: answer.body.toString() }).toEqual({
            status: wanted.status,
            body: wanted.body.toString(),
          })
          expect(lastingHeaders(answer)).toEqual(lastingHeaders(wanted))
        }
      }
    }
  }
})

test('a reader passes on what is for the service', async () => {
  for (const url of readers.urls) {
    const answer = await ask(url, '/deployment.json', { headers: { Host: `localhost${port}` } })
    expect({ status: answer.status, json: answer.json }).toMatchObject({
      status: 200,
      json: { profile: 'local' },
    })
  }
})

test('a reader shows what a name shows next as soon as that was submitted', async () => {
  const { site } = await named('moves', text('first'))
  const shown = async (): Promise<string[]> =>
    await Promise.all(
      readers.urls.map(async (url) =>
        (await ask(url, '/', { headers: { Host: 'moves.localhost' } })).body.toString(),
      ),
    )
  expect(await shown()).toEqual(['first', 'first'])
  await show({ transaction: site, vout: 0 }, text('second'))
  expect(await shown()).toEqual(['second', 'second'])
})
