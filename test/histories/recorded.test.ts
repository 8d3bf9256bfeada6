import fc from 'fast-check'
import { FactsHost } from './facts-host.js'
import {
  RecordedChain,
  type RecordedHistory,
  RecordingHost,
  readRecorded,
  replay,
  writeRecorded,
} from './recorded.js'
import { IS_LONG } from './trial.js'
import { runWide, WIDE, wide } from './wide.js'

// The answers were recorded on another store, of tables. `RECORD=40 npm test -- test/histories/recorded.test.ts` records so many
// histories anew, before anything is replayed. `RUNS=1` replays all of them.

const { RECORD, SEED = '1' } = process.env
/** How many are replayed when nobody asks for all: as many as find the faults that they find (`faults.ts`). */
const SOME = 11

beforeAll(async () => {
  if (RECORD !== undefined) writeRecorded(await record(Number(RECORD)))
}, 3_600_000)

/** @param count How many; those that leave something open are not among them. */
async function record(count: number): Promise<RecordedHistory[]> {
  const host = new FactsHost(WIDE)
  const recorded: RecordedHistory[] = []
  for (const plan of fc.sample(wide, { seed: Number(SEED), numRuns: count * 2 })) {
    const run = await runWide(plan, async ({ headers }) => {
      await host.clear(headers)
      return new RecordingHost(host, headers)
    })
    if (run.mayTie) continue
    await run.read('at the end', { everything: true })
    recorded.push(run.host.history)
    if (recorded.length === count) break
  }
  await host.close()
  return recorded
}

test('what was recorded is answered as it was then', async () => {
  const host = new FactsHost(WIDE)
  const recorded = readRecorded()
  expect(recorded.length).toBeGreaterThanOrEqual(SOME)
  let questions = 0
  for (const [at, history] of recorded.slice(0, IS_LONG || RECORD ? undefined : SOME).entries()) {
    const chain = new RecordedChain()
    await host.clear(chain)
    const found = await replay(history, { host, chain })
    expect({ history: at, found }).toEqual({ history: at, found: {} })
    questions += history.questions.length
  }
  expect(questions).toBeGreaterThan(1000)
  await host.close()
}, 3_600_000)
