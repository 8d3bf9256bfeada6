import type { StepDemand } from '../../../../backend/src/protocol/run-scripts.js'
import {
  offloadingExpensive,
  type ScriptJob,
  ScriptScheduler,
} from '../../../../src/server/writer/script-scheduler.js'

const LONG = { likelyWork: 0, timeout: 600_000 }
/** So many bytes are held by one run at a time. */
const MUCH = 1_000_000

/** Keeps the thread busy for a slice, so that a run that takes a step has used up its turn. */
function busy(): void {
  for (const end = performance.now() + 6; performance.now() < end; );
}

/** Steps that each take a slice. Notes each as it is taken. */
function* steps(
  name: string,
  { count, units = 1_000_000, bytes = 0 }: { count: number; units?: number; bytes?: number },
  taken: string[],
): Generator<StepDemand, void> {
  for (let left = count; left > 0; left--) {
    yield { units, bytes }
    taken.push(name)
    busy()
  }
}

test('a run that comes late and takes little is done before those that have had much', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const done: string[] = []
  const run = async (name: string, count: number): Promise<void> => {
    await scheduler.run(() => steps(name, { count }, taken), LONG)
    done.push(name)
  }
  const hostile = ['a', 'b', 'c'].map((name) => run(name, 12))
  while (taken.length < 9) await new Promise((resume) => setImmediate(resume))
  const before = taken.length
  await run('late', 2)
  // Its own two, and no more than one that was about to be taken as it came.
  expect(taken.length - before).toBeLessThanOrEqual(4)
  expect(done).toEqual(['late'])
  await Promise.all(hostile)
  expect(taken.filter((name) => name === 'a')).toHaveLength(12)
})

test('what looks like less is done first, though all come at once', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const done: string[] = []
  const run = async (name: string, count: number, likelyWork: number): Promise<void> => {
    await scheduler.run(() => steps(name, { count }, taken), { ...LONG, likelyWork })
    done.push(name)
  }
  await Promise.all([run('much', 5, 5_000_000), run('more', 5, 9_000_000), run('little', 3, 1_000_000)])
  expect(done).toEqual(['little', 'much', 'more'])
})

test('a long step waits until what takes less is done, though its run has had nothing yet', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const long = ['a', 'b', 'c'].map((name) =>
    scheduler.run(() => steps(name, { count: 1, units: 15_000_000 }, taken), LONG),
  )
  const short = scheduler.run(() => steps('short', { count: 4 }, taken), LONG)
  await short
  expect(taken).toEqual(['short', 'short', 'short', 'short'])
  await Promise.all(long)
})

test('others have a turn of the thread between the slices, however many runs there are', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const runs = Array.from({ length: 20 }, (_, at) =>
    scheduler.run(() => steps(String(at), { count: 3 }, taken), LONG),
  )
  const counts: number[] = []
  while (scheduler.size > 0) {
    counts.push(taken.length)
    await new Promise((resume) => setImmediate(resume))
  }
  await Promise.all(runs)
  const most = Math.max(...counts.slice(1).map((count, at) => count - (counts[at] ?? 0)))
  expect(most).toBe(1)
})

test('of those that hold much memory one runs at a time, and is given up for one that has had much less', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const opened: string[] = []
  let holding = 0
  let most = 0
  function* large(name: string, count: number): Generator<StepDemand, void> {
    opened.push(name)
    yield { units: 1_000_000, bytes: MUCH }
    holding++
    most = Math.max(most, holding)
    try {
      yield* steps(name, { count, bytes: MUCH }, taken)
    } finally {
      holding--
    }
  }
  const first = scheduler.run(() => large('first', 30), LONG)
  while (taken.length < 20) await new Promise((resume) => setImmediate(resume))
  const second = scheduler.run(() => large('second', 2), LONG)
  await second
  expect(opened).toEqual(['first', 'second'])
  expect(taken.filter((name) => name === 'first').length).toBeLessThan(30)
  await first
  expect([opened, most]).toEqual([['first', 'second', 'first'], 1])
  // Its work began again.
  expect(taken.filter((name) => name === 'first').length).toBeGreaterThanOrEqual(50)
})

test('what is not done in time ends, and leaves the others alone', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const endless = scheduler.run(() => steps('endless', { count: 1e9 }, taken), { likelyWork: 0, timeout: 50 })
  const other = scheduler.run(() => steps('other', { count: 20 }, taken), LONG)
  await expect(endless).rejects.toMatchObject({ code: 'NOT_READY', headers: { 'Retry-After': '30' } })
  await other
  expect(scheduler.size).toBe(0)
})

test('what a step throws is reported only to the caller of its run', async () => {
  const scheduler = new ScriptScheduler()
  const taken: string[] = []
  const wrong = scheduler.run(function* () {
    yield { units: 1, bytes: 0 }
    throw new Error('no')
  }, LONG)
  const right = scheduler.run(() => steps('right', { count: 2 }, taken), LONG)
  await expect(wrong).rejects.toThrow('no')
  await right
})

describe('what runs elsewhere', () => {
  const job = (likelyWork: number): ScriptJob => ({ spenders: [], likelyWork, maxWork: 1e8, timeout: 60_000 })
  const sent = async (each: ScriptJob): Promise<number> => {
    let count = 0
    await offloadingExpensive(async () => {
      count++
    })(each)
    return count
  }

  test('is what looks like much', async () => {
    expect([await sent(job(50_000_000)), await sent(job(1000))]).toEqual([1, 0])
  })

  test('is what turns out to be much', async () => {
    const long = new Uint8Array(20_000).fill(0x61)
    const raw = new Uint8Array(10)
    const spent = [{ satoshis: 1, lockingScript: long }]
    const spenders = [{ txid: 'ab'.repeat(32), raw: transactionOf(raw), spent }]
    expect(await sent({ ...job(1000), spenders })).toBe(1)
  })
})

/** A transaction with one input and one output. */
function transactionOf(unlockingScript: Uint8Array): Uint8Array {
  const input = [...new Uint8Array(32), 0, 0, 0, 0, unlockingScript.length, ...unlockingScript, 0, 0, 0, 0]
  return Uint8Array.from([2, 0, 0, 0, 1, ...input, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}
