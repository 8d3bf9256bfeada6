import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { builtPackage } from '../../support/cli/built-package.js'
import { useFollowWorlds } from '../../support/follow/follow-world.js'
import { type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { until } from '../../support/server/waiting.js'

const { world, servers } = useFollowWorlds()

test('what is followed is verified and written in the worker, and readers see it at once', async () => {
  const worker = join(await builtPackage(), 'dist/src/server/writer/submission-worker.js')
  const { tree, service, env, url } = await world()
  const follows = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '100', HEADERS_POLL_MS: '20' }
  const submissionWorker = pathToFileURL(worker)
  const writerThread = new URL('../writer-worker.js', submissionWorker)
  const server = await servers.start(
    { ...env, ...follows, CHAIN_SOURCES: url },
    { submissionWorker, writerThread },
  )
  const { node } = server
  const inMainThread: string[] = []
  const { engine } = node.overlay
  const { submit } = engine
  Object.assign(engine, {
    submit(submission: Parameters<typeof submit>[0]) {
      inMainThread.push('a submission')
      return submit(submission)
    },
  })
  await until(async () => (await server.ask('/svc/names/bab')).status === 200, 'a name is found')
  await until(async () => (await server.ask('/svc/names/z')).status === 404, 'the host has caught up')
  const mint = tree.chain.mint('z')
  tree.headers.mine([mint])
  service.know(tree.record(mint))
  await until(async () => (await server.ask('/svc/names/z')).status === 200, 'a new name is found')
  expect(inMainThread).toEqual([])
  await server.stop()
})

test('before a large submission loses to what nobody has seen, the network is asked', async () => {
  const worker = join(await builtPackage(), 'dist/src/server/writer/submission-worker.js')
  const { tree, service, env, url } = await world()
  const follows = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '600000', HEADERS_POLL_MS: '20' }
  const submissionWorker = pathToFileURL(worker)
  const writerThread = new URL('../writer-worker.js', submissionWorker)
  const server = await servers.start(
    { ...env, ...follows, CHAIN_SOURCES: url },
    { submissionWorker, writerThread },
  )
  await until(async () => (await server.ask('/svc/names/zz')).status === 404, 'the host has caught up')
  const from = tree.chain.node('')
  const [squat, ...others] = [17, 18, 19].map((vout) =>
    tree.chain.mint('x', {
      ...{ from, ownerLock: p2pkh(vout), funding: [{ transaction: tree.purse, vout }] },
      ...(vout > 17 && {
        trailing: [{ satoshis: 900, lockingScript: Buffer.alloc(100_000, 0x61).fill(0x6a, 0, 1) }],
      }),
    }),
  ) as [FakeTransaction, ...FakeTransaction[]]
  const submit = (mint: FakeTransaction) =>
    server.submit(
      encodeBeef([
        tree.record(tree.purse),
        tree.record(tree.mintOf('o')),
        { txid: mint.txid, raw: mint.raw },
      ]),
    )
  const origin = async (): Promise<unknown> =>
    ((await server.ask('/svc/names/origin/x')).json as { outpoint?: string }).outpoint
  expect((await submit(squat)).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
  const [unknown, honest] = others as [FakeTransaction, FakeTransaction]
  expect(await submit(unknown)).toMatchObject({ status: 409, json: { code: 'CONFLICT', txid: squat.txid } })
  expect(await origin()).toBe(squat.outpoint(2))
  service.know({ txid: honest.txid, raw: honest.raw })
  expect(await submit(honest)).toMatchObject({
    ...{ status: 200, json: { tm_names: { outputsToAdmit: [0, 1, 2] } } },
  })
  expect(await origin()).toBe(honest.outpoint(2))
  expect(await submit(unknown)).toMatchObject({ status: 409, json: { txid: honest.txid } })
})
