import { FollowedTree, type FollowedTreeOptions, recordFollowed } from '../../../src/server/followed-tree.js'
import { SILENT } from '../../support/server/test-server.js'

// The state of a tree over time, by a clock that the test sets.

const MINUTE = 60_000
const BLOCK = { height: 800_000, hash: 'ab'.repeat(32) }

/** The settings of a store, which several processes may have open. */
function stored() {
  const values = new Map<string, string>()
  return {
    values,
    get: async (name: string) => values.get(name),
    set: async (name: string, value: string) => void values.set(name, value),
  }
}

async function host(options: Partial<FollowedTreeOptions> & { isOwn?: boolean } = {}) {
  const clock = { now: 1000, answeredAt: undefined as number | undefined }
  const settings = options.settings ?? stored()
  const tree = new FollowedTree({
    ...{ settings, isShared: false, logger: SILENT, now: () => clock.now },
    follower: { progress: () => ({}), answeredAt: () => clock.answeredAt },
    ...options,
  })
  await tree.open(options)
  return { tree, clock, settings }
}

test('it catches up until it has been followed to its end, and never again', async () => {
  const { tree, settings } = await host()
  expect([tree.isCatchingUp, tree.asOf]).toEqual([true, undefined])
  tree.completed({ ...BLOCK, forkedAt: 1 } as never)
  expect(tree.isCatchingUp).toBe(false)
  const { asOf } = tree
  expect(asOf).toEqual(BLOCK)
  tree.completed({ ...BLOCK })
  expect(tree.asOf).toBe(asOf)
  await tree.close()
  const { tree: next, clock } = await host({ settings })
  expect(next).toMatchObject({ isCatchingUp: false, asOf: BLOCK })
  clock.now += 100 * MINUTE
  expect(next.isCatchingUp).toBe(false)
  // A tip that is not known makes nothing older.
  next.completed(undefined)
  expect(next.asOf).toEqual(BLOCK)
  await next.close()
})

test('it gives up after ten minutes without an answer, and catches up again with the first one', async () => {
  const { tree, clock } = await host()
  clock.now += 10 * MINUTE - 1
  expect(tree.isCatchingUp).toBe(true)
  clock.now += 1
  expect(tree.isCatchingUp).toBe(false)
  clock.answeredAt = clock.now
  expect(tree.isCatchingUp).toBe(true)
  clock.now += 9 * MINUTE
  expect(tree.isCatchingUp).toBe(true)
  clock.now += MINUTE
  expect(tree.isCatchingUp).toBe(false)
  tree.heard()
  expect(tree.isCatchingUp).toBe(true)
  await tree.close()
})

test('the time without an answer counts on over restarts, and ends with an answer', async () => {
  const settings = stored()
  for (let start = 0; start < 4; start++) {
    const { tree, clock } = await host({ settings })
    expect(tree.isCatchingUp).toBe(true)
    clock.now += 2.5 * MINUTE
    await tree.close()
  }
  const { tree, clock } = await host({ settings })
  expect(tree.isCatchingUp).toBe(false)
  clock.answeredAt = clock.now
  expect(tree.isCatchingUp).toBe(true)
  await tree.close()
  const { tree: next } = await host({ settings })
  expect(next.isCatchingUp).toBe(true)
  await next.close()
})

test('a store with a tree of its own is complete', async () => {
  const { tree } = await host({ isOwn: true })
  expect(tree).toMatchObject({ isCatchingUp: false, asOf: undefined })
  await tree.close()
})

test('a process that follows nothing knows what another one says that shares its database', async () => {
  const settings = stored()
  const alone = await host({ settings, follower: undefined, isShared: true })
  expect(alone.tree.isCatchingUp).toBe(false)
  await alone.tree.close()
  const following = await host({ settings, isShared: true })
  const beside = await host({ settings, follower: undefined, isShared: true })
  expect(beside.tree.isCatchingUp).toBe(true)
  // Nothing changes any more: the other one is gone.
  beside.clock.now += 10 * MINUTE
  expect(beside.tree.isCatchingUp).toBe(false)
  await beside.tree.close()
  following.tree.completed(BLOCK)
  await following.tree.close()
  const after = await host({ settings, follower: undefined, isShared: true })
  expect(after.tree).toMatchObject({ isCatchingUp: false, asOf: BLOCK })
  await after.tree.close()
})

test('of two that follow, the one that is behind does not undo what the other has done', async () => {
  const settings = stored()
  const first = await host({ settings, isShared: true })
  const second = await host({ settings, isShared: true })
  first.tree.completed(BLOCK)
  await first.tree.close()
  second.clock.now += MINUTE
  await second.tree.close()
  expect(second.tree).toMatchObject({ isCatchingUp: false, asOf: BLOCK })
  const { tree } = await host({ settings })
  expect(tree).toMatchObject({ isCatchingUp: false, asOf: BLOCK })
  await tree.close()
})

test('a process alone with its database waits for nobody whom it does not follow by itself', async () => {
  const settings = stored()
  await (await host({ settings })).tree.close()
  const { tree } = await host({ settings, follower: undefined })
  expect(tree.isCatchingUp).toBe(false)
})

test('what a peer says is believed up to the height of the chain, and makes nothing older', async () => {
  const { tree } = await host()
  tree.completedBy({ height: 10 ** 9, hash: BLOCK.hash }, BLOCK.height)
  expect(tree).toMatchObject({ isCatchingUp: false, asOf: undefined })
  tree.completedBy(BLOCK, BLOCK.height)
  tree.completedBy({ height: 1 }, BLOCK.height)
  tree.completedBy(undefined, undefined)
  expect(tree.asOf).toEqual(BLOCK)
  await tree.close()
})

test('a state that cannot be read is none, and a command records its own', async () => {
  for (const text of ['', 'null', '{"complete":1}', '{"complete":true,"asOf":{"height":-1}}', '[]']) {
    const settings = stored()
    settings.values.set('tree_followed', text)
    const { tree } = await host({ settings })
    expect({ text, isCatchingUp: tree.isCatchingUp }).toEqual({ text, isCatchingUp: true })
    await tree.close()
  }
  const settings = stored()
  await recordFollowed(settings, BLOCK)
  await recordFollowed(settings, undefined)
  const { tree } = await host({ settings })
  expect(tree).toMatchObject({ isCatchingUp: false, asOf: BLOCK })
  await tree.close()
})
