import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import fc from 'fast-check'
import { OrderRun, type Plan, plan } from './order-run.js'

// The index is a pure function of what is known (`spec/overlay.md`, Order independence): random histories of both topics are
// submitted over HTTP in random order, each transaction with some of its sources, and every answer is held against a model
// that knows no order. `npm run orders` does thousands of runs; SEED and REPLAY repeat one that failed, and SHRINK=60 looks for
// a smaller one for so many seconds.

const { RUNS, SEED, REPLAY, SHRINK } = process.env
const seed = SEED === undefined ? Date.now() % 2 ** 31 : Number(SEED)

/** The compiled command, which `npm run orders` builds. */
const MAIN = resolve(import.meta.dirname, '../../dist/src/cli/main.js')
/** One run of so many has a server in a process of its own, which is killed; the others restart one in this process. */
const PROCESS_EVERY = 25

function mainOf({ rest }: Plan): { main?: string } {
  return RUNS !== undefined && rest % PROCESS_EVERY === 0 && existsSync(MAIN) ? { main: MAIN } : {}
}

test('whatever comes in whatever order, every answer is that of all that is known', async () => {
  const happened: Record<string, number> = {}
  const count = (what: string, times = 1): void => {
    happened[what] = (happened[what] ?? 0) + times
  }
  const property = fc.asyncProperty(plan, async (each) => {
    const options = mainOf(each)
    count(options.main === undefined ? 'runs' : 'runs of processes')
    const run = await OrderRun.of(each, options)
    for (const [what, times] of Object.entries(run.happened)) count(what, times)
  })
  try {
    await fc.assert(property, {
      seed,
      numRuns: Number(RUNS ?? 20),
      ...(REPLAY !== undefined && { path: REPLAY }),
      ...(SHRINK === undefined
        ? { endOnFailure: true }
        : { interruptAfterTimeLimit: Number(SHRINK) * 1000, markInterruptAsFailure: true }),
    })
  } finally {
    if (RUNS !== undefined) process.stdout.write(`SEED=${seed} ${JSON.stringify(happened, undefined, 2)}\n`)
  }
  // In so many, everything has happened.
  if (Number(RUNS ?? 0) < 300) return
  const all = [
    'submit: lost',
    'ingest: known',
    'ingest: unknown',
    'block',
    'unblock',
    'reorg',
    'restart',
    'kill',
  ]
  for (const what of all)
    expect({ what, happened: (happened[what] ?? 0) > 0 }).toEqual({ what, happened: true })
}, 14_400_000)
