import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { builtPackage } from '../../support/cli/built-package.js'
import { useFollowWorlds } from '../../support/follow/follow-world.js'
import { until } from '../../support/server/waiting.js'

const { world, servers } = useFollowWorlds()

test('what is followed is verified and written in the worker, and readers see it at once', async () => {
  const worker = join(await builtPackage(), 'dist/src/server/submission/submission-worker.js')
  const { tree, service, env, url } = await world()
  const follows = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '100', HEADERS_POLL_MS: '20' }
  const submissionWorker = pathToFileURL(worker)
  const server = await servers.start({ ...env, ...follows, CHAIN_SOURCES: url }, { submissionWorker })
  const { node } = server
  const inMainThread: string[] = []
  const { verify } = node.overlay.engine
  node.overlay.engine.verify = (contents, ...others) => {
    inMainThread.push(contents.subject.txid)
    return verify.call(node.overlay.engine, contents, ...others)
  }
  await until(async () => (await server.ask('/svc/names/bab')).status === 200, 'a name is found')
  expect((await server.ask('/svc/names/z')).status).toBe(404)
  const mint = tree.chain.mint('z')
  tree.headers.mine([mint])
  service.know(tree.record(mint))
  await until(async () => (await server.ask('/svc/names/z')).status === 200, 'a new name is found')
  expect(inMainThread).toEqual([])
  await server.stop()
}, 300_000)
