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
import { StoreHost } from './store-host.js'
import { IS_LONG } from './trial.js'
import { runWide, WIDE, wide } from './wide.js'

// `RECORD=40 npm test -- test/histories/recorded.test.ts` records so many histories anew on the store of tables, before anything is
// replayed. `RUNS=1` replays all of them.

const { RECORD, SEED = '1' } = process.env
/** How many are replayed when nobody asks for all. */
const SOME = 4

beforeAll(async () => {
  if (RECORD !== undefined) writeRecorded(await record(Number(RECORD)))
}, 3_600_000)

const HOSTS = {
  tables: () => StoreHost.open(WIDE),
  facts: async () => new FactsHost(WIDE),
}

/** @param count How many; those that leave something open are not among them. */
async function record(count: number): Promise<RecordedHistory[]> {
  const host = await StoreHost.open(WIDE)
  const recorded: RecordedHistory[] = []
  for (const plan of fc.sample(wide, { seed: Number(SEED), numRuns: count * 2 })) {
    // What a branch proves that comes back, a store of facts still knows, and tables do not.
    const happenings = plan.happenings.filter(({ kind }) => kind !== 'return')
    const run = await runWide({ ...plan, happenings }, async ({ headers }) => {
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

test.each(['tables', 'facts'] as const)(
  'what was recorded is answered over %s as it was then',
  async (store) => {
    const host = await HOSTS[store]()
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
  },
  3_600_000,
)
