import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { LargeSubmissions } from '../../../src/server/submission/large-submissions.js'
import { builtPackage } from '../../support/cli/built-package.js'
import { useFollowWorlds } from '../../support/follow/follow-world.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { SILENT, treeOf } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { onEachSharedEngine } from '../../support/storage/databases.js'

const { world, servers } = useFollowWorlds()

test('what is followed is verified and written in the worker, and readers see it at once', async () => {
  const worker = join(await builtPackage(), 'dist/src/server/submission/submission-worker.js')
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
  const { verify } = node.overlay.engine
  node.overlay.engine.verify = (contents, ...others) => {
    inMainThread.push(contents.subject.txid)
    return verify.call(node.overlay.engine, contents, ...others)
  }
  await until(async () => (await server.ask('/svc/names/bab')).status === 200, 'a name is found')
  await until(async () => (await server.ask('/svc/names/z')).status === 404, 'the host has caught up')
  const mint = tree.chain.mint('z')
  tree.headers.mine([mint])
  service.know(tree.record(mint))
  await until(async () => (await server.ask('/svc/names/z')).status === 200, 'a new name is found')
  expect(inMainThread).toEqual([])
  await server.stop()
}, 300_000)

test('before a large submission loses to what nobody has seen, the network is asked', async () => {
  const worker = join(await builtPackage(), 'dist/src/server/submission/submission-worker.js')
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
}, 300_000)

// A database has no queue of its own, and each thread writes by itself.
onEachSharedEngine('on', ({ settings }) => {
  test('submissions that wait in the worker share a write, each with its own result, and only what they change is forgotten', async () => {
    const worker = pathToFileURL(
      join(await builtPackage(), 'dist/src/server/submission/submission-worker.js'),
    )
    const chain = new FakeChain()
    const { node, submit, stop } = await servers.start({
      ...(await settings()),
      ...treeOf(chain.deployment),
      CHAIN_TRACKER: 'scripts-only',
    })
    const { config, overlay } = node
    await submit(beefOf(chain.genesis))
    const inscribed = Array.from({ length: 3 }, (_, at) => chain.inscribe({ body: Uint8Array.of(0x61 + at) }))
    const [first] = inscribed
    if (first === undefined) throw new Error('nothing is inscribed')
    const spendOf = (transaction: FakeTransaction, lockingScript: Uint8Array): FakeTransaction =>
      chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [{ satoshis: 1, lockingScript }] })
    const moved = spendOf(first, OPEN_LOCK)
    const large = new LargeSubmissions({ config, node, logger: SILENT, worker })
    const lengths: (number | undefined)[] = []
    const { writing } = node
    node.writing = (write, changesOf) =>
      writing?.(write, (result) => {
        const changes = changesOf?.(result as never)
        lengths.push(changes?.length)
        return changes
      }) as never
    const submitAll = async (beefs: Uint8Array[]): Promise<unknown[]> => {
      let results: Promise<PromiseSettledResult<unknown>[]> | undefined
      await overlay.engine.writeLock.run(async () => {
        const { runIfNeeded } = overlay.engine.writeLock
        await new Promise<void>((resolve) => {
          let left = beefs.length
          overlay.engine.writeLock.runIfNeeded = (...all) => {
            if (--left === 0) resolve()
            return runIfNeeded.apply(overlay.engine.writeLock, all)
          }
          results = Promise.allSettled(
            beefs.map((beef) => large.submitInWorker({ beef: beef.slice(), topics: [TOPICS.ordinals] })),
          )
        })
        overlay.engine.writeLock.runIfNeeded = runIfNeeded
      })
      return ((await results) ?? []).map((each) =>
        each.status === 'fulfilled' ? each.value : (each.reason as { code: string }).code,
      )
    }
    const admitted = { [TOPICS.ordinals]: { outputsToAdmit: [0], coinsToRetain: [] } }
    const transferred = { [TOPICS.ordinals]: { outputsToAdmit: [0], coinsToRetain: [0] } }

    // A child and its parents in one write.
    const results = await submitAll([
      beefOf(moved, { with: [first] }),
      ...inscribed.map((each) => beefOf(each)),
    ])
    expect(results).toEqual([transferred, admitted, admitted, admitted])
    // Anything, the list of inscriptions, the proofs of four transactions, and what they spend.
    expect(lengths).toEqual([10])

    // Two that spend the same: one is too late, and the others are not refused because of it.
    lengths.length = 0
    const [next, rival] = [spendOf(moved, p2pkh(3)), spendOf(moved, p2pkh(4))]
    const third = chain.inscribe({ body: Uint8Array.of(0x7a) })
    const unproven = [next, rival].map((each) => beefOf(each, { proven: false, with: [moved] }))
    const conflicting = await submitAll([...unproven, beefOf(third)])
    expect(conflicting.filter((each) => each === 'CONFLICT')).toHaveLength(1)
    expect(conflicting[2]).toEqual(admitted)
    await large.close()
    await stop()
  }, 300_000)
})
