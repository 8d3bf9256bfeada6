import { setImmediate } from 'node:timers/promises'
import { readBeef } from '../../backend/src/graph/read-beef.js'
import { graphRecords } from '../../backend/src/graph/records.js'
import { CurrentSubmission } from '../../src/server/submission.js'
import { beefOf, FakeChain } from '../support/fake-chain.js'
import { closeStores, openStore } from '../support/open-store.js'

afterAll(closeStores)

const chain = new FakeChain()
const [first, second] = [chain.mint('a'), chain.mint('b')].map((mint) => readBeef(beefOf(mint)))
if (first === undefined || second === undefined) throw new Error('there are two mints')

const name = (text: string) =>
  graphRecords({ names: [{ name: text, outpoint: { txid: first.subject.txid, vout: 2 } }] })

async function setUp() {
  const { store } = await openStore()
  const names = async (): Promise<string[]> =>
    (await store.namesByPrefix({ prefix: '', limit: 10 })).map((each) => each.name)
  return { submission: new CurrentSubmission(store), names }
}

test('what is recorded meanwhile is written when the work is done, and not before', async () => {
  const { submission, names } = await setUp()
  await submission.run(first, async () => {
    await submission.record(name('a'))
    expect(await names()).toEqual([])
    await submission.record(name('b'))
  })
  expect(await names()).toEqual(['a', 'b'])
})

test('of work that throws nothing is written, nor what comes late', async () => {
  const { submission, names } = await setUp()
  let late: Promise<void> | undefined
  const work = submission.run(first, async () => {
    await submission.record(name('a'))
    late = setImmediate().then(() => submission.record(name('b')))
    throw new Error('the engine gave up')
  })
  await expect(work).rejects.toThrow('the engine gave up')
  await late
  expect(await names()).toEqual([])
})

test('what comes late of work that failed does not slip into the next', async () => {
  const { submission, names } = await setUp()
  let late: Promise<void> | undefined
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const failing = submission.run(first, async () => {
    late = released.then(() => submission.record(name('late')))
    throw new Error('the engine gave up')
  })
  await expect(failing).rejects.toThrow()
  await submission.run(second, async () => {
    release()
    await late
    await submission.record(name('b'))
  })
  expect(await names()).toEqual(['b'])
})

test('a failure that the engine swallows fails the work', async () => {
  const { submission, names } = await setUp()
  const work = submission.run(first, async () => {
    await submission.record(name('a'))
    submission.fail(new Error('a topic manager threw'))
  })
  await expect(work).rejects.toThrow('a topic manager threw')
  expect(await names()).toEqual([])
})

test('what comes late of work that was written is written too', async () => {
  const { submission, names } = await setUp()
  let late: Promise<void> | undefined
  await submission.run(first, async () => {
    late = setImmediate().then(() => submission.record(name('late')))
  })
  await late
  expect(await names()).toEqual(['late'])
})

test('the transaction under way is known by its txid, and only inside the work', async () => {
  const { submission } = await setUp()
  const { txid } = first.subject
  await submission.run(first, async () => {
    expect(submission.submitted(txid)).toBe(first)
    expect(submission.submitted(second.subject.txid)).toBeUndefined()
  })
  expect(submission.submitted(txid)).toBeUndefined()
})
